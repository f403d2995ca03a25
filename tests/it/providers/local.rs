//! Local servers without settings are used only after identification, with a notice.

use serde_json::{Value, json};

use crate::harness::{Home, Ran, Site};

const JSON: &str = "200 OK\ncontent-type: application/json";

/// Answers like Ollama.
fn ollama(site: &Site) {
    let model = |id: &str| json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "library"});
    let models = json!({"object": "list", "data": [model("nomic-embed-text:latest"), model("qwen3-coder:30b")]});
    site.page("/v1/models", JSON, models.to_string());
    site.page("/api/version", JSON, r#"{"version":"0.12.3"}"#);
}

fn chat(site: &Site) {
    let chunk =
        |delta: Value, reason: Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta, "finish_reason": reason}]}));
    let said = chunk(json!({"content": "Hello"}), Value::Null) + &chunk(json!({}), "stop".into()) + "data: [DONE]\n\n";
    site.page("/v1/chat/completions", "200 OK\ncontent-type: text/event-stream", said);
}

fn posts(site: &Site) -> Vec<String> {
    site.asked().into_iter().filter(|head| !head.starts_with("GET ")).collect()
}

async fn run(site: &Site) -> (Home, Ran) {
    let home = Home::new();
    home.env("OLLAMA_HOST", &site.host);
    let ran = home.run(&["run", "a secret plan"], "").await;
    (home, ran)
}

#[tokio::test]
async fn local_model_server_is_used_and_reported() {
    let site = Site::start().await;
    ollama(&site);
    chat(&site);
    let (home, ran) = run(&site).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello\n"), "{ran:?}");
    assert!(ran.stderr.contains("ollama/qwen3-coder:30b") && ran.stderr.contains(&site.host), "{ran:?}");
    let doctor = home.run(&["doctor"], "").await;
    assert!(doctor.stdout.contains("ollama/qwen3-coder:30b") && doctor.stdout.contains(&site.host), "{doctor:?}");
    // An ACP client gets the notice once per session.
    let mut agent = home.start(&[]).await;
    let capabilities = json!({ "session": { "notices": {} } });
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(&home).await;
    let mut told = Vec::new();
    for _ in 0..2 {
        let (_, updates) = agent.turn(&session, "hi").await;
        told.push(
            updates.iter().filter(|update| update["sessionUpdate"] == "notice" && update.to_string().contains(&site.host)).count(),
        );
    }
    agent.finish().await;
    assert_eq!(told, [1, 0]);
}

/// Other services at the port of a model server.
#[tokio::test]
async fn prompt_is_not_sent_to_unidentified_local_server() {
    let model = json!({"id": "qwen3", "object": "model", "owned_by": "library"});
    let strangers: Vec<(&str, &str, String, bool)> = vec![
        ("HTML", "200 OK\ncontent-type: text/html", "<!doctype html><h1>It works</h1>".into(), false),
        ("an empty object", JSON, "{}".into(), true),
        ("an empty list", JSON, r#"{"object":"list","data":[]}"#.into(), true),
        ("another JSON", JSON, r#"{"data":[{"id":"user-1","name":"Ann"}],"total":1}"#.into(), true),
        ("ids of another API", JSON, r#"{"object":"list","data":[{"id":"cus_1","object":"customer"}]}"#.into(), true),
        ("a list of models without the mark of the server", JSON, json!({"object": "list", "data": [model]}).to_string(), false),
        ("something that is all of that in text", JSON, format!("\"{}\"", "data id model list".repeat(10)), true),
        ("without end", JSON, format!("{{\"object\":\"list\",\"data\":[{}", " ".repeat(8 << 20)), true),
    ];
    for (what, head, body, marked) in strangers {
        let site = Site::start().await;
        site.page("/v1/models", head, &body);
        chat(&site);
        match marked {
            true => site.page("/api/version", JSON, r#"{"version":"1.0"}"#),
            false => site.page("/api/version", "404 Not Found", ""),
        }
        let (_, ran) = run(&site).await;
        assert_eq!(posts(&site), Vec::<String>::new(), "{what}: {ran:?}");
        assert_eq!(ran.code, 3, "{what}: {ran:?}");
    }
}
