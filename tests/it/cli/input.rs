//! Sources of the prompts of `nuncio run`: arguments, `--prompt`, standard input.

use std::process::Stdio;

use serde_json::{Value, json};

use super::check;
use harness::Home;

/// Returns the prompts of the last session.
async fn prompts(home: &Home) -> Vec<String> {
    let listed = home.run(&["sessions", "list", "--json"], "").await.lines();
    let log = home.log(listed[0]["sessionId"].as_str().unwrap()).await;
    let of_user = |event: &&Value| event["body"]["type"] == "message.completed" && event["body"]["role"] == "user";
    log.iter().filter(of_user).map(|event| event["body"]["parts"][0]["text"].as_str().unwrap().into()).collect()
}

#[tokio::test]
async fn piped_input_is_appended_to_the_prompt() {
    let home = Home::new();
    let model = home.script(json!([]));
    // Arguments, standard input, prompts.
    let cases: &[(&[&str], &str, &[&str])] = &[
        (&["explain", "this"], "a log\nof lines\n", &["explain this\n\n<stdin>\na log\nof lines\n</stdin>"]),
        (&["explain", "this", "-"], "a log", &["explain this\n\n<stdin>\na log\n</stdin>"]),
        (&["-p", "one", "--prompt", "two"], "a log\n", &["one\n\n<stdin>\na log\n</stdin>", "two"]),
        (&["explain this"], "", &["explain this"]),
        (&["explain this"], " \n", &["explain this"]),
        (&[], "a log\n", &["a log\n"]),
        (&["-"], "a log\n", &["a log\n"]),
        (&["--json", "explain"], "a log\n", &["explain\n\n<stdin>\na log\n</stdin>"]),
    ];
    for (arguments, input, expected) in cases {
        let ran = home.run(&[&["run", "--model", &model], *arguments].concat(), input).await;
        check(&ran, 0, &["done"]);
        assert_eq!(prompts(&home).await, *expected, "{arguments:?}");
    }
}

#[tokio::test]
async fn unquoted_words_are_one_prompt() {
    let home = Home::new();
    let model = home.script(json!([{"text": "once"}]));
    let ran = home.run(&["run", "fix", "the", "bug", "--model", &model], "").await;
    check(&ran, 0, &[]);
    assert_eq!((ran.stdout.as_str(), prompts(&home).await), ("once\n", vec!["fix the bug".to_string()]));
    // Words together with `-p` are ambiguous, hence a usage error.
    check(&home.run(&["run", "--model", &model, "-p", "fix", "the", "bug"], "").await, 2, &["--prompt"]);
}

#[tokio::test]
async fn invalid_utf8_is_replaced_and_too_long_input_is_an_error() {
    let home = Home::new();
    let model = home.script(json!([]));
    let file = home.work().join("input");
    std::fs::write(&file, b"caf\xe9 au lait\n").unwrap();
    let input = || Stdio::from(std::fs::File::open(&file).unwrap());
    let (code, shown) = home.terminal_with_input(&["run", "--model", &model, "explain"], input()).end().await;
    assert!(code == 0 && shown.contains("UTF-8"), "{shown}");
    assert_eq!(prompts(&home).await, ["explain\n\n<stdin>\ncaf\u{fffd} au lait\n</stdin>"]);
    // Input beyond the limit of a prompt is an error, not truncated.
    std::fs::write(&file, "x".repeat((32 << 20) + 1)).unwrap();
    for arguments in [&["explain"][..], &[]] {
        let (code, shown) = home.terminal_with_input(&[&["run", "--model", &model], arguments].concat(), input()).end().await;
        assert!(code == 2 && shown.contains("standard input"), "{shown}");
    }
    assert_eq!(home.run(&["sessions", "list"], "").await.stdout.lines().count(), 1);
}

#[tokio::test]
async fn waiting_for_standard_input_is_announced() {
    let home = Home::new();
    let model = home.script(json!([]));
    // A pipe is read to its end; a message is printed while the end is pending.
    for arguments in [&["explain"][..], &[]] {
        let mut terminal = home.terminal_with_input(&[&["run", "--model", &model], arguments].concat(), Stdio::piped());
        terminal.until("reading standard input").await;
        tokio::io::AsyncWriteExt::write_all(terminal.stdin.as_mut().unwrap(), b"a log").await.unwrap();
        let (code, shown) = terminal.end().await;
        assert_eq!(code, 0, "{shown}");
        assert!(prompts(&home).await[0].contains("a log"), "{shown}");
    }
    // Some parent programs pass an open socket without any data as standard input.
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let theirs = Stdio::from(std::os::fd::OwnedFd::from(theirs));
    let (code, shown) = home.terminal_with_input(&["run", "--model", &model, "explain"], theirs).end().await;
    assert!(code == 0 && shown.contains("standard input"), "{shown}");
    assert_eq!(prompts(&home).await, ["explain"]);
    drop(ours);
    // Empty standard input.
    let (code, shown) = home.terminal_with_input(&["run", "--model", &model, "explain"], Stdio::null()).end().await;
    assert!(code == 0 && !shown.contains("standard input"), "{shown}");
    let (code, shown) = home.terminal_with_input(&["run", "--model", &model], Stdio::null()).end().await;
    assert!(code == 2 && shown.contains("standard input is empty"), "{shown}");
    let (code, shown) = home.terminal(&["run", "--model", &model]).end().await;
    assert!(code == 2 && shown.contains("no prompt"), "{shown}");
}
