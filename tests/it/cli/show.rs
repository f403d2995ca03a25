//! `nuncio sessions`: list, show and remove.

use serde_json::json;

use super::check;
use harness::Home;

#[tokio::test]
async fn session_is_listed_shown_and_removed() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let steps = json!([
        {"thinking": "I think.", "text": "I mend it.", "tool_calls": [
            {"name": "edit", "input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}},
            {"name": "bash", "input": {"command": "echo out"}},
            {"name": "plan", "input": {"entries": [{"content": "a step", "status": "completed"}]}},
        ]},
        {"text": "Mended."},
    ]);
    let ran = home.run(&["run", "--model", &home.script(steps), "--mode", "auto", "Mend it\nplease"], "").await;
    check(&ran, 0, &[]);
    let other = home.run(&["run", "--cwd", "..", "--model", &home.script(json!([])), "Elsewhere"], "").await;
    check(&other, 0, &["done"]);

    let listed = home.run(&["sessions", "list"], "").await;
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines.len() == 2 && lines[0].ends_with("Elsewhere") && lines[1].ends_with("Mend it"), "{listed:?}");
    let here = home.run(&["sessions", "list", "--here", "--json"], "").await.lines();
    assert_eq!((here.len(), &here[0]["title"], &here[0]["cwd"]), (1, &json!("Mend it"), &json!(home.work())));
    let id = here[0]["sessionId"].as_str().unwrap();

    let shown = home.run(&["sessions", "show", id], "").await;
    check(
        &shown,
        0,
        &[
            "> Mend it\n> please",
            "I think.",
            "I mend it.",
            "Edit a.txt",
            "-one",
            "+two",
            "● echo out · exit 0",
            "  out",
            "a step",
            "Mended.",
        ],
    );
    assert!(!shown.stdout.contains('\u{1b}'), "{shown:?}");
    let places: Vec<usize> =
        ["> Mend it", "I mend it.", "+two", "Mended."].iter().map(|word| shown.stdout.find(word).unwrap()).collect();
    assert!(places.is_sorted(), "{shown:?}");

    check(&home.run(&["sessions", "rm", id], "").await, 0, &[]);
    check(&home.run(&["sessions", "show", id], "").await, 2, &[id]);
    assert_eq!(home.run(&["sessions", "list", "--here"], "").await.stdout, "");
    assert_eq!(home.run(&["sessions", "list"], "").await.stdout.lines().count(), 1);
}

#[tokio::test]
async fn session_in_use_is_removed_by_its_owner() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    agent.turn(&session, "go").await;
    check(&home.run(&["sessions", "rm", &session], "").await, 0, &[]);
    check(&home.run(&["sessions", "show", &session], "").await, 2, &[&session]);
    agent.finish().await;
}

#[tokio::test]
async fn data_dir_flag_selects_store() {
    needs_sqlite!("the store is a database, in any data directory");
    let home = Home::new();
    let elsewhere = home.work().join("data").display().to_string();
    let model = home.script(json!([]));
    check(&home.run(&["run", "--data-dir", &elsewhere, "--model", &model, "go"], "").await, 0, &["done"]);
    assert_eq!(home.run(&["sessions", "list"], "").await.stdout, "");
    assert_eq!(home.run(&["sessions", "list", "--data-dir", &elsewhere], "").await.stdout.lines().count(), 1);
}

#[tokio::test]
async fn closed_output_pipe_ends_process_without_panic() {
    let home = Home::new();
    let model = home.script(json!([{"text": "a line\n".repeat(20_000), "chunk_chars": 4000}]));
    check(&home.run(&["run", "--model", &model, "go"], "").await, 0, &[]);
    let id = home.run(&["sessions", "list", "--json"], "").await.lines()[0]["sessionId"].as_str().unwrap().to_string();
    let mut child = home.spawn(&["sessions", "show", &id]);
    drop(child.stdout.take());
    let status = harness::bounded("the exit", child.wait()).await.unwrap();
    assert_ne!(status.code(), None, "killed by a signal");
    assert_ne!(status.code(), Some(101), "a panic");
}
