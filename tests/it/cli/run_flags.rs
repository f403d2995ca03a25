//! Flags of `nuncio run`: files, formats and schemas of the output, sessions that are deleted.

use std::path::Path;

use serde_json::{Value, json};

use super::check;
use harness::{Home, RunningCommand};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n rest";

/// The sessions in the store.
async fn sessions(home: &Home) -> Vec<Value> {
    home.run(&["sessions", "list", "--json"], "").await.lines()
}

/// The user's messages of the last session: the parts of each.
async fn messages(home: &Home) -> Vec<Value> {
    let log = home.log(sessions(home).await[0]["sessionId"].as_str().unwrap()).await;
    let of_user = |event: &&Value| event["body"]["type"] == "message.completed" && event["body"]["role"] == "user";
    log.iter().filter(of_user).map(|event| event["body"]["parts"].clone()).collect()
}

/// The names of all files below a directory.
fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let below = |path: std::path::PathBuf| if path.is_dir() { files(&path) } else { vec![path.display().to_string()] };
    entries.flat_map(|entry| below(entry.path())).collect()
}

#[tokio::test]
async fn files_are_attached_to_the_first_prompt() {
    let home = Home::new();
    let text = home.put("a note.txt", "the text of it\n");
    let page = home.put("page.html", "<html><b>bold</b></html>");
    std::fs::write(home.work().join("image"), PNG).unwrap();
    let model = home.script(json!([{"expect": "the text of it", "text": "one"}, {"text": "two"}]));
    let uri = |path: &Path| format!("file://{}", path.display()).replace(' ', "%20");
    let arguments =
        ["run", "--model", &model, "-p", "look", "-p", "again", "-f", "a note.txt", "--file", "page.html", "-f", "image"];
    check(&home.run(&arguments, "").await, 0, &["one\ntwo\n"]);
    let sent = messages(&home).await;
    assert_eq!(
        sent[0],
        json!([
            {"type": "text", "text": "look"},
            {"type": "resource", "uri": uri(&text), "mimeType": "text/plain", "text": "the text of it\n"},
            {"type": "resource", "uri": uri(&page), "mimeType": "text/html", "text": "<html><b>bold</b></html>"},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgogcmVzdA=="},
        ])
    );
    assert_eq!(sent[1], json!([{"type": "text", "text": "again"}]));
    // Piped input is part of the prompt's text.
    let model = home.script(json!([]));
    check(&home.run(&["run", "--model", &model, "look", "-f", "image"], "a log").await, 0, &[]);
    let sent = messages(&home).await;
    assert_eq!((sent[0][0]["text"].as_str(), &sent[0][1]["type"]), (Some("look\n\n<stdin>\na log\n</stdin>"), &json!("image")));
}

#[tokio::test]
async fn pdf_is_attached_as_document() {
    let home = Home::new();
    home.put("paper.pdf", &crate::prompts::media::pdf(&["The abstract"]));
    let model = home.script(json!([{"expect": "The abstract", "text": "read"}]));
    check(&home.run(&["run", "--model", &model, "summarize", "-f", "paper.pdf"], "").await, 0, &["read"]);
    let part = &messages(&home).await[0][1];
    assert_eq!(
        (&part["type"], &part["name"], &part["mimeType"]),
        (&json!("document"), &json!("paper.pdf"), &json!("application/pdf"))
    );
}

#[tokio::test]
async fn file_that_cannot_be_attached_is_an_error_before_the_turn() {
    let home = Home::new();
    let model = home.script(json!([]));
    home.put("directory/a.txt", "a");
    std::fs::write(home.work().join("binary"), b"\x7fELF\0\0").unwrap();
    std::fs::write(home.work().join("latin"), [b"a".repeat(100_000), b"caf\xe9".to_vec()].concat()).unwrap();
    std::fs::write(home.work().join("long"), "x".repeat((1 << 20) + 1)).unwrap();
    std::fs::write(home.work().join("photo"), [PNG, &[0; 5 << 20]].concat()).unwrap();
    std::fs::write(home.work().join("huge"), vec![0; (10 << 20) + 1]).unwrap();
    std::fs::write(home.work().join("paper"), [b"%PDF-1.7".to_vec(), vec![0; 9 << 20]].concat()).unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["-f", "missing"], &["--file missing: no such file"]),
        (&["-f", "directory"], &["--file directory: it is a directory"]),
        (&["-f", "/dev/null"], &["not a regular file"]),
        (&["-f", "binary"], &["--file binary: unknown type", "PDF"]),
        (&["-f", "latin"], &["--file latin", "UTF-8"]),
        (&["-f", "long"], &["--file long", "1 MiB"]),
        (&["-f", "photo"], &["--file photo", "an image of more than 5 MiB"]),
        (&["-f", "huge"], &["--file huge", "10 MiB"]),
        (&["-f", "paper", "-f", "paper", "-f", "paper"], &["--file paper", "together", "20 MiB"]),
        (&["-f", "directory/a.txt", "--json", "-"], &["--file: needs a prompt"]),
    ];
    for (flags, words) in cases {
        let prompt: &[&str] = if flags.contains(&"-") { &[] } else { &["look"] };
        check(&home.run(&[&["run", "--model", &model], prompt, *flags].concat(), "").await, 2, words);
    }
    assert_eq!(sessions(&home).await, Vec::<Value>::new());
}

#[tokio::test]
async fn last_message_is_written_to_file() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let steps = json!([{"text": "First.", "tool_calls": [{"name": "list"}]}, {"text": "Second."}, {"text": "Third."}]);
    let model = home.script(steps.clone());
    let ran = home.run(&["run", "--model", &model, "-o", "out.txt", "-p", "one", "-p", "two"], "").await;
    check(&ran, 0, &["First.\nSecond.\nThird.\n"]);
    assert_eq!(home.get("out.txt").as_deref(), Some("Third."));
    // An existing file is replaced and keeps its permissions; a symlink is followed.
    let file = home.put("kept.txt", "old and longer than the message");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&file, home.work().join("link")).unwrap();
    let model = home.script(steps);
    check(&home.run(&["run", "--model", &model, "--output-last-message", "link", "go"], "").await, 0, &[]);
    assert_eq!((home.get("kept.txt").as_deref(), file.metadata().unwrap().permissions().mode() & 0o777), (Some("Second."), 0o640));
    assert!(home.work().join("link").is_symlink());
    check(&home.run(&["run", "--model", &model, "-o", "/dev/null", "go"], "").await, 0, &[]);
    // A run that fails changes nothing.
    let failing = home.script(json!([{"expect": "what is not there"}]));
    check(&home.run(&["run", "--model", &failing, "-o", "kept.txt", "go"], "").await, 1, &[]);
    assert_eq!(home.get("kept.txt").as_deref(), Some("Second."));
    let names = std::fs::read_dir(home.work()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.starts_with(".nuncio")), "a temporary file is left");
}

#[tokio::test]
async fn path_that_cannot_be_written_is_an_error_before_the_turn() {
    let home = Home::new();
    home.put("file", "");
    std::os::unix::fs::symlink("/no/such/target", home.work().join("dangling")).unwrap();
    let model = home.script(json!([]));
    let cases = [
        ("no/such/dir/out", "its directory does not exist"),
        (".", "directory"),
        ("file/out", "directory"),
        ("dangling", "symlink"),
    ];
    for (path, word) in cases {
        let ran = home.run(&["run", "--model", &model, "-o", path, "go"], "").await;
        check(&ran, 2, &["--output-last-message", path, word]);
    }
    // The harness changes the permissions of all files.
    std::fs::remove_file(home.work().join("dangling")).unwrap();
    let ran = home.run_without_writing(&["run", "--model", &model, "-o", "out", "go"]).await;
    check(&ran, 2, &["--output-last-message out"]);
    assert_eq!(sessions(&home).await, Vec::<Value>::new());
}

#[tokio::test]
async fn json_format_prints_the_result() {
    let home = Home::new();
    let steps = json!([{"text": "First.", "thinking": "I think.", "tool_calls": [{"name": "list"}]}, {"text": "Second."}]);
    let model = home.script(steps);
    let ran = home.run(&["run", "--model", &model, "--output-format", "json", "go"], "").await;
    check(&ran, 0, &["I think."]);
    let [result] = &ran.lines()[..] else { panic!("{ran:?}") };
    assert_eq!(
        [&result["stopReason"], &result["answer"], &result["lastTurn"]["status"], &result["error"]],
        [&json!("end_turn"), &json!("Second."), &json!("completed"), &Value::Null]
    );
    assert_eq!(result["sessionId"], sessions(&home).await[0]["sessionId"]);
    assert!(result["lastTurn"]["turnId"].is_string() && result["durationMs"].is_u64() && result["usage"].is_object(), "{result}");
    assert!(!ran.stderr.contains("Second."), "{ran:?}");
    // Also if the turn fails.
    let failing = home.script(json!([{"expect": "what is not there"}]));
    let ran = home.run(&["run", "--model", &failing, "--output-format", "json", "go"], "").await;
    check(&ran, 1, &[]);
    let result = &ran.lines()[0];
    assert!(result["error"].as_str().unwrap().contains("what is not there"), "{result}");
    assert_eq!((&result["stopReason"], &result["lastTurn"]["status"]), (&Value::Null, &json!("failed")));
    // A usage error prints nothing.
    let ran = home.run(&["run", "--model", "nonsense", "--output-format", "json", "go"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
}

#[tokio::test]
async fn other_output_formats_are_text_and_events() {
    let home = Home::new();
    let model = home.script(json!([{"text": "hello"}]));
    let ran = home.run(&["run", "--model", &model, "--output-format", "text", "go"], "").await;
    assert_eq!(ran.stdout, "hello\n", "{ran:?}");
    let ran = home.run(&["run", "--model", &model, "--output-format", "stream-json", "go"], "").await;
    assert_eq!(ran.lines().last().unwrap()["body"]["type"], "turn.completed");
    let line = format!("{}\n", json!({"type": "message", "content": "go"}));
    let ran = home.run(&["run", "--model", &model, "--output-format", "stream-json", "-"], &line).await;
    check(&ran, 0, &["turn.completed"]);
    check(&home.run(&["run", "--output-format", "xml", "go"], "").await, 2, &["xml", "stream-json"]);
    check(&home.run(&["run", "--json", "--output-format", "json", "go"], "").await, 2, &["--output-format"]);
}

#[tokio::test]
async fn last_message_matches_the_schema() {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    home.put("schema.json", &schema.to_string());
    let fenced = "```json\n{\"n\": 1}\n```";
    // Answers, exit code, words of the output.
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["{\"n\": 1}"], 0, &[]),
        (&[fenced], 0, &[]),
        (&["The number is 1.", "{\"n\": 1}"], 0, &["does not match", "not JSON"]),
        (&["{\"n\": \"1\"}", "{\"n\": 1}"], 0, &["/n: \"1\" is not of type \"integer\""]),
        (&["{}", "{\"n\": true}"], 1, &["does not match schema.json", "/n: true is not of type \"integer\""]),
    ];
    for (answers, code, words) in cases {
        let steps: Vec<Value> = answers.iter().map(|answer| json!({"text": answer})).collect();
        let model = home.script(json!(steps));
        let flags = ["--output-schema", "schema.json", "--output-format", "json", "-o", "out.json"];
        let ran = home.run(&[&["run", "--model", &model, "count"], &flags[..]].concat(), "").await;
        check(&ran, *code, words);
        let result = &ran.lines()[0];
        let sent = messages(&home).await;
        assert_eq!(sent.len(), answers.len());
        let first = sent[0][0]["text"].as_str().unwrap();
        assert!(first.starts_with("count\n\n") && first.contains("\"integer\""), "{first}");
        if *code == 0 {
            assert_eq!(result["output"], json!({"n": 1}), "{result}");
            assert_eq!(home.get("out.json").as_deref(), Some("{\"n\": 1}"));
        } else {
            assert!(result["output"].is_null() && result["error"].as_str().unwrap().contains("schema.json"), "{result}");
        }
        if let Some(second) = sent.get(1) {
            assert!(second[0]["text"].as_str().unwrap().contains("does not match the JSON Schema"), "{second}");
        }
    }
    // The last of several prompts asks for JSON.
    let model = home.script(json!([{"text": "hello"}, {"text": "{\"n\": 2}"}]));
    check(&home.run(&["run", "--model", &model, "-p", "one", "-p", "two", "--output-schema", "schema.json"], "").await, 0, &[]);
    assert_eq!(messages(&home).await[0][0]["text"], "one");
}

#[tokio::test]
async fn invalid_schema_is_an_error_before_the_turn() {
    let home = Home::new();
    let model = home.script(json!([]));
    let cases = [("{", "not JSON"), ("{\"type\": \"text\"}", "text"), ("{\"$ref\": \"other.json\"}", "other.json")];
    for (schema, word) in cases {
        home.put("schema.json", schema);
        let ran = home.run(&["run", "--model", &model, "go", "--output-schema", "schema.json"], "").await;
        check(&ran, 2, &["--output-schema schema.json", word]);
    }
    check(&home.run(&["run", "--model", &model, "go", "--output-schema", "missing"], "").await, 2, &["--output-schema missing"]);
    home.put("schema.json", "{}");
    let ran = home.run(&["run", "--model", &model, "--json", "-", "--output-schema", "schema.json"], "").await;
    check(&ran, 2, &["--output-schema: needs a prompt"]);
    assert_eq!(sessions(&home).await, Vec::<Value>::new());
}

#[tokio::test]
async fn title_and_mode_are_set() {
    let home = Home::new();
    let bash = json!({"tool_calls": [{"name": "bash", "input": {"command": "true"}}]});
    let model = home.script(json!([bash, {"text": "so be it"}]));
    check(&home.run(&["run", "--model", &model, "--auto", "--title", " A\n title ", "go"], "").await, 0, &["so be it"]);
    let listed = &sessions(&home).await[0];
    assert_eq!(listed["title"], "A title", "{listed}");
    let cases: &[&[&str]] = &[
        &["run", "--auto", "--mode", "plan", "go"],
        &["--mode", "auto", "run", "--auto", "go"],
        &["run", "--title", " ", "go"],
        &["run", "--title", "x", "--continue", "go"],
    ];
    for arguments in cases {
        check(&home.run(&[*arguments, &["--model", &model]].concat(), "").await, 2, &["--"]);
    }
}

#[tokio::test]
async fn ephemeral_session_is_deleted() {
    use rustix::process::{Pid, Signal, kill_process};
    let home = Home::new();
    let long = json!({"tool_calls": [{"name": "bash", "input": {"command": "seq 100000"}}]});
    let task = json!({"tool_calls": [{"name": "task", "input": {"prompt": "count", "description": "count"}}]});
    let failing = json!([{"expect": "what is not there"}]);
    for (steps, code) in [(json!([long, {"text": "done"}]), 0), (json!([task]), 0), (failing, 1)] {
        let model = home.script(steps);
        let ran = home.run(&["run", "--model", &model, "--auto", "--ephemeral", "--output-format", "json", "go"], "").await;
        check(&ran, code, &[]);
        let id = ran.lines()[0]["sessionId"].as_str().unwrap().to_string();
        check(&home.run(&["sessions", "show", &id], "").await, 2, &[]);
    }
    for signal in [Signal::INT, Signal::TERM] {
        let model = home.script(json!([{"text": "words ".repeat(1000), "delay_ms": 20}]));
        let mut running = RunningCommand::start(&home, &["run", "--model", &model, "--json", "--ephemeral", "go"]);
        running.end_input();
        running.until("message.delta").await;
        kill_process(Pid::from_raw(running.pid as i32).unwrap(), signal).unwrap();
        assert_eq!(running.end().await, 130);
    }
    check(&home.run(&["run", "--ephemeral", "--continue", "go"], "").await, 2, &["--ephemeral"]);
    assert_eq!(home.run(&["sessions", "list", "--all"], "").await.stdout, "");
    let left = [files(&home.data().join("artifacts")), files(&home.data().join("attachments"))].concat();
    assert_eq!(left, Vec::<String>::new());
    // What remains tells other processes of the deletion.
    let count = |selection: &str| home.sql(&format!("SELECT count(*) FROM {selection}"));
    assert_ne!(count("sessions"), ["0"]);
    assert_eq!(count("sessions WHERE title IS NOT NULL OR summary IS NOT NULL"), ["0"]);
    assert_eq!(count("events WHERE body <> '{\"type\":\"session.deleted\"}'"), ["0"]);
}

#[tokio::test]
async fn several_words_in_one_argument_are_a_prompt() {
    let home = Home::new();
    let model = home.script(json!([]));
    let cases: &[&[&str]] = &[
        &["fix the bug", "--model", &model],
        &["fix the bug", "and", "test", "--model", &model, "--plain"],
        &["--model", &model, "fix the bug"],
        &["--system-prompt", "fix the bug", "fix the bug", "--model", &model],
    ];
    for arguments in cases {
        check(&home.run(arguments, "").await, 0, &["done"]);
        assert!(messages(&home).await[0][0]["text"].as_str().unwrap().starts_with("fix the bug"), "{arguments:?}");
    }
    let count = sessions(&home).await.len();
    let cases: &[(&[&str], &[&str])] = &[
        (&["modles", "--model", &model], &["'modles'", "'models'"]),
        (&["modles ", "--model", &model], &["modles"]),
        (&["explain", "the code", "--model", &model], &["explain"]),
        (&["sessions", "show me", "--model", &model], &["show me"]),
        (&["fix the bug", "--no-such-flag", "--model", &model], &["--no-such-flag"]),
    ];
    for (arguments, words) in cases {
        check(&home.run(arguments, "").await, 2, words);
    }
    assert_eq!(sessions(&home).await.len(), count);
}

#[tokio::test]
async fn comparison_refuses_flags_of_one_session() {
    let home = Home::new();
    home.put("a.txt", "a");
    home.put("schema.json", "{}");
    let cases: &[(&[&str], &str)] = &[
        (&["--file", "a.txt"], "--file"),
        (&["--output-format", "json"], "--output-format json"),
        (&["--output-last-message", "out"], "--output-last-message"),
        (&["--output-schema", "schema.json"], "--output-schema"),
        (&["--title", "x"], "--title"),
        (&["--ephemeral"], "--ephemeral"),
    ];
    for (flags, name) in cases {
        let ran = home.run(&[&["run", "--agent", "nuncio", "--agent", "codex", "go"], *flags].concat(), "").await;
        check(&ran, 2, &[&format!("{name}: not available with several --agent")]);
    }
}

#[tokio::test]
async fn help_of_run_fits_eighty_columns() {
    let home = Home::new();
    let help = home.run(&["run", "--help"], "").await;
    check(&help, 0, &["--file", "--output-schema", "--ephemeral", "Examples:"]);
    let long: Vec<&str> = help.stdout.lines().filter(|line| line.chars().count() > 80).collect();
    assert_eq!(long, Vec::<&str>::new());
    assert_eq!(help.stdout.split("Examples:\n").nth(1).unwrap().lines().count(), 2, "{}", help.stdout);
    for command in [&["--help"][..], &["tool", "--help"]] {
        assert!(!home.run(command, "").await.stdout.contains("--ephemeral"), "{command:?}");
    }
}
