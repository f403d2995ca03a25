//! MCP servers and `nuncio run` on a terminal: the wait for servers, forms and progress.

use serde_json::{Value, json};

use super::{home, setting};
use harness::log::bodies;
use harness::steps::calls_one;
use harness::{Home, Terminal};

/// Starts `nuncio run` with these steps on a terminal, in mode auto.
fn run(home: &Home, steps: Value) -> Terminal {
    let model = home.script(steps);
    home.terminal(&["run", "--model", &model, "--mode", "auto", "go"])
}

#[tokio::test]
async fn run_shows_the_wait_for_a_slow_server_and_uses_its_tools() {
    let home = Home::new();
    let release = home.work().join("../release");
    home.config(&setting("docs", &[&format!("wait={}", release.display())]));
    let mut terminal = run(&home, json!([calls_one("mcp__docs__echo", json!({"text": "from the server"})), {"text": "bye"}]));
    terminal.until("waiting for MCP server docs: ").await;
    std::fs::write(release, "").unwrap();
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("from the server"), "{shown}");
}

#[tokio::test]
async fn enter_ends_the_wait_for_a_slow_server() {
    let home = home(&["hang"]);
    let mut terminal = run(&home, json!([{"text": "without it"}]));
    let shown = terminal.until("Enter continues").await;
    assert!(shown.contains("waiting for MCP server docs: "), "{shown}");
    terminal.say("\n").await;
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("without it") && shown.contains("docs is still starting"), "{shown}");
}

#[tokio::test]
async fn wait_is_limited_by_the_setting() {
    let home = Home::new();
    home.config(&format!("[tools]\nmcp_wait_run_s = 2\n{}", setting("docs", &["hang"])));
    let model = home.script(json!([{"text": "without it"}]));
    let ran = home.run(&["run", "--model", &model, "go"], "").await;
    assert!(ran.code == 0 && ran.stderr.contains("waiting for MCP server docs: at most 1 s"), "{ran:?}");
}

#[tokio::test]
async fn form_is_filled_in_at_the_terminal() {
    let home = home(&["asks"]);
    let fields = json!({
        "a_name": {"type": "string", "title": "Name", "minLength": 2},
        "b_age": {"type": "integer", "default": 36},
        "c_colour": {"type": "string", "enum": ["red", "green"]},
        "d_note": {"type": "string"},
    });
    let schema = json!({"type": "object", "properties": fields, "required": ["a_name", "c_colour"]});
    let ask = calls_one("mcp__docs__ask", json!({"message": "Who are you?", "schema": schema}));
    let mut terminal = run(&home, json!([ask, {"text": "bye"}]));
    let shown = terminal.until("[text]: ").await;
    assert!(shown.contains("docs asks: Who are you?") && shown.contains("Name"), "{shown}");
    // The first line is too short, and an empty line does not answer a required field.
    for (line, next) in [
        ("A\n", "at least 2 characters\n  [text]: "),
        ("Ada\n", "[whole number, empty: 36]: "),
        ("\n", "2. green\n  [number]: "),
        ("\n", "a value is required\n  [number]: "),
        ("2\n", "[text, empty: none]: "),
    ] {
        terminal.say(line).await;
        terminal.until(next).await;
    }
    terminal.say("\n").await;
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("bye"), "{shown}");
    let id = home.run(&["sessions", "list", "--json"], "").await.lines()[0]["sessionId"].as_str().unwrap().to_owned();
    let log = home.log(&id).await;
    let ended = bodies(&log, "tool.completed")[0];
    let answer: Value = serde_json::from_str(ended["content"][0]["content"]["text"].as_str().unwrap()).unwrap();
    let content = json!({"a_name": "Ada", "b_age": 36, "c_colour": "green"});
    assert_eq!(answer, json!({"action": "accept", "content": content}), "{ended}");
}

#[tokio::test]
async fn form_in_the_chat_takes_the_text_only_after_tab() {
    let size = (24, 80);
    let home = home(&["asks"]);
    let fields = json!({"a_name": {"type": "string", "minLength": 2}, "b_age": {"type": "integer", "default": 36}});
    let schema = json!({"type": "object", "properties": fields, "required": ["a_name"]});
    let ask = calls_one("mcp__docs__ask", json!({"message": "Who are you?", "schema": schema}));
    let model = home.script(json!([ask, ask, {"text": "bye"}]));
    let mut terminal = home.terminal(&["chat", "--model", &model, "--mode", "auto", "go"]);
    terminal.until_screen("docs asks: Who are you?", size).await;
    for (typed, words) in [
        ("later", "> later"),
        ("\t", "Enter: the next field"),
        ("A\r", "at least 2 characters"),
        ("\u{15}Ada\r", "[whole number, empty: 36]"),
        ("", "Enter: the next field"),
        ("\r", "a_name\n  [text]\n> later"),
        ("\t", "? \n"),
        ("\u{1b}", "bye\n"),
    ] {
        terminal.say(typed).await;
        terminal.until_screen(words.trim_end_matches(" \n"), size).await;
    }
    terminal.until_screen("> later", size).await;
    terminal.say("\u{15}\u{4}").await;
    assert_eq!(terminal.end().await.0, 0);
    let id = home.run(&["sessions", "list", "--json"], "").await.lines()[0]["sessionId"].as_str().unwrap().to_owned();
    let log = home.log(&id).await;
    let answers: Vec<Value> = bodies(&log, "tool.completed")
        .iter()
        .map(|ended| serde_json::from_str(ended["content"][0]["content"]["text"].as_str().unwrap()).unwrap())
        .collect();
    let accepted = json!({"action": "accept", "content": {"a_name": "Ada", "b_age": 36}});
    assert_eq!(answers, [accepted, json!({"action": "decline"})], "{log:?}");
}

#[tokio::test]
async fn progress_of_a_call_is_shown_while_it_runs() {
    let home = home(&[]);
    let mut terminal = run(&home, json!([calls_one("mcp__docs__progress", json!({})), {"text": "bye"}]));
    terminal.until("part 3").await;
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("done"), "{shown}");
}
