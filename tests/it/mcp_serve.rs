//! `nuncio mcp serve`: an MCP client, as lines of JSON-RPC, delegates tasks to nuncio.

mod modern_protocol;

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use harness::marker;
use harness::steps::{bash, says};
use harness::subagents::define;
use harness::{Home, bounded, gone};

/// The tools for hosted agents.
pub const WORKSPACE_TOOLS: [&str; 7] = [
    "delegate",
    "workspace_status",
    "workspace_metadata",
    "workspace_set_metadata",
    "workspace_create",
    "workspace_delete",
    "workspace_execute",
];

/// An MCP client of a running `nuncio mcp serve`.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    marker: String,
    next_id: u64,
    /// Results of the next elicitations, or `{error}`; without one, an elicitation stays open.
    pub answers: VecDeque<Value>,
    /// Params of the received elicitations and progress notifications.
    elicited: Vec<Value>,
    progress: Vec<Value>,
}

impl Client {
    /// Starts the server.
    fn spawn(home: &Home, flags: &[&str]) -> Client {
        let marker = marker();
        home.env("NUNCIO_TEST", &marker);
        let mut child = home.spawn(&[&["mcp", "serve"], flags].concat());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdin = child.stdin.take();
        let (answers, elicited, progress) = (VecDeque::new(), Vec::new(), Vec::new());
        Client { child, stdin, lines, marker, next_id: 0, answers, elicited, progress }
    }

    /// Starts the server and initializes it.
    pub async fn start(home: &Home, capabilities: Value, flags: &[&str]) -> Client {
        let mut client = Client::spawn(home, flags);
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info});
        let result = client.call("initialize", params).await["result"].clone();
        assert_eq!(
            (&result["serverInfo"]["name"], &result["protocolVersion"]),
            (&json!("nuncio"), &json!("2025-06-18")),
            "{result}"
        );
        client.write(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn write(&mut self, message: Value) {
        self.stdin.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.write(json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})).await;
        self.next_id
    }

    /// Reads a message and handles it if it is a notification or a request. Returns a response.
    async fn message(&mut self) -> Option<Value> {
        let line = bounded("a message", self.lines.next_line()).await.unwrap().expect("the server runs");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        match message["method"].as_str() {
            None => return Some(message),
            Some("notifications/progress") => self.progress.push(message["params"].clone()),
            Some("elicitation/create") => {
                self.elicited.push(message["params"].clone());
                if let Some(result) = self.answers.pop_front() {
                    let outcome = if result["error"].is_null() { json!({"result": result}) } else { result };
                    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},", message["id"]);
                    let line = head + &outcome.to_string()[1..] + "\n";
                    self.stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
                }
            }
            Some("notifications/cancelled") => {}
            Some(_) => panic!("{message}"),
        }
        None
    }

    async fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.message().await {
                assert_eq!(answer["id"], id, "{answer}");
                return answer;
            }
        }
    }

    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls `delegate`. Returns its text, its structured content and whether it is an error.
    pub async fn delegate(&mut self, arguments: Value) -> (String, Value, bool) {
        let params = json!({"name": "delegate", "arguments": arguments, "_meta": {"progressToken": 7}});
        let answer = self.call("tools/call", params).await;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (text.into(), result["structuredContent"].clone(), result["isError"] == true)
    }

    /// Ends the input, and asserts that the server ends without a process left.
    pub async fn finish(mut self) {
        drop(self.stdin.take());
        let status = bounded("the exit", self.child.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0));
        gone(&self.marker).await;
    }
}

#[tokio::test]
async fn delegate_returns_answer_and_continues_session() {
    let home = Home::new();
    let model = home.script(json!([
        {"text": "I look.", "tool_calls": [{"name": "list", "input": {}}]},
        {"expect": "count the files", "text": "There are none."},
    ]));
    let mut client = Client::start(&home, json!({}), &["--model", &model]).await;
    let listed = client.call("tools/list", json!({})).await;
    let tool = &listed["result"]["tools"][0];
    assert_eq!(tool["name"], "delegate", "{listed}");
    assert_eq!(tool["inputSchema"]["required"], json!(["prompt"]), "{listed}");
    assert!(tool["outputSchema"]["properties"]["sessionId"].is_object(), "{listed}");

    let (text, output, failed) = client.delegate(json!({"prompt": "count the files"})).await;
    assert_eq!((text.as_str(), failed, &output["stopReason"]), ("There are none.", false, &json!("end_turn")), "{output}");
    assert!(output["usage"]["inputTokens"].as_u64().unwrap() > 0, "{output}");
    let session = output["sessionId"].as_str().unwrap();
    let (_, again, failed) = client.delegate(json!({"prompt": "count the files again", "session": session, "mode": "plan"})).await;
    assert_eq!((&again["sessionId"], failed), (&json!(session), false), "{again}");
    assert_ne!(output["turnId"], again["turnId"]);
    let ids: Vec<f64> = client.progress.iter().map(|progress| progress["progress"].as_f64().unwrap()).collect();
    assert!(!ids.is_empty() && client.progress.iter().all(|progress| progress["progressToken"] == 7), "{:?}", client.progress);
    client.finish().await;
    let log = home.log(session).await;
    assert_eq!(harness::log::bodies(&log, "turn.completed").len(), 2);
}

#[tokio::test]
async fn invalid_calls_are_errors_of_the_tool() {
    let home = Home::new();
    define(&home, "reader", "tools: Read\n", json!([]));
    let model = home.script(json!([{"error": {"status": 400, "times": 99}}]));
    let mut client = Client::start(&home, json!({}), &["--model", &model]).await;
    let cases = [
        (json!({}), "missing field `prompt`"),
        (json!({"prompt": " "}), "prompt: is empty"),
        (json!({"prompt": "x", "folder": "y"}), "unknown field `folder`"),
        (json!({"prompt": "x", "mode": "fast"}), "unknown mode fast"),
        (json!({"prompt": "x", "cwd": "missing"}), "is not a directory"),
        (json!({"prompt": "x", "agent": "nothing"}), "there is no agent nothing"),
        (json!({"prompt": "x", "agent": "reader"}), "limits its tools"),
        (json!({"prompt": "x", "session": "sess_unknown"}), "was not created by this server"),
        (json!({"prompt": "x"}), "HTTP 400"),
    ];
    for (arguments, expected) in cases {
        let (text, _, failed) = client.delegate(arguments.clone()).await;
        assert!(failed && text.contains(expected), "{arguments}: {text}");
    }
    let unknown = client.call("tools/call", json!({"name": "other", "arguments": {}})).await;
    assert!(unknown["error"]["message"].as_str().unwrap().contains("no tool other"), "{unknown}");
    client.finish().await;
}

#[tokio::test]
async fn permission_requests_become_elicitations() {
    let form = json!({"elicitation": {}});
    let accept = |option: &str| json!({"action": "accept", "content": {"decision": option}});
    // Capabilities, mode, answer; number of questions, whether the command ran.
    let cases = [
        ("allowed", form.clone(), "ask", Some(accept("allow_once")), 1, true),
        ("rejected", form.clone(), "ask", Some(accept("reject_once")), 1, false),
        ("not an option", form.clone(), "ask", Some(accept("whatever")), 1, false),
        ("declined", form.clone(), "ask", Some(json!({"action": "decline"})), 1, false),
        ("dismissed", form.clone(), "ask", Some(json!({"action": "cancel"})), 1, false),
        ("no answer before the deadline", form.clone(), "ask", None, 1, false),
        ("no elicitation", json!({}), "ask", None, 0, false),
        ("allowed by the mode", json!({}), "auto", None, 0, true),
    ];
    for (name, capabilities, mode, answer, questions, made) in cases {
        let home = Home::new();
        let answer_is_missing = answer.is_none() && questions == 1;
        if answer_is_missing {
            home.config("[permissions]\ntimeout_s = 1\n");
        }
        let model = home.script(json!([bash("touch made"), {"text": "finished"}]));
        let mut client = Client::start(&home, capabilities, &["--model", &model, "--mode", "auto"]).await;
        client.answers.extend(answer);
        let (text, _, failed) = client.delegate(json!({"prompt": "work", "mode": mode})).await;
        let expected = if answer_is_missing { "\n[stopped: no answer to a permission request]" } else { "finished" };
        assert_eq!((text.as_str(), failed), (expected, false), "{name}");
        assert_eq!((client.elicited.len(), home.get("made").is_some()), (questions, made), "{name}: {:?}", client.elicited);
        if let Some(question) = client.elicited.first() {
            assert!(question["message"].as_str().unwrap().contains("`touch made`"), "{question}");
            let options = question["requestedSchema"]["properties"]["decision"]["enum"].as_array().unwrap();
            assert!(options.contains(&json!("allow_once")), "{question}");
        }
        client.finish().await;
    }
}

#[tokio::test]
async fn call_cannot_allow_more_than_the_server() {
    let home = Home::new();
    define(&home, "doer", "mode: auto\n", json!([bash("touch made"), {"text": "finished"}]));
    let steps = json!([bash("touch made"), {"text": "finished"}]);
    for (own, mode, made) in [("ask", "auto", false), ("auto", "plan", false), ("auto", "auto", true)] {
        let model = home.script(steps.clone());
        let mut client = Client::start(&home, json!({}), &["--model", &model, "--mode", own]).await;
        let (_, output, failed) = client.delegate(json!({"prompt": "work", "mode": mode})).await;
        assert_eq!((failed, home.get("made").is_some()), (false, made), "{own} {mode}");
        if !made {
            let again = json!({"prompt": "work", "session": output["sessionId"], "mode": mode});
            assert_eq!((client.delegate(again).await.2, home.get("made")), (false, None), "{own} {mode}");
        }
        client.finish().await;
    }
    std::fs::remove_file(home.work().join("made")).unwrap();
    let mut client = Client::start(&home, json!({}), &[]).await;
    assert_eq!(client.delegate(json!({"prompt": "work", "agent": "doer"})).await.0, "finished");
    assert_eq!(home.get("made"), None);
    client.finish().await;
}

#[tokio::test]
async fn sessions_of_others_cannot_be_continued() {
    let home = Home::new();
    let model = home.script(json!([{"text": "the secret is 42"}]));
    assert_eq!(home.run(&["run", "--model", &model, "remember"], "").await.code, 0);
    let listed = home.run(&["sessions", "list", "--json"], "").await.lines();
    let mut client = Client::start(&home, json!({}), &["--model", &model]).await;
    let (text, _, failed) = client.delegate(json!({"prompt": "what?", "session": listed[0]["sessionId"]})).await;
    assert!(failed && text.contains("was not created by this server"), "{text}");
    client.finish().await;
}

#[tokio::test]
async fn elicitation_shows_the_diff_of_a_change() {
    let home = Home::new();
    home.put("a.txt", "old line\n");
    let write = json!({"name": "write", "input": {"file_path": "a.txt", "content": "new line\n"}});
    let read = json!({"name": "read", "input": {"file_path": "a.txt"}});
    let model = home.script(json!([harness::steps::calls(&[read, write]), {"text": "finished"}]));
    let mut client = Client::start(&home, json!({"elicitation": {}}), &["--model", &model]).await;
    client.answers.push_back(json!({"action": "decline"}));
    client.delegate(json!({"prompt": "work"})).await;
    let message = client.elicited[0]["message"].as_str().unwrap();
    assert!(message.contains("-old line\n+new line\n"), "{message}");
    client.finish().await;
}

#[tokio::test]
async fn cancel_and_end_of_input_end_the_turn() {
    for cancels in [true, false] {
        let home = Home::new();
        let model = home.script(json!([bash("touch running; exec sleep 1000")]));
        let mut client = Client::start(&home, json!({}), &["--model", &model, "--mode", "auto"]).await;
        let params = json!({"name": "delegate", "arguments": {"prompt": "work"}});
        let id = client.send("tools/call", params).await;
        home.appears("running").await;
        if cancels {
            client.write(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})).await;
            // The turn has ended when its session can be listed as idle: a later call still works.
            let (text, _, _) = client.delegate(json!({"prompt": "x", "agent": "nothing"})).await;
            assert!(text.contains("there is no agent"), "{text}");
        }
        client.finish().await;
        let listed = home.run(&["sessions", "list", "--json"], "").await.lines();
        assert_eq!(listed.len(), 1, "{listed:?}");
        let log = home.log(listed[0]["sessionId"].as_str().unwrap()).await;
        assert_eq!(harness::log::bodies(&log, "turn.cancelled").len(), 1, "{log:#?}");
    }
}

#[tokio::test]
async fn delegate_uses_agent_definitions_and_the_depth_limit() {
    let home = Home::new();
    define(&home, "explorer", "mode: plan\n", json!([says("You are explorer", "found")]));
    let model = home.script(json!([{"text": "from the default model"}]));
    let mut client = Client::start(&home, json!({}), &["--model", &model]).await;
    assert_eq!(client.delegate(json!({"prompt": "look", "agent": "explorer"})).await.0, "found");
    client.finish().await;

    home.env("NUNCIO_DEPTH", "4");
    let mut client = Client::start(&home, json!({}), &["--model", &model]).await;
    let (text, _, failed) = client.delegate(json!({"prompt": "look"})).await;
    assert!(failed && text.contains("at most 3 levels of subagents"), "{text}");
    client.finish().await;
}

#[tokio::test]
async fn mode_of_a_session_of_another_process_limits_the_tools() {
    let home = crate::workspaces::repository();
    let (agent, session) = home.session(json!([]), &["--mode", "plan"]).await;
    home.env("NUNCIO_SESSION", &session);
    let model = home.script(json!([{"text": "done"}]));
    let mut client = Client::start(&home, json!({}), &["--mode", "auto", "--model", &model]).await;
    let answer = client.call("tools/call", json!({"name": "workspace_create", "arguments": {}})).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(answer.to_string().contains("mode plan allows no changes"), "{answer}");
    let answer = client.call("tools/call", json!({"name": "delegate", "arguments": {"prompt": "x", "mode": "auto"}})).await;
    let id = answer["result"]["structuredContent"]["sessionId"].as_str().unwrap();
    assert_eq!(home.log(id).await[0]["body"]["mode"], "plan");
    client.finish().await;
    agent.finish().await;
}

#[tokio::test]
async fn hosted_agents_get_tools_for_workspaces() {
    needs_linux!("sandbox");
    let home = crate::workspaces::repository();
    let (agent, session) = home.session(json!([]), &[]).await;
    home.env("NUNCIO_SESSION", &session);
    let mut client = Client::start(&home, json!({}), &[]).await;
    let list = client.call("tools/list", json!({})).await;
    let names: Vec<&str> = list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, WORKSPACE_TOOLS);
    let mut tool = async |name: &str, arguments: Value| {
        let answer = client.call("tools/call", json!({"name": name, "arguments": arguments})).await;
        (answer["result"]["structuredContent"].clone(), answer["result"]["isError"] == true)
    };
    let (own, _) = tool("workspace_metadata", json!({})).await;
    assert_eq!(own["sessionId"], session);
    let (created, _) = tool("workspace_create", json!({"name": "fix"})).await;
    let path = created["workspace"]["path"].as_str().unwrap().to_owned();
    std::fs::write(format!("{path}/new"), "x").unwrap();
    let (status, _) = tool("workspace_status", json!({})).await;
    let id = status["workspaces"][0]["workspaceId"].clone();
    let (unknown, failed) = tool("workspace_set_metadata", json!({"metadata": {"title": "x"}})).await;
    assert!(failed, "the session is in no workspace: {unknown}");
    let (changed, _) = tool("workspace_set_metadata", json!({"workspaceId": id, "metadata": {"title": "x"}})).await;
    assert_eq!(changed["metadata"], json!({"title": "x"}));
    let (_, failed) = tool("workspace_execute", json!({"command": "true"})).await;
    assert!(failed, "the session is not that of a hosted agent");
    let (deletion, _) = tool("workspace_delete", json!({"workspaceId": id})).await;
    assert_eq!(deletion["deleted"], false);
    // Only the user confirms a deletion.
    let (_, refused) = tool("workspace_delete", json!({"workspaceId": id, "confirm": deletion["confirm"]})).await;
    assert!(refused && std::path::Path::new(&path).exists());
    client.finish().await;
    agent.finish().await;
}
