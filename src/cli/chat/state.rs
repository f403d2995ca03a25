//! State of the chat, which keys, commands and events change.

use std::time::Instant;

use serde_json::Value;
use tokio::sync::mpsc;

use super::drafts::Draft;
use super::forms::SessionForms;
use super::held_key::HeldKey;
use super::screen::Screen;
use super::session::ChatSession;
use super::updates::{ChatTasks, ChatUpdate};
use super::view::ChatView;
use crate::cli::terminal::renderer::RenderOptions;
use crate::content::Part;
use crate::id::SessionId;

/// A chat with one session at a time.
pub(super) struct Chat {
    pub session: ChatSession,
    pub tasks: ChatTasks,
    pub updates: mpsc::Receiver<ChatUpdate>,
    pub view: ChatView,
    pub screen: Screen,
    pub draft: Draft,
    pub forms: SessionForms,
    pub rendering: RenderOptions,
    /// The attachments of the next message.
    pub attached: Vec<Part>,
    /// A session that was begun only to have one behind the list of sessions. It is removed if
    /// another one is chosen.
    pub behind_list: Option<SessionId>,
    /// When the next frame is drawn; `None`: nothing has changed.
    pub due: Option<Instant>,
    /// When Esc was pressed last without anything to stop.
    pub escaped: Option<Instant>,
    /// The user's command for a text above the status row.
    pub status: StatusCommand,
    /// A key that answers, unless more input follows at once.
    pub held: Option<HeldKey>,
}

/// The user's command for a text above the status row, and the state for which it ran last.
pub(super) struct StatusCommand {
    pub arguments: Vec<String>,
    pub shown: Value,
    pub is_running: bool,
}

impl StatusCommand {
    pub(super) fn new(arguments: &[String]) -> StatusCommand {
        StatusCommand { arguments: arguments.to_vec(), shown: Value::Null, is_running: false }
    }

    /// Records that the command has ended.
    pub(super) fn end(&mut self) {
        self.is_running = false;
    }
}
