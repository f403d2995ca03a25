//! The end of the standard error of a hosted agent, and the lines in it that ask for a login.

use tokio::sync::watch;

use crate::process::Output;

/// Maximum size of the end of a hosted agent's standard error that is kept, in bytes.
const AGENT_STDERR_BYTES_MAX: usize = 8 << 10;

/// The last bytes that a process wrote to its standard error.
#[derive(Default)]
pub(super) struct StderrTail(watch::Sender<Vec<u8>>);

impl StderrTail {
    /// Reads until the end of the output.
    pub(super) async fn read(&self, mut errors: Output) {
        let mut buffer = Vec::new();
        while errors.read(&mut buffer).await.is_ok_and(|read| read > 0) {
            self.push(&mut buffer);
        }
    }

    /// Moves `bytes` to the end.
    fn push(&self, bytes: &mut Vec<u8>) {
        self.0.send_modify(|tail| {
            tail.append(bytes);
            let excess = tail.len().saturating_sub(AGENT_STDERR_BYTES_MAX);
            tail.drain(..excess);
        });
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).trim().to_owned()
    }

    /// Waits for a complete line after the text `before` that asks the user to log in.
    pub(super) async fn login_request(&self, before: &str) -> String {
        let mut tail = self.0.subscribe();
        loop {
            let text = String::from_utf8_lossy(&tail.borrow_and_update()).into_owned();
            let new = text.trim_start().strip_prefix(before).unwrap_or(&text);
            let complete = new.rfind('\n').map_or("", |end| &new[..end]);
            if let Some(line) = complete.lines().find(|line| asks_for_login(line)) {
                return line.trim().to_owned();
            }
            if tail.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// Parts of lines with which agents ask the user to log in, in lower case.
const LOGIN_REQUESTS: &[&str] = &[
    "authentication required",
    "log in to",
    "login required",
    "not authenticated",
    "not logged in",
    "not signed in",
    "please authenticate",
    "please log in",
    "please login",
    "please sign in",
    "run /login",
    "sign in to",
];

/// Returns whether a line asks the user to log in to the agent, not to one of its MCP servers.
fn asks_for_login(line: &str) -> bool {
    let line = line.to_lowercase();
    !line.contains("mcp") && LOGIN_REQUESTS.iter().any(|request| line.contains(request))
}
