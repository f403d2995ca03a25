//! Results: which runs are skipped or repeated, the table, and the comparison of two files.

use serde_json::{Value, json};

use super::{SOLVE, eval, put_task, results};
use harness::Home;
use harness::steps::bash;

/// A home with these proved tasks.
async fn proved(names: &[&str]) -> Home {
    let home = Home::new();
    names.iter().for_each(|name| put_task(&home, name, &[]));
    eval(&home, &["--prove"]).await;
    home
}

fn solves() -> Value {
    json!([bash(SOLVE), {"text": "done"}])
}

#[tokio::test]
async fn only_equal_runs_are_skipped() {
    needs_linux!("sandbox");
    let home = proved(&["one", "two"]).await;
    let model = home.script(solves());
    let flags = ["-m", &model, "--out", "../out.jsonl"];
    let count = || results(&home, "out.jsonl").len();
    eval(&home, &[&flags[..], &["--only", "one"]].concat()).await;
    assert_eq!(count(), 1);
    let ran = eval(&home, &flags).await;
    assert_eq!(count(), 2, "only the missing task runs: {ran:?}");
    assert!(ran.stdout.contains("100 % (34 to 100)"), "skipped runs are in the table: {ran:?}");
    eval(&home, &[&flags[..], &["--runs", "2"]].concat()).await;
    assert_eq!(count(), 4, "only the second runs");
    eval(&home, &[&flags[..], &["--timeout", "20"]].concat()).await;
    assert_eq!(count(), 6, "another limit");
    home.config("[context]\nbundle_tokens = 1000\n");
    eval(&home, &flags).await;
    assert_eq!(count(), 8, "other settings");
    home.config("[context]\nbundle_tokens = 1000\n[telemetry]\n");
    eval(&home, &flags).await;
    assert_eq!(count(), 8, "settings that are not in the runs");
    home.put("../prompt.md", "Work.");
    home.config(&format!("[prompts]\n\"scripted:*\" = \"{}\"\n", home.work().join("../prompt.md").display()));
    eval(&home, &flags).await;
    home.put("../prompt.md", "Work well.");
    eval(&home, &flags).await;
    assert_eq!(count(), 12, "another prompt, and another text of it");
    put_task(&home, "two", &[("tests/extra", "x")]);
    eval(&home, &["--prove"]).await;
    eval(&home, &flags).await;
    assert_eq!(count(), 13, "another digest");
}

/// An error counts in no rate, and its run is repeated. A line that is not complete is removed.
#[tokio::test]
async fn errors_are_repeated() {
    needs_linux!("sandbox");
    let home = proved(&["one", "two"]).await;
    let model = home.script(json!([{"error": {"status": 401, "times": 9}, "text": "x"}]));
    let flags = ["eval", "../tasks", "-m", &model, "--out", "../out.jsonl"];
    let ran = home.run(&flags, "").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let lines = results(&home, "out.jsonl");
    assert!(lines.iter().all(|line| line["class"] == "error" && line["reason"].as_str().unwrap().contains("401")), "{lines:?}");
    assert!(ran.stdout.contains("  -  ") && !ran.stdout.contains("0 %"), "{ran:?}");
    std::fs::write(model.strip_prefix("scripted:").unwrap(), json!({"steps": solves()}).to_string()).unwrap();
    let text = home.get("../out.jsonl").unwrap();
    home.put("../out.jsonl", &format!("{text}{{\"task\": \"on"));
    let ran = home.run(&flags, "").await;
    let lines = results(&home, "out.jsonl");
    assert_eq!((ran.code, lines.len(), &lines[3]["class"]), (0, 4, &json!("solved")), "{ran:?} {lines:?}");
    assert!(ran.stdout.contains("100 % (34 to 100)  0       0        0 "), "{ran:?}");
}

/// A file of results, in which tasks of these lines have another class.
fn with_classes(home: &Home, file: &str, class: &str, tasks: &[&str]) {
    let mut lines = results(home, "out.jsonl");
    for line in lines.iter_mut().filter(|line| tasks.contains(&line["task"].as_str().unwrap())) {
        line["class"] = class.into();
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    home.put(&format!("../{file}"), &text);
}

#[tokio::test]
async fn comparison_is_an_exact_sign_test_over_equal_tasks() {
    needs_linux!("sandbox");
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let home = proved(&names).await;
    let model = home.script(solves());
    let flags = ["-m", &model, "--out", "../out.jsonl"];
    let ran = eval(&home, &flags).await;
    assert!(ran.stdout.contains("100 % (65 to 100)"), "Wilson's interval of 7 of 7: {ran:?}");
    let cases: &[(&str, &[&str], &str)] = &[
        ("failed", &[], "7 equal tasks, 0 better, 0 worse: no difference shown (p = 1.000)"),
        ("failed", &names[..5], "7 equal tasks, 5 better, 0 worse: no difference shown (p = 0.062)"),
        ("timeout", &names[..6], "7 equal tasks, 6 better, 0 worse: better (p = 0.031)"),
        ("error", &names[..6], "1 equal tasks, 0 better, 0 worse: no difference shown (p = 1.000)"),
    ];
    for (class, tasks, expected) in cases {
        with_classes(&home, "old.jsonl", class, tasks);
        let ran = eval(&home, &[&flags[..], &["--compare", "../old.jsonl"]].concat()).await;
        assert!(ran.stdout.contains(expected), "{class} {tasks:?}: {ran:?}");
    }
    // Lines of an older program are not compared, if a newer one has all tasks.
    with_classes(&home, "old.jsonl", "failed", &names[..6]);
    let newer = home.get("../old.jsonl").unwrap();
    let older = newer.replace("\"settings\":\"", "\"settings\":\"0").replace("solved", "failed");
    home.put("../old.jsonl", &format!("{older}{newer}"));
    let ran = eval(&home, &[&flags[..], &["--compare", "../old.jsonl"]].concat()).await;
    assert!(ran.stdout.contains("7 equal tasks, 6 better, 0 worse"), "{ran:?}");
    // The other way round.
    with_classes(&home, "new.jsonl", "failed", &names[..6]);
    let worse = eval(&home, &["-m", &model, "--out", "../new.jsonl", "--compare", "../out.jsonl"]).await;
    assert!(worse.stdout.contains("0 better, 6 worse: worse (p = 0.031)"), "{worse:?}");
    assert!(worse.stdout.contains("14 % (3 to 51)"), "Wilson's interval of 1 of 7: {worse:?}");
    // A task that changed is not compared.
    put_task(&home, "g", &[("tests/extra", "x")]);
    eval(&home, &["--prove"]).await;
    let changed = eval(&home, &[&flags[..], &["--compare", "../old.jsonl"]].concat()).await;
    assert!(changed.stdout.contains("6 equal tasks, 6 better, 0 worse"), "{changed:?}");
}

/// Several runs of a task depend on each other: the interval is over tasks.
#[tokio::test]
async fn interval_of_several_runs_is_over_tasks() {
    needs_linux!("sandbox");
    let home = proved(&["a", "b"]).await;
    let model = home.script(solves());
    let flags = ["-m", &model, "--runs", "3", "--out", "../out.jsonl"];
    let ran = eval(&home, &flags).await;
    assert_eq!(results(&home, "out.jsonl").len(), 6);
    assert!(ran.stdout.contains("100 % (100 to 100)"), "{ran:?}");
    with_classes(&home, "out.jsonl", "failed", &["b"]);
    let halves = eval(&home, &flags).await;
    assert!(halves.stdout.contains("50 % (0 to 100)"), "{halves:?}");
    assert_eq!(eval(&home, &flags).await.stdout, halves.stdout, "the seed is fixed");
}
