//! The programs in tests/examples, which docs/LIBRARY.md names, run.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use harness::steps::bash;
use harness::{Home, bounded};

/// The binary of an example. `cargo test` builds the examples, too.
fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.is_file(), "{} does not exist: run `cargo build --examples`", path.display());
    path
}

/// Runs an example to its end, with an empty standard input. Returns the exit code, the output and
/// the errors.
async fn run(home: &Home, name: &str, arguments: &[&str], steps: Value) -> (i32, String, String) {
    let mut command = Command::new(binary(name));
    command.args(arguments).current_dir(home.work()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("NUNCIO_HOME", home.data()).env("NUNCIO_MODEL", home.script(steps)).env("TMPDIR", home.data());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (mut output, mut errors) = (String::new(), String::new());
    let ended = async { tokio::join!(out.read_to_string(&mut output), err.read_to_string(&mut errors), child.wait()) };
    let status = bounded(name, ended).await.2.unwrap();
    (status.code().unwrap(), output, errors)
}

/// Asserts that a text contains others.
fn contains(name: &str, text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{name}: no {part:?} in {text}");
    }
}

#[tokio::test]
async fn examples_run() {
    let home = Home::new();
    let nuncio = harness::program();
    let inner = home.script(json!([{"text": "I am hosted"}]));
    let ticket = json!({"tool_calls": [{"name": "ticket", "input": {"number": 7}}]});
    let (tests, other) = (bash("cargo test --no-such-flag"), bash("touch file"));
    let cases: [(&str, &[&str], Value, &[&str]); 7] = [
        ("minimal", &["Hello"], json!([{"text": "an answer"}]), &["an answer", "EndTurn", " tokens"]),
        ("own_tool", &["Ticket 7?"], json!([ticket, {"text": "it is about the login"}]), &["it is about the login"]),
        ("approval", &[], json!([tests, other, {"text": "done", "expect": "only the tests may run"}]), &["done"]),
        ("own_model", &["Hello"], json!([]), &["You wrote: ", "Hello"]),
        ("web_server", &[], json!([]), &["http://127.0.0.1:", "/#token="]),
        ("pipeline", &["Go"], json!([{"text": "step 1"}]), &["plan: step 1\nstep 1\n"]),
        ("hosted_agent", &[nuncio, "acp", "--model", &inner], json!([]), &["I am hosted"]),
    ];
    for (name, arguments, steps, output) in cases {
        let (code, out, err) = run(&home, name, arguments, steps).await;
        assert_eq!(code, 0, "{name}: {out}{err}");
        contains(name, &out, output);
    }
    assert!(home.get("file").is_none());
}

/// The documents show the text of an example.
#[test]
fn documents_show_an_example() {
    let read = |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let code = |text: &str, from: &str| text[text.find(from).unwrap()..].to_owned();
    let example = code(&read("tests/examples/approval.rs"), "use nuncio");
    assert!(read("docs/LIBRARY.md").contains(&format!("```rust\n{example}```\n")));
    let header = read("src/lib.rs")
        .lines()
        .map(|line| line.strip_prefix("//!").map_or("", |line| line.strip_prefix(' ').unwrap_or(line)).to_owned() + "\n")
        .collect::<String>();
    assert!(header.contains(&format!("```no_run\n{example}```\n")));
}

/// A program whose `main` ignores its arguments is started twice, but builds no second agent.
#[tokio::test]
async fn program_without_init_gets_an_error() {
    let home = Home::new();
    let (code, out, err) = run(&home, "without_init", &[], json!([])).await;
    assert_eq!((code, out.as_str()), (1, "the program starts\n"));
    let expected = "this program does not serve as the helper that runs the commands of an agent";
    contains("without_init", &err, &[expected, "call nuncio::init() first in main"]);
}
