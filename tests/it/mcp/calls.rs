//! Calls of the tools of MCP servers: results, permissions, progress, cancellation.

use serde_json::{Value, json};

use super::{calls, home, setting, text, turn};
use harness::steps::calls_one;
use harness::{Home, tool};

#[tokio::test]
async fn results_of_all_kinds_reach_the_model_and_the_client() {
    let home = home(&["resources"]);
    let work = format!("file://{}", home.work().display());
    let cases = [
        ("mcp__docs__echo", json!({"text": "hello there"}), "completed", "hello there"),
        ("mcp__docs__add", json!({"a": 2, "b": 3}), "completed", r#"{"sum":5}"#),
        ("mcp__docs__image", json!({}), "completed", "a picture"),
        ("mcp__docs__fail", json!({}), "failed", "it is broken"),
        ("mcp__docs__roots", json!({}), "completed", work.as_str()),
        ("mcp_resource", json!({"server": "docs"}), "completed", "test://one: The first"),
        ("mcp_resource", json!({"server": "docs", "uri": "test://one"}), "completed", "text of test://one"),
        ("mcp_resource", json!({"server": "other"}), "failed", "server: use one of docs"),
        ("mcp__docs__missing", json!({}), "failed", "there is no tool mcp__docs__missing"),
    ];
    let mut steps: Vec<_> = cases.iter().map(|(name, input, ..)| calls_one(name, input.clone())).collect();
    for (index, (.., expected)) in cases.iter().enumerate().take(cases.len() - 1) {
        // The request with the result. In requests, quotes are escaped.
        if !expected.contains('"') {
            steps[index + 1]["expect"] = json!(expected);
        }
    }
    let finished = calls(&home, &steps).await;
    for ((name, _, status, expected), finished) in cases.iter().zip(&finished) {
        assert_eq!(finished["status"], *status, "{name}: {finished}");
        let content = finished["content"].to_string().replace("\\\"", "\"");
        assert!(content.contains(expected), "{name}: {content}");
    }
    assert_eq!(finished[0]["title"], r#"docs: echo {"text":"hello there"}"#);
    assert_eq!(finished[1]["rawOutput"], json!({"server": "docs", "tool": "add", "structuredContent": {"sum": 5}}));
    assert_eq!(finished[2]["content"][1]["content"]["mimeType"], "image/png");
}

#[tokio::test]
async fn big_result_is_truncated_and_stored_as_an_artifact() {
    let finished = calls(&home(&[]), &[calls_one("mcp__docs__big", json!({"bytes": 300_000}))]).await;
    let text = text(&finished[0]);
    assert!(text.len() < 60_000 && text.starts_with("first\n") && text.trim_end().ends_with("last"), "{} bytes", text.len());
    assert!(text.contains("bytes left out; all 300012 bytes are in "), "{}", &text[25_000..26_000]);
    assert_eq!(finished[0]["rawOutput"]["artifacts"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn results_of_any_size_are_bounded() {
    let steps = [
        calls_one("mcp__docs__big", json!({"bytes": 40_000, "parts": 300})),
        calls_one("mcp__docs__big", json!({"bytes": 1_000_000, "structured": true})),
        calls_one("mcp__docs__fail", json!({"refuse": 1_000_000})),
        calls_one("mcp_resource", json!({"server": "docs"})),
    ];
    let finished = calls(&home(&["resources=1900"]), &steps).await;
    for (finished, expected) in finished.iter().zip(["more parts", "short", "error 1: xxx", "more resources"]) {
        let shown = finished.to_string();
        assert!(shown.len() < 200_000 && shown.contains(expected), "{} bytes: {}", shown.len(), &shown[..1_000]);
    }
    let details = &finished[1]["rawOutput"];
    assert_eq!((&details["structuredContent"], details["artifacts"].as_array().map(Vec::len)), (&json!(null), Some(1)));
}

/// A provider refuses a whole request because of an invalid image.
#[tokio::test]
async fn only_valid_images_are_sent_to_the_model() {
    let cases = [
        (json!({}), "image/png", ""),
        (json!({"data": "GIF89a"}), "image/gif", ""),
        (json!({"data": "<html>no picture</html>"}), "23 bytes", "<html>no picture</html>"),
        (json!({"base64": "no base64!"}), "not base64", "no base64!"),
    ];
    let steps: Vec<_> = cases.iter().map(|(input, ..)| calls_one("mcp__docs__image", input.clone())).collect();
    for ((input, expected, stored), finished) in cases.iter().zip(calls(&home(&[]), &steps).await) {
        let content = &finished["content"][1]["content"];
        assert!(finished["status"] == "completed" && content.to_string().contains(expected), "{input}: {finished}");
        let artifact = finished["rawOutput"]["artifacts"][0].as_str().map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(artifact.unwrap_or_default(), *stored, "{input}: {finished}");
    }
}

#[tokio::test]
async fn rules_and_modes_decide_about_calls_regardless_of_hints() {
    let rule = |tool: &str, policy: &str| format!("[[permissions.rules]]\ntool = \"{tool}\"\npolicy = \"{policy}\"\n");
    let cases = [
        ("auto", String::new(), "completed", "hi"),
        ("auto", rule("mcp__docs__*", "deny"), "failed", "denied"),
        ("auto", rule("mcp__other__*", "deny"), "completed", "hi"),
        ("auto", "[[permissions.rules]]\nkind = \"mcp\"\npolicy = \"deny\"\n".into(), "failed", "denied"),
        ("ask", rule("mcp__docs__echo", "allow"), "completed", "hi"),
        ("ask", "[permissions]\ndefault = \"deny\"\n".into(), "failed", "denied"),
        ("plan", String::new(), "failed", "plan"),
    ];
    for (mode, rules, status, expected) in cases {
        let home = Home::new();
        home.config(&(rules.clone() + &setting("docs", &["resources"])));
        let steps = json!([calls_one("mcp__docs__echo", json!({"text": "hi"}))]);
        let (mut agent, session) = home.session(steps, &["--mode", mode]).await;
        let finished = &turn(&mut agent, &session, 1).await[0];
        assert_eq!(finished["status"], status, "{mode} {rules}: {finished}");
        assert!(text(finished).contains(expected), "{mode} {rules}: {finished}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn permission_request_shows_server_and_arguments() {
    let home = home(&[]);
    let steps = json!([calls_one("mcp__docs__echo", json!({"text": "hi"}))]);
    let (mut agent, session) = home.session(steps, &["--mode", "ask"]).await;
    let prompt = agent.prompt(&session, "go").await;
    let request = agent.until("a permission request", |frame| frame["method"] == "session/request_permission").await;
    let shown = &request["params"]["toolCall"];
    assert_eq!(shown["title"], r#"docs: echo {"text":"hi"}"#);
    assert!(shown["content"].to_string().contains("hi"), "{shown}");
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
}

#[tokio::test]
async fn progress_is_shown_while_the_call_runs() {
    let home = home(&[]);
    let steps = json!([calls_one("mcp__docs__progress", json!({}))]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    let shown: String = updates.iter().map(|update| update.to_string()).collect();
    assert!(shown.contains("3/3: part 3"), "{shown}");
    assert_eq!(text(&tool(&updates, 0)), "done");
    agent.finish().await;
}

#[tokio::test]
async fn many_progress_reports_are_shown_as_a_few() {
    let home = home(&[]);
    let steps = json!([calls_one("mcp__docs__progress", json!({"reports": 500}))]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    let shown: Vec<String> = updates.iter().map(Value::to_string).filter(|update| update.contains("/500: part")).collect();
    assert!(shown.len() <= 25, "{} reports are shown", shown.len());
    assert!(shown.last().unwrap().contains("500/500: part 500"), "{shown:?}");
    agent.finish().await;
}

#[tokio::test]
async fn secrets_of_cloud_services_reach_only_servers_that_name_them() {
    let home = Home::new();
    home.env("AWS_SECRET_ACCESS_KEY", "secret");
    let environment = || calls_one("mcp__docs__environment", json!({"name": "AWS_SECRET_ACCESS_KEY"}));
    for (more, expected) in [("", "none"), ("env = { AWS_SECRET_ACCESS_KEY = \"$AWS_SECRET_ACCESS_KEY\" }\n", "secret")] {
        home.config(&(setting("docs", &[]) + more));
        assert_eq!(text(&calls(&home, &[environment()]).await[0]), expected);
    }
}

#[tokio::test]
async fn cancelled_turn_cancels_the_call_on_the_server() {
    let home = Home::new();
    let log = home.put("../server.log", "");
    home.config(&setting("docs", &[&format!("log={}", log.display())]));
    let steps = json!([calls_one("mcp__docs__hang", json!({})), {"text": "unreached"}, calls_one("mcp__docs__echo", json!({"text": "hi"}))]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let prompt = agent.prompt(&session, "go").await;
    agent.until("the running call", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    super::logged(&log, "tools/call", 1).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    agent.turn(&session, "again").await;
    let (_, updates) = agent.turn(&session, "again").await;
    assert_eq!(text(&tool(&updates, 0)), "hi", "the server still works");
    agent.finish().await;
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("tools/call\nnotifications/cancelled\ntools/call"), "{log}");
}

#[tokio::test]
async fn call_without_an_answer_times_out() {
    let home = Home::new();
    home.config(&(setting("docs", &[]) + "timeout_s = 1\n"));
    let finished = calls(&home, &[calls_one("mcp__docs__hang", json!({}))]).await;
    assert_eq!(finished[0]["status"], "failed");
    assert!(text(&finished[0]).contains("no answer and no progress report within 1 s"), "{}", finished[0]);
}

#[tokio::test]
async fn server_gets_its_variables_and_no_keys() {
    let home = Home::new();
    home.env("ANTHROPIC_API_KEY", "sk-secret-value");
    home.env("TOKEN_OF_DOCS", "docs-token");
    home.config(&(setting("docs", &[]) + "env = { TOKEN = \"$TOKEN_OF_DOCS\", PLAIN = \"plain\", DOLLAR = \"$$x\" }\n"));
    let names = ["TOKEN", "PLAIN", "DOLLAR", "TOKEN_OF_DOCS", "ANTHROPIC_API_KEY"];
    let steps: Vec<_> = names.iter().map(|name| calls_one("mcp__docs__environment", json!({"name": name}))).collect();
    let values: Vec<String> = calls(&home, &steps).await.iter().map(text).collect();
    assert_eq!(values, ["docs-token", "plain", "$x", "none", "none"]);
}

/// A session's project can name keys that the process does not know at its start.
#[tokio::test]
async fn server_gets_no_keys_of_the_settings_of_its_project() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.env("PROJECT_KEY", "secret-value");
    home.env("GIVEN_KEY", "given-value");
    let providers = ["PROJECT_KEY", "GIVEN_KEY"]
        .map(|name| format!("[providers.{}]\nbase_url = \"http://127.0.0.1:9\"\napi_key_env = \"{name}\"\n", name.to_lowercase()));
    let server = setting("docs", &[]) + "env = { GIVEN_KEY = \"$GIVEN_KEY\" }\n";
    home.put("sub/.nuncio/config.toml", &(providers.concat() + &server));
    assert_eq!(home.run(&["trust", "sub"], "").await.code, 0);
    let names = ["PROJECT_KEY", "GIVEN_KEY"];
    let steps: Vec<_> = names.iter().map(|name| calls_one("mcp__docs__environment", json!({"name": name}))).collect();
    let model = home.script(json!(steps));
    let mut agent = home.start(&["--model", &model, "--mode", "auto"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let made = agent.call("session/new", json!({"cwd": home.work().join("sub"), "mcpServers": []})).await;
    let session = made["sessionId"].as_str().unwrap().to_owned();
    let values: Vec<String> = turn(&mut agent, &session, 2).await.iter().map(text).collect();
    assert_eq!(values, ["none", "given-value"]);
    agent.finish().await;
}

#[tokio::test]
async fn tool_command_calls_tools_of_servers() {
    let home = home(&[]);
    let ran = home.run(&["tool", "--mode", "auto", "mcp__docs__echo", r#"{"text":"hi"}"#], "").await;
    assert_eq!((ran.code, &ran.lines()[0]["output"]), (0, &json!("hi")), "{ran:?}");
    let ran = home.run(&["tool", "--mode", "auto", "mcp__docs__none", "{}"], "").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = home.run(&["tool", "mcp__docs__echo", "{}"], "").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    home.config(&setting("docs", &["many=200"]));
    let ran = home.run(&["tool", "--mode", "auto", "mcp__docs__echo", r#"{"text":"hi"}"#], "").await;
    assert_eq!((ran.code, &ran.lines()[0]["output"]), (0, &json!("hi")), "also if models search for tools: {ran:?}");
}
