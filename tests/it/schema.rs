//! All frames of a session against ACP's JSON schema, and the generated schemas against the
//! committed files.

use std::collections::HashMap;
use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::{Value, json};

use harness::{Agent, Home, Reply};

/// ACP's schema with one validator per definition; unknown fields are errors.
struct Acp {
    schema: Value,
    validators: HashMap<String, Validator>,
}

/// Definition of the response of each method.
const RESPONSES: &[(&str, &str)] = &[
    ("initialize", "InitializeResponse"),
    ("authenticate", "AuthenticateResponse"),
    ("logout", "LogoutResponse"),
    ("session/new", "NewSessionResponse"),
    ("session/load", "LoadSessionResponse"),
    ("session/resume", "ResumeSessionResponse"),
    ("session/list", "ListSessionsResponse"),
    ("session/close", "CloseSessionResponse"),
    ("session/delete", "DeleteSessionResponse"),
    ("session/set_mode", "SetSessionModeResponse"),
    ("session/set_config_option", "SetSessionConfigOptionResponse"),
    ("session/prompt", "PromptResponse"),
];

impl Acp {
    /// Returns `None` and prints a message if the fixtures are absent.
    fn load() -> Option<Acp> {
        let Some(fixtures) = std::env::var_os("NUNCIO_FIXTURES") else {
            eprintln!("skipped: NUNCIO_FIXTURES is not set");
            return None;
        };
        let read = |name: &str| -> Value {
            let path = PathBuf::from(&fixtures).join("acp").join(name);
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        let (mut schema, unstable) = (read("schema-v1.json"), read("schema-v1.unstable.json"));
        // `usage` in the response to a prompt.
        for definition in ["PromptResponse", "Usage"] {
            schema["$defs"][definition] = unstable["$defs"][definition].clone();
        }
        for variant in schema["$defs"]["SessionUpdate"]["oneOf"].as_array_mut().unwrap() {
            variant["unevaluatedProperties"] = json!(false);
        }
        for (_, definition) in
            RESPONSES.iter().chain([&("", "SessionNotification"), &("", "RequestPermissionRequest"), &("", "Error")])
        {
            schema["$defs"][*definition]["unevaluatedProperties"] = json!(false);
        }
        Some(Acp { schema, validators: HashMap::new() })
    }

    fn validator(&mut self, definition: &str) -> &Validator {
        self.validators.entry(definition.into()).or_insert_with(|| {
            assert!(self.schema["$defs"][definition].is_object(), "the schema has no {definition}");
            let root =
                json!({"$schema": self.schema["$schema"], "$ref": format!("#/$defs/{definition}"), "$defs": self.schema["$defs"]});
            jsonschema::validator_for(&root).unwrap()
        })
    }

    fn check(&mut self, definition: &str, value: &Value) -> Result<(), String> {
        let errors: Vec<String> =
            self.validator(definition).iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        if errors.is_empty() { Ok(()) } else { Err(format!("{definition}: {}", errors.join("; "))) }
    }

    /// Checks a frame against its definition.
    fn frame(&mut self, frame: &Value, method_of: &HashMap<String, String>) -> Result<(), String> {
        match frame["method"].as_str() {
            Some("session/update") => self.check("SessionNotification", &frame["params"]),
            Some("session/request_permission") => self.check("RequestPermissionRequest", &frame["params"]),
            Some("$/cancel_request") => self.check("CancelRequestNotification", &frame["params"]),
            Some(method) => Err(format!("unknown method {method}")),
            None if frame.get("error").is_some() => self.check("Error", &frame["error"]),
            None => {
                let method = method_of.get(&frame["id"].to_string()).ok_or("an answer to nothing")?;
                let (_, response) = RESPONSES.iter().find(|(name, _)| name == method).ok_or("an answer without a definition")?;
                self.check(response, &frame["result"])
            }
        }
    }
}

/// A client that records the method of each request.
struct Client {
    agent: Agent,
    method_of: HashMap<String, String>,
}

impl Client {
    async fn send(&mut self, method: &str, params: Value) -> Value {
        let id = self.agent.send(method, params).await;
        self.method_of.insert(id.to_string(), method.into());
        id
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.agent.answer(&id).await
    }
}

fn steps() -> Value {
    let call = |name: &str, input: Value| json!({"name": name, "input": input});
    json!([
        {"error": {"status": 529, "times": 1}, "thinking": "Let me see.", "text": "I look around.", "tool_calls": [
            call("plan", json!({"entries": [{"content": "look", "status": "in_progress"}, {"content": "mend", "priority": "high"}]})),
            call("read", json!({"file_path": "a.txt", "offset": 1})),
            call("list", json!({})),
            call("glob", json!({"pattern": "*.txt"})),
            call("grep", json!({"pattern": "one"})),
            call("read", json!({"file_path": "pixel.png"})),
        ]},
        {"text": "Now I work.", "tool_calls": [
            call("write", json!({"file_path": "new/b.txt", "content": "two\n"})),
            call("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
            call("bash", json!({"command": "echo out; echo err >&2; exit 3"})),
            call("edit", json!({"file_path": "a.txt", "old_string": "nowhere", "new_string": ""})),
            call("no_such_tool", json!({"x": 1})),
            call("read", json!({"file_path": 7})),
        ]},
        {"text": "ClientRefusal.", "tool_calls": [call("bash", json!({"command": "echo no"}))]},
        {"text": "Done."},
        {"text": "x".repeat(400), "chunk_chars": 1, "delay_ms": 50},
        {"tool_calls": [call("write", json!({"file_path": "c.txt", "content": ""}))]},
        {"expect": "this is not there"},
    ])
}

const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x04\0\0\0\xb5\x1c\x0c\x02\0\0\0\x0bIDATx\xdac\xfc\xff\x1f\0\x03\x03\x02\0\xef\xbf\xa7\xdb\0\0\0\0IEND\xaeB`\x82";

#[tokio::test]
async fn all_frames_of_session_conform_to_acp_schema() {
    let Some(mut acp) = Acp::load() else { return };
    let home = Home::new();
    home.put("a.txt", "one\n");
    std::fs::write(home.work().join("pixel.png"), PIXEL).unwrap();
    let model = home.script(steps());
    let capabilities = json!({"session": {"notices": {}, "compaction": {}}});
    let mut client = Client { agent: home.start(&["--model", &model]).await, method_of: HashMap::new() };
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await.unwrap();
    client.request("authenticate", json!({"methodId": "environment"})).await.unwrap();
    let servers = json!([{"name": "x", "command": "/bin/true", "args": [], "env": []}]);
    let made = client.request("session/new", json!({"cwd": home.work(), "mcpServers": servers})).await.unwrap();
    let session = made["sessionId"].clone();
    let prompt = |text: &str| {
        json!({"sessionId": session, "prompt": [
            {"type": "text", "text": text},
            {"type": "resource_link", "uri": "file:///x", "name": "x", "mimeType": "a/b", "description": "d"},
            {"type": "resource", "resource": {"uri": "file:///y", "mimeType": "text/plain", "text": "y"}},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        ]})
    };
    client.agent.replies.extend([
        Reply::Pick("allow_once"),
        Reply::Pick("allow_always"),
        Reply::Pick("allow_once"),
        Reply::Pick("allow_once"),
    ]);
    client.agent.otherwise = Reply::Pick("reject_always");
    assert_eq!(client.request("session/prompt", prompt("work")).await.unwrap()["stopReason"], "end_turn");

    // Cancels during an answer, and during a permission request.
    let id = client.send("session/prompt", prompt("stream")).await;
    client.agent.until_update("agent_message_chunk").await;
    client.agent.notify("session/cancel", json!({"sessionId": session})).await;
    client.agent.answer(&id).await.unwrap();
    client.agent.otherwise = Reply::Never;
    let id = client.send("session/prompt", prompt("ask")).await;
    client.agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    client.agent.notify("session/cancel", json!({"sessionId": session})).await;
    client.agent.answer(&id).await.unwrap();

    let here = json!({"sessionId": session, "cwd": home.work(), "mcpServers": []});
    let errors: &[(&str, Value)] = &[
        ("session/prompt", prompt("fails")),
        ("session/prompt", json!({"sessionId": "x", "prompt": [{"type": "text", "text": ""}]})),
        ("session/new", json!({"cwd": 7})),
        ("session/set_mode", json!({"sessionId": session, "modeId": "x"})),
        ("no/such", json!({})),
    ];
    for (method, params) in errors {
        client.request(method, params.clone()).await.unwrap_err();
    }
    let calls: &[(&str, Value)] = &[
        ("session/set_mode", json!({"sessionId": session, "modeId": "plan"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "thinking", "value": "low"})),
        ("session/load", here.clone()),
        ("session/list", json!({})),
        ("session/close", json!({"sessionId": session})),
        ("session/resume", here.clone()),
        ("session/close", json!({"sessionId": session})),
        ("session/load", here),
        ("session/delete", json!({"sessionId": session})),
        ("logout", json!({})),
    ];
    for (method, params) in calls {
        client.request(method, params.clone()).await.unwrap();
    }
    let Client { agent, method_of } = client;
    let frames = agent.finish().await;
    for frame in &frames {
        acp.frame(frame, &method_of).unwrap_or_else(|problem| panic!("{problem}\n{frame:#}"));
    }
    // The session contains all kinds of updates.
    let said: std::collections::HashSet<&str> =
        frames.iter().filter_map(|frame| frame["params"]["update"]["sessionUpdate"].as_str()).collect();
    for kind in [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "available_commands_update",
        "notice",
    ] {
        assert!(said.contains(kind), "no {kind} was sent");
    }
    for status in ["in_progress", "completed", "failed"] {
        assert!(frames.iter().any(|frame| frame["params"]["update"]["status"] == status), "nothing was {status}");
    }
    for content in ["content", "diff"] {
        assert!(frames.iter().any(|frame| frame["params"]["update"]["content"][0]["type"] == content), "no {content}");
    }
    // The check is not vacuous.
    let update =
        |update: Value| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "x", "update": update}});
    for wrong in [
        update(json!({"sessionUpdate": "agent_message_chunk"})),
        update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}})),
        update(json!({"sessionUpdate": "tool_call", "toolCallId": "x", "title": "x", "status": "finished"})),
        update(json!({"sessionUpdate": "plan", "entries": [], "stray": 1})),
        update(json!({"sessionUpdate": "no_such"})),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": ""}}),
        json!({"jsonrpc": "2.0", "id": 77777, "result": {}}),
        json!({"jsonrpc": "2.0", "method": "fs/read_text_file", "params": {}}),
    ] {
        assert!(acp.frame(&wrong, &method_of).is_err(), "{wrong} passed");
    }
}

/// `schema/NAME.json` is the output of `nuncio schema NAME`; `NUNCIO_UPDATE=1` rewrites the files.
#[tokio::test]
async fn committed_schemas_are_current() {
    let dir = harness::package("schema");
    let home = Home::new();
    let listed = home.run(&["schema"], "").await.stdout;
    let names: Vec<String> = listed.lines().map(|line| line.split(' ').next().unwrap().to_string()).collect();
    assert!(names.iter().any(|name| name == "event"), "{listed}");
    for name in &names {
        let path = dir.join(format!("{name}.json"));
        let ran = home.run(&["schema", name], "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        jsonschema::meta::validate(&serde_json::from_str(&ran.stdout).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        if std::env::var_os("NUNCIO_UPDATE").is_some() {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(&path, &ran.stdout).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == ran.stdout, "{} is stale: run the tests once with NUNCIO_UPDATE=1", path.display());
    }
    let kept: Vec<String> =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let stray: Vec<&String> = kept.iter().filter(|file| !names.contains(&file.replace(".json", ""))).collect();
    assert!(stray.is_empty(), "nothing generates {stray:?}");
}
