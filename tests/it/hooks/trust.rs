//! Hooks of projects count after `nuncio trust` only, and invalid hooks are errors.

use super::{Events, home, hook, read_a};

const CONFIG: &str = ".nuncio/config.toml";

#[tokio::test]
async fn hooks_of_a_project_run_only_if_it_is_trusted() {
    needs_linux!("sandbox");
    let home = home(&hook("tool.execute.before", "echo user >> order.txt", ""));
    home.put(CONFIG, "[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"sh\", \"guard.sh\"]\n");
    home.put("guard.sh", "echo project >> order.txt\n");
    let untrusted = Events::from_run(&home, read_a(None), &[]).await;
    assert_eq!(home.get("order.txt").as_deref(), Some("user\n"));
    let description = untrusted.all("notice")[0]["description"].as_str().unwrap();
    assert!(description.contains("hooks") && description.contains("nuncio trust"), "{description}");

    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let trusted = Events::from_run(&home, read_a(None), &[]).await;
    assert_eq!(home.get("order.txt").as_deref(), Some("user\nuser\nproject\n"));
    assert!(trusted.all("notice").is_empty());

    // The script is a part of what was trusted.
    home.put("guard.sh", "echo other >> order.txt\n");
    let changed = Events::from_run(&home, read_a(None), &[]).await;
    assert_eq!(home.get("order.txt").as_deref(), Some("user\nuser\nproject\nuser\n"));
    assert!(changed.result().1.contains("nuncio trust --diff"), "{:?}", changed.result());
}

#[tokio::test]
async fn script_next_to_the_settings_precedes_one_of_the_project() {
    let home = home("[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"sh\", \"guard.sh\"]\n");
    std::fs::write(
        home.data().join("guard.sh"),
        "pwd > \"$NUNCIO_WORKSPACE/pwd.txt\"; echo settings > \"$NUNCIO_WORKSPACE/from.txt\"\n",
    )
    .unwrap();
    home.put("guard.sh", "echo project > from.txt\n");
    Events::from_run(&home, read_a(None), &[]).await;
    assert_eq!(home.get("from.txt").as_deref(), Some("settings\n"));
    assert_eq!(home.get("pwd.txt").unwrap().trim(), home.data().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn invalid_hooks_are_errors() {
    let hook = |line: &str| format!("[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"true\"]\n{line}\n");
    let cases = [
        ("[[hooks]]\nevent = \"tool.execute\"\ncommand = [\"true\"]\n".to_owned(), "tool.execute.before"),
        ("[[hooks]]\nevent = \"tool.execute.before\"\ncommand = []\n".to_owned(), "hooks[0].command"),
        ("[[hooks]]\nevent = \"tool.execute.before\"\n".to_owned(), "command"),
        (hook("match = \"[\""), "hooks[0].match"),
        (hook("match = \"bsh\""), "unknown tool `bsh`"),
        (hook("match = \"shell\""), "did you mean `bash`?"),
        (hook("timeout_ms = 0"), "hooks[0].timeout_ms"),
        (hook("timeout_ms = 600001"), "hooks[0].timeout_ms"),
        (hook("on_failure = \"maybe\""), "closed"),
        (hook("retries = 1"), "retries"),
    ];
    for (settings, expected) in cases {
        let home = home(&settings);
        let ran = home.run(&["config", "check"], "").await;
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == 2 && text.contains(expected), "{settings}: {ran:?}");
    }
}
