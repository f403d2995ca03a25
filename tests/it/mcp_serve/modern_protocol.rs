//! Protocol 2026-07-28, as the default client of the Python SDK uses it: `server/discover` instead of
//! `initialize`, and permission requests as results that the client completes with a second request.

use serde_json::{Value, json};

use super::Client;
use harness::Home;
use harness::log::bodies;
use harness::steps::bash;

const VERSION: &str = "2026-07-28";

fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// Calls `delegate`; `more` has the answers to the forms of an earlier result.
async fn delegate(client: &mut Client, capabilities: &Value, mut more: Value) -> Value {
    let params = more.as_object_mut().unwrap();
    params.insert("name".into(), "delegate".into());
    params.insert("arguments".into(), json!({"prompt": "work"}));
    params.insert("_meta".into(), meta(capabilities));
    client.call("tools/call", more).await["result"].clone()
}

#[tokio::test]
async fn permission_request_is_a_result_that_the_client_completes() {
    let accept = |option: &str| json!({"action": "accept", "content": {"decision": option}});
    // The answer to the form, whether the command ran, and what the model learns.
    let cases = [
        (accept("allow_once"), true, "allow_once"),
        (accept("reject_once"), false, "denied by the user"),
        (json!({"action": "decline"}), false, "denied by the user: declined"),
        (accept("whatever"), false, "denied: the client's answer was not one of the options"),
        (json!({"no": "result"}), false, "denied: the client did not answer the permission request"),
    ];
    let forms = json!({"elicitation": {"form": {}}});
    for (answer, made, learned) in cases {
        let home = Home::new();
        let model = home.script(json!([bash("touch made"), {"text": "finished"}]));
        let mut client = Client::spawn(&home, &["--model", &model]);
        let discovered = client.call("server/discover", json!({"_meta": meta(&forms)})).await["result"].clone();
        assert!(discovered["supportedVersions"].as_array().unwrap().contains(&json!(VERSION)), "{discovered}");
        let asked = delegate(&mut client, &forms, json!({})).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let requests = asked["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        assert_eq!((requests.len(), &request["method"]), (1, &json!("elicitation/create")), "{asked}");
        assert!(request["params"]["message"].as_str().unwrap().contains("`touch made`"), "{asked}");
        let state = &asked["requestState"];
        let ended = delegate(&mut client, &forms, json!({"inputResponses": {key: answer}, "requestState": state})).await;
        assert_eq!((&ended["content"][0]["text"], &ended["isError"]), (&json!("finished"), &json!(false)), "{ended}");
        assert_eq!(home.get("made").is_some(), made, "{answer}");
        // The call has ended, so its state is unknown.
        let again = delegate(&mut client, &forms, json!({"inputResponses": {}, "requestState": state})).await;
        assert!(again["isError"] == true && again.to_string().contains("no call of this server waits"), "{again}");
        client.finish().await;
        let log = home.log(ended["structuredContent"]["sessionId"].as_str().unwrap()).await;
        let resolved = format!("{} {}", bodies(&log, "permission.resolved")[0], bodies(&log, "tool.completed")[0]);
        assert!(resolved.contains(learned), "{learned}: {resolved}");
    }
}

#[tokio::test]
async fn request_without_its_answer_gets_the_form_again() {
    let forms = json!({"elicitation": {}});
    let home = Home::new();
    let model = home.script(json!([bash("touch made"), {"text": "finished"}]));
    let mut client = Client::spawn(&home, &["--model", &model]);
    let asked = delegate(&mut client, &forms, json!({})).await;
    let again = delegate(&mut client, &forms, json!({"requestState": asked["requestState"]})).await;
    assert_eq!((&again["inputRequests"], &again["requestState"]), (&asked["inputRequests"], &asked["requestState"]));
    // The end of the input ends the turn that waits.
    client.finish().await;
}

#[tokio::test]
async fn client_without_forms_is_told_that_nobody_can_answer() {
    let home = Home::new();
    let model = home.script(json!([bash("touch made"), {"text": "finished"}]));
    let mut client = Client::spawn(&home, &["--model", &model]);
    let ended = delegate(&mut client, &json!({}), json!({})).await;
    assert_eq!((&ended["content"][0]["text"], home.get("made")), (&json!("finished"), None), "{ended}");
    client.finish().await;
    let log = home.log(ended["structuredContent"]["sessionId"].as_str().unwrap()).await;
    let completed = bodies(&log, "tool.completed")[0].to_string();
    assert!(completed.contains("denied") && !completed.contains("by the user"), "{completed}");
}

/// A client of an earlier version that fails to show the form.
#[tokio::test]
async fn error_of_the_client_is_no_denial_by_the_user() {
    let home = Home::new();
    let model = home.script(json!([bash("touch made"), {"text": "finished"}]));
    let mut client = Client::start(&home, json!({"elicitation": {}}), &["--model", &model]).await;
    client.answers.push_back(json!({"error": {"code": -32603, "message": "no window"}}));
    let (_, output, _) = client.delegate(json!({"prompt": "work"})).await;
    client.finish().await;
    let log = home.log(output["sessionId"].as_str().unwrap()).await;
    let completed = bodies(&log, "tool.completed")[0].to_string();
    assert!(completed.contains("denied: the client did not answer the permission request"), "{completed}");
    assert!(completed.contains("no window"), "{completed}");
}

#[tokio::test]
async fn delegate_works_only_in_the_directories_of_the_server() {
    let home = Home::new();
    home.put("inner/file", "");
    home.put("../other/file", "");
    let other = std::fs::canonicalize(home.work().join("../other")).unwrap();
    let model = home.script(json!([{"text": "done"}, {"text": "done"}, {"text": "done"}]));
    let mut client = Client::start(&home, json!({}), &["--model", &model]).await;
    for (cwd, works) in [("/", false), ("..", false), (other.to_str().unwrap(), false), ("inner", true)] {
        let (text, _, failed) = client.delegate(json!({"prompt": "work", "cwd": cwd})).await;
        assert_eq!((failed, text.contains("outside the allowed roots")), (!works, !works), "{cwd}: {text}");
    }
    client.finish().await;
    let mut client = Client::start(&home, json!({}), &["--model", &model, "--root", other.to_str().unwrap()]).await;
    for (cwd, works) in [("/", false), (other.to_str().unwrap(), true), ("inner", true)] {
        let (text, _, failed) = client.delegate(json!({"prompt": "work", "cwd": cwd})).await;
        assert_eq!(failed, !works, "{cwd}: {text}");
    }
    client.finish().await;
}
