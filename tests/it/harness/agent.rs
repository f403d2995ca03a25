//! The test client: starts the real binary in a home of its own and exchanges messages over pipes.
//! The client asserts that every line is a JSON-RPC message, that every answer has a request, and
//! that no process is left after the end of the input.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::marker::marked;
use super::{Editor, LIMIT, bounded, gone};

/// The client's reply to a `session/request_permission`.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Selects the option of this kind: `allow_once`, `allow_always`, `reject_once`,
    /// `reject_always`.
    Pick(&'static str),
    /// Sends no answer; the question stays in [`Agent::asked`].
    Never,
    /// Answers with this result.
    Result(Value),
    /// Answers with an error.
    Error,
}

/// A running `nuncio acp` and its client. The client reads only while a test awaits a frame.
pub struct Agent {
    child: Child,
    pub pid: u32,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    buffer: Vec<u8>,
    /// Marker in the environment of all processes that the agent starts.
    pub marker: String,
    /// All received frames, in order.
    pub frames: Vec<Value>,
    /// Replies to the next permission questions, in order. `otherwise` is the reply after the last.
    pub replies: VecDeque<Reply>,
    pub otherwise: Reply,
    /// Results for the next forms (`elicitation/create`), in order.
    pub forms: VecDeque<Value>,
    /// Open questions (neither answered nor withdrawn): id and params.
    pub asked: Vec<(Value, Value)>,
    /// The editor that answers `fs/*` and `terminal/*` requests.
    pub editor: Option<Editor>,
    /// True if the client receives no `session/update`, which announces the calls of questions.
    pub without_updates: bool,
    /// True if an answer from the client may arrive after its question was withdrawn.
    pub may_cross: bool,
    /// Requests without an answer: the id as JSON, and the number of requests sent with that id.
    open: HashMap<String, usize>,
    nulls_allowed: usize,
    next_id: u64,
    finished: bool,
}

impl Agent {
    pub(super) fn new(mut child: Child, marker: String) -> Agent {
        Agent {
            pid: child.id().unwrap(),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            child,
            buffer: Vec::new(),
            marker,
            frames: Vec::new(),
            replies: VecDeque::new(),
            otherwise: Reply::Pick("allow_once"),
            forms: VecDeque::new(),
            asked: Vec::new(),
            editor: None,
            without_updates: false,
            may_cross: false,
            open: HashMap::new(),
            nulls_allowed: 0,
            next_id: 0,
            finished: false,
        }
    }

    /// Shrinks the pipe of the output to one page, so that the agent soon waits for its reader.
    pub fn narrow_output(&self) {
        rustix::pipe::fcntl_setpipe_size(self.stdout.as_ref().expect("the output is open"), 4096).unwrap();
    }

    /// Writes bytes unchanged. Answers to the ids in the bytes, or with the id null, are expected.
    pub async fn raw(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n') {
            match serde_json::from_slice::<Value>(line) {
                Ok(Value::Object(message)) if message.contains_key("result") != message.contains_key("error") => {}
                Ok(Value::Object(message)) if !message.get("id").unwrap_or(&Value::Null).is_null() => {
                    *self.open.entry(message["id"].to_string()).or_default() += 1;
                }
                _ => self.nulls_allowed += 1,
            }
        }
        self.write(bytes).await;
    }

    /// Expects an answer to `id`, which [`Agent::raw`] does not find in a line that is not JSON.
    pub fn expect_answer(&mut self, id: &Value) {
        *self.open.entry(id.to_string()).or_default() += 1;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        bounded("writing to the agent", stdin.write_all(bytes)).await.expect("the agent reads");
    }

    async fn message(&mut self, message: Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// Sends a request and returns its id.
    pub async fn send(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.open.insert(id.to_string(), 1);
        self.message(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.message(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Reads until the answer to `id`.
    pub async fn answer(&mut self, id: &Value) -> Result<Value, Value> {
        let is_answer = |frame: &Value| frame["id"] == *id && frame.get("method").is_none();
        let known = self.frames.iter().find(|frame| is_answer(frame)).cloned();
        let frame = match known {
            Some(frame) => frame,
            None => self.until(&format!("the answer to {id}"), is_answer).await,
        };
        match frame.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(frame["result"].clone()),
        }
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.answer(&id).await
    }

    /// Sends a request and returns its result. An error fails the test.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.request(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Reads until a frame for which `fits` is true.
    pub async fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let before = self.frames.len();
        let wait = async {
            loop {
                let frame = self.frame().await?;
                if fits(&frame) {
                    return Some(frame);
                }
            }
        };
        match tokio::time::timeout(LIMIT, wait).await {
            Ok(Some(frame)) => frame,
            Ok(None) => panic!("{what}: the output ended; received {:#?}", &self.frames[before..]),
            Err(_) => panic!("{what}: it did not come in {LIMIT:?}; received {:#?}", &self.frames[before..]),
        }
    }

    /// Reads until an update of this kind.
    pub async fn until_update(&mut self, kind: &str) -> Value {
        self.until(kind, |frame| frame["params"]["update"]["sessionUpdate"] == kind).await["params"]["update"].clone()
    }

    /// The next frame; none at the end of the output. Cancelling the call loses no frame.
    pub async fn frame(&mut self) -> Option<Value> {
        let mut looked_at = 0;
        let line = loop {
            if let Some(end) = self.buffer[looked_at..].iter().position(|byte| *byte == b'\n') {
                break self.buffer.drain(..=looked_at + end).collect::<Vec<u8>>();
            }
            looked_at = self.buffer.len();
            self.buffer.reserve(64 << 10);
            let late = async {
                match &mut self.editor {
                    Some(editor) => editor.later().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = self.stdout.as_mut().expect("the output is open").read_buf(&mut self.buffer) => {
                    if read.unwrap_or(0) == 0 {
                        return None;
                    }
                }
                answer = late => {
                    if self.stdin.is_some() {
                        self.message(answer).await;
                    }
                }
            }
        };
        let frame: Value =
            serde_json::from_slice(&line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)));
        assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
        self.frames.push(frame.clone());
        match (frame["method"].as_str(), frame.get("id")) {
            (Some("session/request_permission"), Some(id)) => self.question(id.clone(), frame["params"].clone()).await,
            (Some("session/update" | "_nuncio/events/event"), None) => {}
            (Some("elicitation/create"), Some(id)) => {
                // Without a result, the form stays open.
                if let Some(result) = self.forms.pop_front() {
                    self.message(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
                }
            }
            (Some(method), Some(id)) if self.editor.is_some() => {
                let editor = self.editor.as_mut().unwrap();
                // After the end of the input no answer can be sent.
                if let (Some(answer), Some(_)) = (editor.answer(id, method, &frame["params"]), &self.stdin) {
                    self.message(answer).await;
                }
            }
            (Some("$/cancel_request"), None) if self.editor.is_some() => {}
            (Some("$/cancel_request"), None) => {
                let id = &frame["params"]["requestId"];
                match self.asked.iter().position(|(asked, _)| asked == id) {
                    Some(place) => drop(self.asked.remove(place)),
                    None => assert!(self.may_cross, "withdraws what is not asked: {frame}"),
                }
            }
            (None, Some(id)) => self.answered(id, &frame),
            _ => panic!("neither an answer nor a message that clients know: {frame}"),
        }
        Some(frame)
    }

    fn answered(&mut self, id: &Value, frame: &Value) {
        assert_ne!(frame.get("result").is_some(), frame.get("error").is_some(), "{frame}");
        if id.is_null() {
            assert!(self.nulls_allowed > 0 && frame.get("error").is_some(), "an answer to nothing: {frame}");
            self.nulls_allowed -= 1;
            return;
        }
        let open = self.open.get_mut(&id.to_string()).unwrap_or_else(|| panic!("an answer to nothing: {frame}"));
        assert!(*open > 0, "a second answer: {frame}");
        *open -= 1;
    }

    async fn question(&mut self, id: Value, params: Value) {
        let call = &params["toolCall"]["toolCallId"];
        let announced = |frame: &Value| {
            frame["params"]["update"]["sessionUpdate"] == "tool_call" && frame["params"]["update"]["toolCallId"] == *call
        };
        assert!(
            self.without_updates || self.frames.iter().any(announced),
            "a question about a call that was not announced: {params}"
        );
        assert!(self.asked.iter().all(|(asked, _)| *asked != id), "an id twice: {id}");
        let body = match self.replies.pop_front().unwrap_or_else(|| self.otherwise.clone()) {
            Reply::Never => {
                self.asked.push((id, params));
                return;
            }
            Reply::Pick(kind) => {
                let options = params["options"].as_array().unwrap();
                let option = options.iter().find(|option| option["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {params}"));
                json!({"result": {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}})
            }
            Reply::Result(result) => json!({ "result": result }),
            Reply::Error => json!({"error": {"code": -32603, "message": "broken client"}}),
        };
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        message.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        self.message(message).await;
    }

    /// Ends the input, and asserts that all requests are answered, that the exit code is 0 and that
    /// no process is left. Returns all frames.
    pub async fn finish(mut self) -> Vec<Value> {
        drop(self.stdin.take());
        bounded("the end of the output", async { while self.frame().await.is_some() {} }).await;
        assert!(self.buffer.is_empty(), "an unfinished line: {}", String::from_utf8_lossy(&self.buffer));
        let status = bounded("the exit", self.child.wait()).await.unwrap();
        self.finished = true;
        assert_eq!(status.code(), Some(0), "exit after the end of the input");
        let left: Vec<_> = self.open.iter().filter(|(_, open)| **open > 0).collect();
        assert!(left.is_empty(), "requests without an answer: {left:?}");
        assert_eq!(marked(&self.marker), Vec::<u32>::new(), "left running");
        std::mem::take(&mut self.frames)
    }

    /// Closes both pipes, as an editor does when it is closed. Call [`Agent::ended`] later.
    pub fn leave(&mut self) {
        self.stdin = None;
        self.stdout = None;
    }

    /// Waits for the end of an agent that was left, and asserts that no process is left.
    pub async fn ended(mut self) {
        let status = bounded("the end of an agent without a client", self.child.wait()).await.unwrap();
        self.finished = true;
        assert_eq!(status.code(), Some(0), "exit of an agent without a client");
        assert_eq!(marked(&self.marker), Vec::<u32>::new(), "left running");
    }

    /// Kills the agent with SIGKILL, and asserts that no process is left within the bound of
    /// [`gone`]. Returns all frames that were received as complete lines.
    pub async fn kill(mut self) -> Vec<Value> {
        self.child.start_kill().unwrap();
        bounded("the end of a killed agent", self.child.wait()).await.unwrap();
        self.otherwise = Reply::Never;
        self.replies.clear();
        bounded("the rest of the output", async { while self.frame().await.is_some() {} }).await;
        self.finished = true;
        gone(&self.marker).await;
        std::mem::take(&mut self.frames)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if !self.finished && !std::thread::panicking() {
            panic!("an agent has to be finished or killed");
        }
    }
}
