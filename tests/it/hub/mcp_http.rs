//! nuncio's MCP server over HTTP, for hosted agents.

use serde_json::{Value, json};

use super::{bodies, home, hosted, trust};
use crate::mcp_serve::WORKSPACE_TOOLS;
use harness::{Agent, Answer, Ask, Bridge, Home, Reply};

/// Starts nuncio with an HTTP server, and creates a session of the agent `other`.
async fn start(home: &Home, flags: &[&str]) -> (Agent, Bridge, String) {
    let (mut agent, bridge) = home.start_with_bridge(flags).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = hosted(&mut agent, home, "other").await;
    (agent, bridge, session)
}

/// Calls a tool from the agent's turn. Returns the JSON of its result.
async fn tool(agent: &mut Agent, session: &str, name: &str, input: Value) -> Value {
    let text = agent.reply(session, &format!("tool {name} {input}")).await;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

/// A client of the MCP server with the token that the agent got.
async fn token(agent: &mut Agent, bridge: &Bridge, session: &str) -> Bridge {
    let servers: Value = serde_json::from_str(&agent.reply(session, "servers").await).unwrap();
    let own = &servers[0];
    assert_eq!((&own["name"], &own["type"]), (&json!("nuncio"), &json!("http")), "{servers}");
    assert_eq!(own["url"], format!("http://{}/mcp", bridge.address));
    let header = &own["headers"][0];
    assert_eq!(header["name"], "Authorization");
    bridge.with_token(header["value"].as_str().unwrap().strip_prefix("Bearer ").unwrap())
}

fn request(bridge: &Bridge, message: &Value) -> Ask {
    bridge.post("/mcp", message).header("accept", "application/json, text/event-stream")
}

fn call(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
}

#[tokio::test]
async fn requests_need_the_token_of_a_running_agent() {
    let home = home(&["http"]).await;
    let (mut agent, bridge, session) = start(&home, &[]).await;
    let own = token(&mut agent, &bridge, &session).await;
    let list = request(&own, &call("tools/list"));
    let work = home.work().display().to_string();
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let cases: Vec<(&str, Ask, u16)> = vec![
        ("the token", list.clone(), 200),
        ("no token", list.clone().without("authorization"), 401),
        ("a wrong token", request(&bridge.with_token("wrong"), &call("tools/list")), 401),
        ("the owner's token", request(&bridge, &call("tools/list")), 401),
        ("the workspace", list.clone().header("x-workspace-path", &work), 200),
        ("another workspace", list.clone().header("x-workspace-path", "/"), 403),
        ("two workspaces", list.clone().header("x-workspace-path", &work).also("x-workspace-path", "/"), 403),
        ("another host", list.clone().header("host", "evil.example"), 403),
        ("another origin", list.clone().header("origin", "https://evil.example"), 403),
        ("JSON only", list.clone().header("accept", "application/json"), 406),
        ("a late cancellation", request(&own, &notification), 202),
        ("GET", own.get("/mcp").header("accept", "text/event-stream"), 405),
        ("DELETE", own.ask("DELETE", "/mcp"), 405),
        ("another route", own.get("/v1/status"), 401),
        ("no OAuth server", bridge.get("/.well-known/oauth-authorization-server/mcp").without("authorization"), 404),
        ("no protected resource", bridge.get("/.well-known/oauth-protected-resource").without("authorization"), 404),
    ];
    for (name, ask, status) in cases {
        let answer: Answer = ask.send().await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
    }
    let names = |answer: &Answer| -> Vec<String> {
        let tools = answer.json()["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&list.send().await), WORKSPACE_TOOLS);
    let info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    assert_eq!(request(&own, &initialize).send().await.json()["result"]["serverInfo"]["name"], "nuncio");
    let unknown = request(&own, &call("resources/list")).send().await;
    assert!(unknown.json()["result"].is_object() || unknown.json()["error"].is_object(), "{unknown:?}");
    // The end of the agent's process ends its token.
    let crash = json!({"sessionId": session, "prompt": [{"type": "text", "text": "crash"}]});
    assert!(agent.request("session/prompt", crash).await.is_err());
    assert_eq!(list.send().await.status, 401);
    let next = token(&mut agent, &bridge, &session).await;
    assert_eq!((list.send().await.status, request(&next, &call("tools/list")).send().await.status), (401, 200));
    agent.finish().await;
}

#[tokio::test]
async fn commands_run_under_the_rules_and_the_mode_of_the_session() {
    let home = home(&["http"]).await;
    let rule = "[permissions]\nrules = [{ tool = \"bash\", pattern = \"echo denied*\", policy = \"deny\" }]\n";
    home.config(&(home.config_text() + rule));
    let (mut agent, bridge, session) = start(&home, &[]).await;
    // Mode, command, answer of the client; the beginning of the result.
    let cases = [
        ("ask", "echo one", Some("allow_once"), "one\nexit code: 0"),
        ("ask", "echo two; exit 3", Some("allow_once"), "two\nexit code: 3"),
        ("ask", "touch made", Some("reject_once"), "[error] "),
        ("ask", "echo denied", None, "[error] "),
        ("plan", "touch made", None, "[error] "),
        ("auto", "echo three", None, "three\nexit code: 0"),
        ("auto", "echo no > /etc/nuncio-test", None, "bash: line 1: /etc/nuncio-test: "),
        ("auto", "printenv NUNCIO_AGENT_SESSION", None, "foreign-1\n"),
    ];
    let mut asked = 0;
    for (mode, command, answer, expected) in cases {
        // Nothing would prevent that write.
        if harness::POSIX && command.contains("/etc") {
            continue;
        }
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        agent.replies = answer.map(Reply::Pick).into_iter().collect();
        asked += usize::from(answer.is_some());
        let input = json!({"command": command});
        let text = agent.reply(&session, &format!("tool workspace_execute {input}")).await;
        assert!(text.starts_with(expected), "{mode} {command}: {text}");
    }
    let variables = [("NUNCIO_SESSION", session.clone()), ("NUNCIO_HTTP", format!("http://{}", bridge.address))];
    for (name, expected) in variables {
        let input = json!({"command": format!("printenv {name}")});
        assert_eq!(agent.reply(&session, &format!("tool workspace_execute {input}")).await, format!("{expected}\nexit code: 0"));
        assert_eq!(agent.reply(&session, &format!("env {name}")).await, expected);
    }
    agent.finish().await;
    assert_eq!(home.get("made"), None);
    assert_eq!(bodies(&home, &session, &["permission.requested"]).await.len(), asked);
    let calls = bodies(&home, &session, &["tool.started"]).await;
    let count = if harness::POSIX { 9 } else { 10 };
    assert_eq!((calls.len(), &calls[0]["name"], &calls[0]["input"]), (count, &json!("bash"), &json!({"command": "echo one"})));
    assert_eq!(bodies(&home, &session, &["tool.completed"]).await.len(), count);
}

/// Messages of hooks about a command are in its result, because nuncio does not send the agent's
/// model requests.
#[tokio::test]
async fn messages_of_hooks_are_in_the_result() {
    let home = Home::new();
    let hook = "[[hooks]]\nevent = \"tool.result.validate\"\ncommand = [\"sh\", \"-c\", \"echo mind the docs >&2; exit 2\"]\n";
    home.config(&(super::setting("other", &["http"]) + hook));
    trust(&home).await;
    let (mut agent, _bridge, session) = start(&home, &["--mode", "auto"]).await;
    let text = agent.reply(&session, r#"tool workspace_execute {"command":"echo one"}"#).await;
    assert!(text.starts_with("one\nexit code: 0\n[") && text.contains("mind the docs"), "{text}");
    agent.finish().await;
}

#[tokio::test]
async fn commands_end_with_the_turn() {
    let home = home(&["http"]).await;
    let (mut agent, bridge, session) = start(&home, &["--mode", "auto"]).await;
    let own = token(&mut agent, &bridge, &session).await;
    let execute = |command: &str| {
        let params = json!({"name": "workspace_execute", "arguments": {"command": command}});
        request(&own, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    };
    let idle = execute("true").send().await.json();
    assert_eq!(idle["result"]["isError"], true, "{idle}");
    let turn = agent.prompt(&session, "wait").await;
    agent.until("the turn", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    let (running, command) = (execute("touch running; sleep 600"), home.work().join("running"));
    let (answer, ()) = tokio::join!(running.send(), async {
        while !command.exists() {
            tokio::task::yield_now().await;
        }
        agent.notify("session/cancel", json!({"sessionId": session})).await;
    });
    assert_eq!(answer.json()["result"]["isError"], true, "{answer:?}");
    assert_eq!(agent.answer(&turn).await.unwrap()["stopReason"], "cancelled");
    // A client that disconnects cancels its command.
    let turn = agent.prompt(&session, "wait").await;
    agent.until("the turn", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    let connection = execute("sleep 601").open().await;
    agent.until("the command", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    drop(connection);
    agent.until("its end", |frame| frame["params"]["update"]["status"] == "failed").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&turn).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
}

#[tokio::test]
async fn workspace_tools_use_the_workspace_of_the_session() {
    needs_linux!("sandbox");
    let home = crate::workspaces::repository();
    home.config(&super::setting("other", &["http"]));
    trust(&home).await;
    let (mut agent, bridge, main) = start(&home, &[]).await;
    let own = tool(&mut agent, &main, "workspace_metadata", json!({})).await;
    assert_eq!((&own["sessionId"], &own["cwd"]), (&json!(main), &json!(home.work())));
    let created = tool(&mut agent, &main, "workspace_create", json!({"name": "fix"})).await;
    let path = created["workspace"]["path"].clone();
    let params = json!({"cwd": path, "mcpServers": [], "_meta": {"nuncio": {"agent": "other"}}});
    let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    let changes = [
        (
            json!({"title": "Fix it", "notes": {"todo": ["a"], "done": 1}}),
            json!({"title": "Fix it", "notes": {"todo": ["a"], "done": 1}}),
        ),
        (json!({"title": null, "notes": {"done": 2}}), json!({"notes": {"todo": ["a"], "done": 2}})),
    ];
    for (change, expected) in changes {
        let changed = tool(&mut agent, &session, "workspace_set_metadata", json!({"metadata": change})).await;
        assert_eq!(changed["metadata"], expected);
    }
    for metadata in [json!({"notes": "x".repeat(20_000)}), json!("text")] {
        let refused = agent.reply(&session, &format!("tool workspace_set_metadata {}", json!({"metadata": metadata}))).await;
        assert!(refused.starts_with("[error] "), "{refused}");
    }
    let own = tool(&mut agent, &session, "workspace_metadata", json!({})).await;
    assert_eq!((&own["name"], &own["metadata"]), (&json!("fix"), &json!({"notes": {"todo": ["a"], "done": 2}})));
    assert_eq!(own["sessions"][0]["sessionId"], session.as_str());
    let list = tool(&mut agent, &session, "workspace_status", json!({})).await;
    assert_eq!((&list["workspaces"][0]["metadata"], &list["workspaces"][0]["path"]), (&own["metadata"], &path));
    let shown = bridge.get(&format!("/v1/workspaces/{}", own["workspaceId"].as_str().unwrap())).send().await;
    assert_eq!(shown.json()["metadata"], own["metadata"]);
    // The token has the rights of the repository only.
    let outside = agent.reply(&session, &format!("tool workspace_create {}", json!({"cwd": "/"}))).await;
    assert!(outside.starts_with("[error] ") && outside.contains("outside the allowed roots"), "{outside}");
    agent.finish().await;
}

#[tokio::test]
async fn mode_plan_denies_changes_of_workspaces() {
    let home = crate::workspaces::repository();
    home.config(&super::setting("other", &["http"]));
    trust(&home).await;
    let (mut agent, bridge, session) = start(&home, &[]).await;
    let own = token(&mut agent, &bridge, &session).await;
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
    for (name, arguments) in [("workspace_create", json!({"name": "fix"})), ("workspace_set_metadata", json!({"metadata": {}}))] {
        let params = json!({"name": name, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let result = request(&own, &message).send().await.json()["result"].clone();
        assert_eq!(result["content"][0]["text"], format!("{name}: mode plan allows no changes"), "{result}");
    }
    assert!(crate::workspaces::linked(&home).is_empty());
    agent.finish().await;
}

#[tokio::test]
async fn delegation_without_an_agent_uses_nuncio() {
    let home = home(&["http"]).await;
    let model = home.script(json!([{"text": "from nuncio"}]));
    let (mut agent, _, session) = start(&home, &["--agent", "other", "--model", &model]).await;
    assert_eq!(agent.reply(&session, r#"tool delegate {"prompt": "say"}"#).await, "from nuncio");
    agent.finish().await;
}

/// The prompt that makes the agent delegate a prompt to the agent `other`, `levels` times.
fn delegated(prompt: &str, levels: usize) -> String {
    match levels {
        0 => prompt.to_owned(),
        _ => format!("tool delegate {}", json!({"prompt": delegated(prompt, levels - 1), "agent": "other"})),
    }
}

#[tokio::test]
async fn delegation_ends_at_the_depth_limit_and_keeps_the_mode() {
    let home = home(&["http"]).await;
    let (mut agent, bridge, session) = start(&home, &["--mode", "auto"]).await;
    assert_eq!(agent.reply(&session, &delegated("env NUNCIO_DEPTH", 3)).await, "4");
    let refused = agent.reply(&session, &delegated("say", 4)).await;
    assert!(refused.contains("at most 3 levels of subagents"), "{refused}");
    let refused = agent.reply(&session, &delegated("tool workspace_create {}", 3)).await;
    assert!(refused.contains("at most 3 levels of subagents"), "{refused}");
    // The mode of the session limits that of the new session.
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "ask"})).await;
    let own = token(&mut agent, &bridge, &session).await;
    let modes = [(json!({}), "ask"), (json!({"mode": "auto"}), "ask"), (json!({"mode": "plan"}), "plan")];
    for (given, expected) in modes {
        let mut arguments = json!({"prompt": "say", "agent": "other"});
        arguments.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        let params = json!({"name": "delegate", "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let result = request(&own, &message).send().await.json()["result"].clone();
        assert_eq!(result["content"][0]["text"], "Hello, world", "{result}");
        let id = result["structuredContent"]["sessionId"].as_str().unwrap().to_owned();
        let shown = bridge.get(&format!("/v1/sessions/{id}")).send().await.json();
        assert_eq!(shown["mode"], expected, "{given}: {shown}");
    }
    agent.finish().await;
}
