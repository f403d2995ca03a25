//! Changes of the queue while a turn prepares a steering message, which waits for a resource.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::{logged, setting};
use crate::queue::{EDIT, REMOVE, said, send};
use harness::busy;
use harness::steps::{asks, says};
use harness::{Agent, Home};

/// A session whose turn waits for a permission, and a server that waits before it returns a
/// resource.
struct GatedSession {
    home: Home,
    agent: Agent,
    session: String,
    prompt: Value,
    log: PathBuf,
    gate: File,
}

impl GatedSession {
    async fn new(expected: &str) -> GatedSession {
        let home = Home::new();
        let (log, pipe) = (home.work().with_file_name("server.log"), home.work().with_file_name("gate"));
        std::fs::write(&log, "").unwrap();
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // Open for both, which waits for no other end.
        let gate = File::options().read(true).write(true).open(&pipe).unwrap();
        let modes = [format!("log={}", log.display()), format!("gate={}", pipe.display()), "resources".into()];
        home.config(&setting("docs", &modes.each_ref().map(String::as_str)));
        let (agent, session, prompt) = busy(&home, json!([asks(), says(expected, "done")])).await;
        GatedSession { home, agent, session, prompt, log, gate }
    }

    /// Sends a message that waits in the queue, and returns its id.
    async fn send(&mut self, text: &str, delivery: &str) -> String {
        send(&mut self.agent, &self.session, text, json!({ "delivery": delivery })).await
    }

    async fn change(&mut self, method: &str, message: &str, mut params: Value) {
        params["sessionId"] = json!(self.session);
        params["messageId"] = json!(message);
        self.agent.call(method, params).await;
    }

    /// Waits until the turn prepares a message, the `count`th that reads a resource.
    async fn prepares(&self, count: usize) {
        logged(&self.log, "resources/read", count).await;
    }

    /// Lets the server return one resource.
    fn admit(&mut self) {
        self.gate.write_all(b".").unwrap();
    }

    /// Reads until the turn has ended; returns the messages of the conversation.
    async fn end(mut self) -> Vec<String> {
        let stop = self.agent.answer(&self.prompt).await.unwrap()["stopReason"].clone();
        assert_eq!(stop, "end_turn");
        self.agent.finish().await;
        said(&self.home.log(&self.session).await)
    }
}

#[tokio::test]
async fn message_that_steers_during_the_preparation_of_a_later_one_precedes_it() {
    let mut gated = GatedSession::new("text of test://one").await;
    let first = gated.send("first in the queue", "queue").await;
    gated.send("see @docs:test://one", "steer").await;
    gated.agent.allow_open().await;
    gated.prepares(1).await;
    gated.change(EDIT, &first, json!({"delivery": "steer"})).await;
    // The later message is prepared again.
    gated.admit();
    gated.admit();
    let expected = ["0 user first", "0 user first in the queue", "0 user see @docs:test://one", "0 assistant done"];
    assert_eq!(gated.end().await, expected);
}

#[tokio::test]
async fn message_can_be_changed_and_removed_during_its_preparation() {
    let mut gated = GatedSession::new("new text").await;
    let edited = gated.send("see @docs:test://one", "steer").await;
    let removed = gated.send("see @docs:test://two", "steer").await;
    let kept = gated.send("last", "steer").await;
    gated.agent.allow_open().await;
    gated.prepares(1).await;
    gated.change(EDIT, &edited, json!({"parts": [{"type": "text", "text": "new text"}]})).await;
    gated.admit();
    gated.prepares(2).await;
    gated.change(REMOVE, &removed, json!({})).await;
    gated.change(EDIT, &kept, json!({"delivery": "queue"})).await;
    gated.change(EDIT, &kept, json!({"delivery": "steer"})).await;
    gated.admit();
    assert_eq!(gated.end().await, ["0 user first", "0 user new text", "0 user last", "0 assistant done"]);
}
