//! Evaluation of received frames, and requests that many tests make.

use serde_json::{Value, json};

use super::{Agent, Home, Reply};

impl Agent {
    pub async fn new_session(&mut self, home: &Home) -> String {
        let made = self.call("session/new", json!({"cwd": home.work(), "mcpServers": []})).await;
        made["sessionId"].as_str().unwrap().to_string()
    }

    /// Sends a prompt and returns the id of its request.
    pub async fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.send("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})).await
    }

    /// Runs a prompt whose turn fails. Returns the error.
    pub async fn failure(&mut self, session: &str, text: &str) -> Value {
        let id = self.prompt(session, text).await;
        self.answer(&id).await.expect_err("the turn fails")
    }

    /// Cancels the turn of the prompt `id`, and waits for its end.
    pub async fn cancel(&mut self, session: &str, id: &Value) {
        self.notify("session/cancel", json!({"sessionId": session})).await;
        assert_eq!(self.answer(id).await.unwrap()["stopReason"], "cancelled");
    }

    /// Reads until a permission request. Returns the request.
    pub async fn until_question(&mut self) -> Value {
        self.until("a question", |frame| frame["method"] == "session/request_permission").await
    }

    /// Reads until a permission request, unless one is open.
    pub async fn until_asked(&mut self) {
        if self.asked.is_empty() {
            self.until_question().await;
        }
    }

    /// Allows the call of the open permission request, through another method than its reply.
    pub async fn allow_open(&mut self) {
        let open = self.call("_nuncio/permission/list", json!({})).await["permissions"][0]["permissionId"].clone();
        self.call("_nuncio/permission/answer", json!({"permissionId": open, "outcome": "allow_once"})).await;
    }

    /// The state of a session.
    pub async fn view(&mut self, session: &str) -> Value {
        self.call("_nuncio/session/get", json!({"sessionId": session})).await
    }

    /// The turns of a session.
    pub async fn turns(&mut self, session: &str) -> Vec<Value> {
        self.call("_nuncio/session/turns", json!({"sessionId": session})).await["turns"].as_array().unwrap().clone()
    }

    /// Runs a prompt. Returns the text of its answer.
    pub async fn reply(&mut self, session: &str, prompt: &str) -> String {
        let (_, updates) = self.turn(session, prompt).await;
        text(&updates, "agent_message_chunk")
    }

    /// The number of permission requests received so far.
    pub fn questions(&self) -> usize {
        self.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count()
    }

    /// Sends a prompt. Returns the stop reason and the updates received until the answer.
    pub async fn turn(&mut self, session: &str, text: &str) -> (String, Vec<Value>) {
        let before = self.frames.len();
        let id = self.prompt(session, text).await;
        let answer = self.answer(&id).await.unwrap_or_else(|error| panic!("prompt {text:?}: {error}"));
        (answer["stopReason"].as_str().unwrap().to_string(), session_updates(&self.frames[before..], session))
    }

    /// Loads a session and returns the replayed updates.
    pub async fn load(&mut self, home: &Home, session: &str) -> Vec<Value> {
        let before = self.frames.len();
        self.call("session/load", json!({"sessionId": session, "cwd": home.work(), "mcpServers": []})).await;
        session_updates(&self.frames[before..], session)
    }

    /// All updates of a session received so far.
    pub fn updates(&self, session: &str) -> Vec<Value> {
        session_updates(&self.frames, session)
    }
}

/// The updates of one session in `frames`.
pub fn session_updates(frames: &[Value], session: &str) -> Vec<Value> {
    let of_session = |frame: &&Value| frame["method"] == "session/update" && frame["params"]["sessionId"] == session;
    frames.iter().filter(of_session).map(|frame| frame["params"]["update"].clone()).collect()
}

/// The text of all chunks of a kind, in order.
pub fn text(updates: &[Value], kind: &str) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == kind);
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// Kinds of updates in order; adjacent equal kinds are merged.
pub fn kinds(updates: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

/// The tool call number `index` (from 0) with all its updates applied.
pub fn tool(updates: &[Value], index: usize) -> Value {
    let mut call =
        updates.iter().filter(|update| update["sessionUpdate"] == "tool_call").nth(index).cloned().unwrap_or(Value::Null);
    for update in updates {
        if update["sessionUpdate"] == "tool_call_update" && update["toolCallId"] == call["toolCallId"] {
            call.as_object_mut().unwrap().extend(update.as_object().unwrap().clone());
        }
    }
    call
}

/// Titles of notices.
pub fn notices(updates: &[Value]) -> Vec<&str> {
    let notices = updates.iter().filter(|update| update["sessionUpdate"] == "notice");
    notices.map(|update| update["title"].as_str().unwrap()).collect()
}

/// Creates a session whose turn `first` waits for a permission; returns the id of its prompt too.
pub async fn busy(home: &Home, steps: Value) -> (Agent, String, Value) {
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "first").await;
    agent.until_asked().await;
    (agent, session, prompt)
}

/// A line with a request, or with a notification if `id` is 0.
pub fn frame(id: u64, method: &str, params: Value) -> String {
    let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if id > 0 {
        message["id"] = json!(id);
    }
    format!("{message}\n")
}
