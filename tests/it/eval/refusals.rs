//! Tasks, models and flags that `nuncio eval` refuses before the first run.

use serde_json::json;

use super::{eval, put_task, results};
use harness::Home;

/// Name, changed files, and the reason.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

const CASES: &[Case<'_>] = &[
    ("no-instruction", &[("instruction.md", "")], "instruction.md is missing or empty"),
    ("blank", &[("instruction.md", " \n")], "instruction.md is missing or empty"),
    ("no-test", &[("tests/test.sh", "")], "tests/test.sh is missing"),
    ("no-config", &[("task.toml", "")], "task.toml is missing"),
    ("bad-config", &[("task.toml", "= 1\n")], "task.toml: "),
    (
        "image",
        &[
            ("environment/Dockerfile", "FROM x\n"),
            ("environment/setup.sh", ""),
            ("environment/files/total.sh", ""),
            ("environment/files/notes.txt", ""),
            ("environment/files/tests/check.sh", ""),
            ("environment/files/.gitignore", ""),
        ],
        "its start is not in environment/files, but an image or a Dockerfile: run it with Harbor",
    ),
    ("steps", &[("task.toml", "[[steps]]\nname = \"one\"\n")], "it has several steps: run it with Harbor"),
    ("gpu", &[("task.toml", "[environment]\ngpus = 1\n")], "it needs a GPU or TPU: run it with Harbor"),
    (
        "network",
        &[("task.toml", "[environment]\nnetwork_mode = \"public\"\n")],
        "its network mode is public, and only no-network is possible here: run it with Harbor",
    ),
    (
        "agent-network",
        &[("task.toml", "[agent]\nnetwork_mode = \"allowlist\"\n")],
        "its network mode is allowlist, and only no-network is possible here: run it with Harbor",
    ),
    ("internet", &[("task.toml", "[environment]\nallow_internet = true\n")], "it allows the internet: run it with Harbor"),
    ("limit", &[("task.toml", "[agent]\ntimeout_sec = -1\n")], "timeout_sec: "),
];

#[tokio::test]
async fn tasks_that_cannot_run_are_named_with_the_reason() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    CASES.iter().for_each(|(name, changes, _)| put_task(&home, name, changes));
    let links = [("inside", "files/../files/total.sh", false), ("out", "../../../secret", true), ("absolute", "/etc/passwd", true)];
    for (name, target, _) in links {
        put_task(&home, name, &[]);
        let link = if name == "inside" { "environment/link" } else { "environment/files/link" };
        std::os::unix::fs::symlink(target, home.work().join("../tasks").join(name).join(link)).unwrap();
    }
    // A link in the start may not lead to another part of the task either: it would be copied.
    put_task(&home, "peek", &[]);
    std::os::unix::fs::symlink("../../tests/test.sh", home.work().join("../tasks/peek/environment/files/link")).unwrap();

    let ran = home.run(&["eval", "../tasks", "--prove"], "").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    for (name, _, why) in CASES {
        assert!(ran.stderr.contains(&format!("\n  {name}: {why}")), "{name}: {ran:?}");
    }
    let out = |name: &str| ran.stderr.contains(&format!("\n  {name}: the link "));
    assert!(links.iter().all(|(name, _, refused)| out(name) == *refused) && out("peek"), "{ran:?}");
    assert!(!ran.stderr.contains("\n  good:"), "{ran:?}");
    let only = home.run(&["eval", "../tasks", "--only", "goo?", "--prove"], "").await;
    assert_eq!((only.code, only.stdout.lines().count()), (0, 1), "{only:?}");
}

/// A task runs only as it was proved.
#[tokio::test]
async fn task_that_changed_since_its_proof_is_refused() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    let model = home.script(json!([{"text": "no"}]));
    let run = ["eval", "../tasks", "-m", &model, "--out", "../out.jsonl"];
    let why = "\n  good: not proved since its last change";
    assert!(home.run(&run, "").await.stderr.contains(why));
    eval(&home, &["--prove"]).await;
    assert_eq!(home.run(&run, "").await.code, 0);
    put_task(&home, "good", &[("tests/extra", "new")]);
    let ran = home.run(&run, "").await;
    assert!(ran.code == 2 && ran.stderr.contains(why) && ran.stderr.contains("nuncio eval ../tasks --prove"), "{ran:?}");
    assert_eq!(results(&home, "out.jsonl").len(), 1);
}

/// Arguments, and what standard error has.
#[tokio::test]
async fn flags_models_and_agents_that_cannot_work_are_refused() {
    needs_linux!("sandbox");
    let home = Home::new();
    put_task(&home, "good", &[]);
    eval(&home, &["--prove"]).await;
    let model = home.script(json!([]));
    let cases: &[(&[&str], &str)] = &[
        (&["-m", &model, "--max-cost", "1"], "--max-cost: the price of scripted:"),
        (&["--agent", "nobody"], "agent nobody does not work: "),
        (&["-m", "nowhere/x"], "provider nowhere is unknown"),
        (&["-m", &model, "--mode", "ask"], "--mode: not available, because each run has mode auto"),
        (&["-m", &model, "--sandbox", "off"], "--sandbox: not available"),
        (&["-m", &model, "--only", "nothing*"], "no tasks"),
        (&["-m", &model, "--compare", "../missing.jsonl"], "missing.jsonl"),
        (&["-m", &model, "--runs", "0"], "--runs"),
        (&["--prove", "--runs", "2"], "--prove"),
    ];
    for (arguments, expected) in cases {
        let ran = home.run(&[&["eval", "../tasks"], *arguments].concat(), "").await;
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{arguments:?}: {ran:?}");
    }
    home.put("../probes/p.json", "{}");
    let probes = home.run(&["eval", "../probes", "--agent", "other", "--prove"], "").await;
    assert!(probes.code == 2 && probes.stderr.contains("invalid probes:"), "{probes:?}");
    let several = home.run(&["run", "-m", &model, "-m", &model, "hi"], "").await;
    assert!(several.code == 2 && several.stderr.contains("only eval takes several models"), "{several:?}");
}
