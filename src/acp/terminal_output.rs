//! Command output for clients with the capability `_meta.terminal_output`, which show it in a
//! terminal while the command runs. The convention is Zed's: `_meta.terminal_info` of a tool call
//! creates the terminal, `terminal_output` appends to it, and `terminal_exit` ends it. The
//! terminal has the id of the call.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::content::{Part, ToolCategory, ToolContent};
use crate::id::ToolCallId;
use crate::protocol::acp;
use crate::toolkit::capture::OMITTED;

/// The terminals of the running commands of a session.
pub(super) struct CommandTerminals {
    /// False for a client without the capability, which has no terminals.
    is_supported: bool,
    cwd: PathBuf,
    /// The output in the last update of each running command; `None` before its first update.
    running: HashMap<ToolCallId, Option<String>>,
}

/// The content and `_meta` of a tool call update.
pub(super) type TerminalUpdate = (Vec<acp::ToolCallContent>, acp::Meta);

impl CommandTerminals {
    /// Creates the terminals of a session. `cwd` is the directory of the session.
    pub(super) fn new(capabilities: &acp::ClientCapabilities, cwd: PathBuf) -> CommandTerminals {
        let supported = capabilities.meta.as_ref().and_then(|meta| meta.get("terminal_output"));
        CommandTerminals { is_supported: supported == Some(&Value::Bool(true)), cwd, running: HashMap::new() }
    }

    /// Creates the terminal of a call that runs a command. Returns the `_meta` of the call.
    pub(super) fn start(&mut self, id: &ToolCallId, category: Option<ToolCategory>) -> Option<acp::Meta> {
        if !self.is_supported || category != Some(ToolCategory::Command) {
            return None;
        }
        self.running.insert(id.clone(), None);
        Some(meta("terminal_info", json!({ "terminal_id": id, "cwd": self.cwd })))
    }

    /// Returns the update for new output. Returns `None` for a call without a terminal. A command
    /// that runs in a terminal of the client needs no other one.
    pub(super) fn output(&mut self, id: &ToolCallId, content: &[ToolContent]) -> Option<TerminalUpdate> {
        let before = self.running.get_mut(id)?;
        let Some(text) = only_text(content) else {
            self.running.remove(id);
            return None;
        };
        let fresh = continuation(before.as_deref().unwrap_or_default(), text);
        let update = meta("terminal_output", json!({ "terminal_id": id, "data": fresh }));
        *before = Some(text.to_owned());
        Some((vec![shown(id)], update))
    }

    /// Returns the last update of a command that has ended. Returns `None` for a call without a
    /// terminal, for example a denied call.
    pub(super) fn end(&mut self, id: &ToolCallId, content: &[ToolContent], details: Option<&Value>) -> Option<TerminalUpdate> {
        let before = self.running.remove(id)?;
        let code = details.and_then(|details| details["exitCode"].as_i64());
        if before.is_none() && code.is_none() {
            return None;
        }
        let text = only_text(content)?;
        let text = code.and_then(|code| text.strip_suffix(&format!("exit code: {code}"))).unwrap_or(text);
        let fresh = continuation(before.as_deref().unwrap_or_default(), text);
        let mut update = meta("terminal_exit", json!({ "terminal_id": id, "exit_code": code, "signal": null }));
        if !fresh.is_empty() {
            update.insert("terminal_output".into(), json!({ "terminal_id": id, "data": fresh }));
        }
        Some((vec![shown(id)], update))
    }
}

fn meta(key: &str, value: Value) -> acp::Meta {
    acp::Meta::from_iter([(key.to_owned(), value)])
}

fn shown(id: &ToolCallId) -> acp::ToolCallContent {
    acp::ToolCallContent::Terminal(acp::Terminal::new(acp::TerminalId::new(id.as_str())))
}

/// Returns the text of content that is one text.
fn only_text(content: &[ToolContent]) -> Option<&str> {
    match content {
        [] => Some(""),
        [ToolContent::Content { content: Part::Text { text } }] => Some(text),
        _ => None,
    }
}

/// Returns the part of `text` that follows the output in `shown`. Both may begin with a note that
/// earlier output is omitted.
fn continuation(shown: &str, text: &str) -> String {
    if let Some(rest) = text.strip_prefix(shown) {
        return rest.to_owned();
    }
    let (shown, body) = (shown.strip_prefix(OMITTED).unwrap_or(shown), text.strip_prefix(OMITTED).unwrap_or(text));
    if let Some(at) = body.rfind(shown).filter(|_| !shown.is_empty()) {
        return body[at + shown.len()..].to_owned();
    }
    match overlap(shown.as_bytes(), body.as_bytes()) {
        0 => format!("{OMITTED}{body}"),
        known => body.get(known..).unwrap_or(body).to_owned(),
    }
}

/// Returns the length of the longest end of `before` that `after` begins with (the prefix function
/// of Knuth, Morris and Pratt).
fn overlap(before: &[u8], after: &[u8]) -> usize {
    let mut borders = vec![0; after.len()];
    let mut length = 0;
    for (index, byte) in after.iter().enumerate().skip(1) {
        while length > 0 && after[length] != *byte {
            length = borders[length - 1];
        }
        length += usize::from(after[length] == *byte);
        borders[index] = length;
    }
    length = 0;
    for byte in before {
        while length > 0 && after.get(length) != Some(byte) {
            length = borders[length - 1];
        }
        length += usize::from(after.get(length) == Some(byte));
    }
    length
}
