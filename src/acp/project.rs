//! Converts events to ACP's `session/update`. The only state kept is what is needed to send no text
//! twice.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde::Serialize;

use super::terminal_output::{CommandTerminals, TerminalUpdate};
use crate::content::{Cost, Part, Role, ToolLabel};
use crate::context::commands::SlashCommand;
use crate::event::{
    Actor, Body, ChangedCall, CompactionOutcome, Event, Notice, QueuedMessage, SessionChange, Severity, ToolEnd, ToolStart,
    ToolUpdate, UsageUpdate, ignored,
};
use crate::id::{MessageId, SessionId, ToolCallId};
use crate::protocol::{acp, content};
use crate::rpc::FrameWriter;

/// Converts the events of one session for one client.
pub(crate) struct Projection {
    session: SessionId,
    client: String,
    /// False if the client receives no `session/update`, because it follows the events.
    updates: bool,
    notices: bool,
    /// True if this client started the running turn. Such a client shows its own prompt, so the
    /// prompt is not sent.
    own_turn: bool,
    /// Ids of the queued messages. A queued message is sent when it is delivered, whichever client
    /// started the turn.
    queued: HashSet<MessageId>,
    /// Number of bytes already sent, for each incomplete message.
    shown_bytes: HashMap<MessageId, u64>,
    /// The cost of the session's model requests so far.
    cost: Option<Cost>,
    /// True if the client has the capability `session.compaction`.
    compactions: bool,
    /// The running compaction.
    compaction: Option<acp::CompactionId>,
    /// The parent session of a subagent.
    parent: Option<SessionId>,
    /// True if the parent session started the running turn.
    is_delegated: bool,
    terminals: CommandTerminals,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notification<'a, U> {
    session_id: &'a SessionId,
    update: U,
}

/// A pending tool call with an explicit status. ACP allows omitting the status, and its types do,
/// but CodeCompanion and Avante treat such a call as running.
#[derive(Serialize)]
struct PendingToolCall {
    #[serde(flatten)]
    update: acp::SessionUpdate,
    status: acp::ToolCallStatus,
}

/// Returns the capability `_meta.nuncio.NAME` of a client, if it is a boolean.
pub(super) fn nuncio_capability(capabilities: &acp::ClientCapabilities, name: &str) -> Option<bool> {
    capabilities.meta.as_ref()?.get("nuncio")?.get(name)?.as_bool()
}

impl Projection {
    /// Creates the projection for a client. `client` is the id of the receiving client; `queued`
    /// are the messages that are queued already.
    pub(crate) fn new(
        session: SessionId,
        client: String,
        capabilities: &acp::ClientCapabilities,
        queued: HashSet<MessageId>,
        cwd: PathBuf,
    ) -> Projection {
        Projection {
            session,
            client,
            updates: nuncio_capability(capabilities, "updates") != Some(false),
            notices: capabilities.session.as_ref().is_some_and(|session| session.notices.is_some()),
            own_turn: false,
            queued,
            shown_bytes: HashMap::new(),
            cost: None,
            compactions: capabilities.session.as_ref().is_some_and(|session| session.compaction.is_some()),
            compaction: None,
            parent: None,
            is_delegated: false,
            terminals: CommandTerminals::new(capabilities, cwd),
        }
    }

    /// Marks the session as a subagent of `parent`.
    pub(super) fn set_parent(&mut self, parent: SessionId) {
        self.parent = Some(parent);
    }

    /// Sets the cost of the session, for a client that has not received all of its events.
    pub(crate) fn set_cost(&mut self, cost: Option<Cost>) {
        self.cost = cost;
    }

    /// Writes a `session/update` notification.
    pub(crate) fn update(&self, update: impl Serialize, out: &mut FrameWriter) {
        if self.updates {
            out.notify("session/update", Notification { session_id: &self.session, update });
        }
    }

    /// Writes the updates for a live event.
    pub(crate) fn shown(&mut self, event: &Event, out: &mut FrameWriter) {
        match &event.body {
            Body::MessageDelta { message_id, role, offset, text } => self.text(message_id, *role, *offset, text, out),
            Body::TurnStarted { by, .. } => {
                self.own_turn = by.as_ref().is_some_and(|by| by.as_str() == self.client);
                self.fact(event, out);
            }
            Body::MessageCompleted { message_id, role: Role::User, .. }
                if self.own_turn && event.turn_id.is_some() && !self.queued.contains(message_id) => {}
            _ => self.fact(event, out),
        }
    }

    /// Writes the updates for an event from the history. Messages are sent whole, tool calls
    /// without progress.
    pub(crate) fn replayed(&mut self, event: &Event, out: &mut FrameWriter) {
        match &event.body {
            Body::MessageDelta { .. } | Body::Notice { .. } => {}
            Body::MessageCompleted { discarded, role, .. } if *discarded && *role != Role::User => {}
            Body::ToolUpdated(ToolUpdate { status: None, change, .. }) if change.is_empty() => {}
            Body::UsageUpdated(UsageUpdate { cost, .. }) => {
                self.cost = Cost::sum(self.cost, *cost);
                self.fact(event, out);
            }
            Body::ChildCompleted { end, .. } => self.cost = Cost::sum(self.cost, end.cost),
            _ => self.fact(event, out),
        }
    }

    /// Writes text at byte `offset` of a message, except for the part that was sent already.
    pub(crate) fn text(&mut self, id: &MessageId, role: Role, offset: u64, text: &str, out: &mut FrameWriter) {
        let end = offset + text.len() as u64;
        let shown = match self.shown_bytes.get_mut(id) {
            Some(shown) => shown,
            None => self.shown_bytes.entry(id.clone()).or_default(),
        };
        // Either nothing is new, or an earlier delta was removed from the log. In the second case
        // the completed message follows and contains the whole text.
        if end <= *shown || offset > *shown {
            return;
        }
        let fresh = &text[(*shown - offset) as usize..];
        *shown = end;
        self.chunk(id, role, &Part::text(fresh), out);
    }

    fn chunk(&self, id: &MessageId, role: Role, part: &Part, out: &mut FrameWriter) {
        let chunk = acp::ContentChunk::new(content::block(part)).message_id(acp::MessageId::new(id.as_str()));
        let update = match role {
            Role::User | Role::System => acp::SessionUpdate::UserMessageChunk(chunk),
            Role::Assistant => acp::SessionUpdate::AgentMessageChunk(chunk),
            Role::Thought => acp::SessionUpdate::AgentThoughtChunk(chunk),
            // ACP has no such messages.
            Role::Custom => return,
        };
        self.update(update, out);
    }

    fn queue(&mut self, body: &Body) {
        match body {
            Body::MessageQueued(QueuedMessage { message_id, .. }) => drop(self.queued.insert(message_id.clone())),
            Body::MessageRemoved { message_id, .. } => drop(self.queued.remove(message_id)),
            _ => {}
        }
    }

    fn fact(&mut self, event: &Event, out: &mut FrameWriter) {
        let body = &event.body;
        match body {
            Body::TurnStarted { by, .. } => self.is_delegated = *by == Some(Actor::Task),
            Body::MessageQueued { .. } | Body::MessageRemoved { .. } => self.queue(body),
            Body::MessageCompleted { message_id, role, parts, .. } => self.completed(message_id, *role, parts, out),
            Body::ToolStarted { .. } => self.tool_started(body, out),
            Body::ToolUpdated(ToolUpdate { tool_call_id, status, content, change }) => {
                let terminal = content.as_ref().and_then(|content| self.terminals.output(tool_call_id, content));
                let locations = change.locations.as_ref().map(|all| all.iter().map(content::location).collect::<Vec<_>>());
                let fields = acp::ToolCallUpdateFields::new()
                    .status(status.map(content::tool_status))
                    .content(content.as_ref().map(|content| content::tool_contents(content, &self.client)))
                    .title(change.title.clone())
                    .kind(change.kind.map(content::tool_kind))
                    .raw_input(change.input.clone())
                    .locations(locations);
                self.tool_with(tool_call_id, fields, terminal, out);
            }
            Body::HookCompleted { tool_call_id: Some(id), changed: Some(changed), .. } => self.changed(id, changed, out),
            Body::ToolCompleted(ToolEnd { tool_call_id, status, content, locations, details, .. }) => {
                let terminal = self.terminals.end(tool_call_id, content, details.as_ref());
                let locations: Vec<_> = locations.iter().map(content::location).collect();
                let fields = acp::ToolCallUpdateFields::new()
                    .status(content::tool_status(*status))
                    .content(content::tool_contents(content, &self.client))
                    .locations((!locations.is_empty()).then_some(locations))
                    .raw_output(details.clone());
                self.tool_with(tool_call_id, fields, terminal, out);
            }
            Body::CompactionStarted { .. } | Body::CompactionCompleted { .. } => self.compaction(event, out),
            Body::PlanUpdated { entries } => {
                let plan = acp::Plan::new(entries.iter().map(content::plan_entry).collect());
                self.update(acp::SessionUpdate::Plan(plan), out);
            }
            Body::UsageUpdated(UsageUpdate { context_tokens, context_window, aside: false, .. }) => {
                self.usage(*context_tokens, *context_window, out)
            }
            Body::ModeChanged { mode } | Body::SessionGranted { mode, .. } => {
                self.update(acp::SessionUpdate::CurrentModeUpdate(acp::CurrentModeUpdate::new(mode.to_string())), out);
            }
            Body::SessionCreated { change, .. } | Body::SessionUpdated { change } => self.information(change, out),
            Body::Notice(Notice { severity, title, description, .. }) if self.notices && !body.is_context() => {
                let notice = acp::Notice::new(notice_severity(*severity), title.clone()).description(description.clone());
                self.update(acp::SessionUpdate::Notice(notice), out);
            }
            Body::Notice { .. }
            | Body::UsageUpdated { .. }
            | Body::HookCompleted { .. }
            | Body::MessageDelta { .. }
            | Body::ToolInput { .. }
            | Body::SessionClosed {}
            | Body::SessionDeleted {}
            | Body::MessageEdited { .. }
            | Body::TurnCompleted { .. }
            | Body::TurnFailed { .. }
            | Body::TurnCancelled { .. }
            | Body::TurnInterrupted {}
            | Body::Unknown(_)
            | ignored!(Step | Replacement | Permission | Verify | Pruning | Child | Agent | Budget) => {}
        }
    }

    /// Writes the start or the end of a compaction. Its id is the seq of its first event.
    fn compaction(&mut self, event: &Event, out: &mut FrameWriter) {
        if !self.compactions {
            return;
        }
        let new_id = || acp::CompactionId::new(format!("compaction-{}", event.seq));
        let update = match &event.body {
            Body::CompactionCompleted { outcome, summary, error, .. } => {
                let (status, error) = match outcome {
                    CompactionOutcome::Completed => (acp::CompactionStatus::Completed, None),
                    CompactionOutcome::Failed => (acp::CompactionStatus::Failed, error.clone()),
                    CompactionOutcome::Cancelled => (acp::CompactionStatus::Cancelled, None),
                    CompactionOutcome::Interrupted => (acp::CompactionStatus::Failed, Some("the process has ended".to_owned())),
                };
                let mut update = acp::CompactionUpdate::new(self.compaction.take().unwrap_or_else(new_id), status);
                if let Some(summary) = summary {
                    update = update.summary(vec![content::block(&Part::text(summary))]);
                }
                match error {
                    Some(error) => update.error(error),
                    None => update,
                }
            }
            _ => {
                let id = self.compaction.insert(new_id());
                acp::CompactionUpdate::new(id.clone(), acp::CompactionStatus::InProgress)
            }
        };
        self.update(acp::SessionUpdate::CompactionUpdate(update), out);
    }

    fn tool_started(&mut self, body: &Body, out: &mut FrameWriter) {
        let Body::ToolStarted(ToolStart { tool_call_id, name, title, kind, category, input, locations, .. }) = body else { return };
        let meta = self.terminals.start(tool_call_id, *category);
        let id = acp::ToolCallId::new(tool_call_id.as_str());
        let call = acp::ToolCall::new(id, title.clone())
            .name(name.clone())
            .kind(content::tool_kind(*kind))
            .locations(locations.iter().map(content::location).collect::<Vec<_>>())
            .raw_input(input.clone())
            .meta(meta);
        let status = acp::ToolCallStatus::Pending;
        self.update(PendingToolCall { update: acp::SessionUpdate::ToolCall(call), status }, out);
    }

    /// Writes the use of the context window, and the cost of the session.
    fn usage(&self, context_tokens: u64, context_window: u64, out: &mut FrameWriter) {
        let cost = self.cost.map(|cost| acp::Cost::new(cost.dollars(), "USD"));
        let usage = acp::UsageUpdate::new(context_tokens, context_window).cost(cost);
        self.update(acp::SessionUpdate::UsageUpdate(usage), out);
    }

    /// Writes a permission request without a tool call as a pending tool call, because ACP clients
    /// show requests with their tool call.
    pub(crate) fn question(&self, id: &ToolCallId, label: &ToolLabel, out: &mut FrameWriter) {
        let call = acp::ToolCall::new(acp::ToolCallId::new(id.as_str()), label.title.clone()).kind(acp::ToolKind::Other);
        let status = acp::ToolCallStatus::Pending;
        self.update(PendingToolCall { update: acp::SessionUpdate::ToolCall(call), status }, out);
    }

    /// Writes the end of a request that [`Projection::question`] has written.
    pub(crate) fn question_ended(&self, id: &ToolCallId, allowed: bool, out: &mut FrameWriter) {
        let status = if allowed { acp::ToolCallStatus::Completed } else { acp::ToolCallStatus::Failed };
        self.tool(id, acp::ToolCallUpdateFields::new().status(status), out);
    }

    fn completed(&mut self, id: &MessageId, role: Role, parts: &[Part], out: &mut FrameWriter) {
        if let (Some(parent), Role::User, true) = (&self.parent, role, self.is_delegated) {
            let message = acp::SessionMessage::new(acp::MessageId::new(id.as_str()))
                .sender_session_id(acp::SessionId::new(parent.as_str()))
                .recipient_session_id(acp::SessionId::new(self.session.as_str()))
                .content(parts.iter().map(content::block).collect::<Vec<_>>());
            self.update(acp::SessionUpdate::SessionMessage(message), out);
        } else if let [Part::Text { text }] = parts {
            self.text(id, role, 0, text, out);
        } else {
            for part in parts {
                self.chunk(id, role, part, out);
            }
        }
        self.shown_bytes.remove(id);
        self.queued.remove(id);
    }

    fn information(&self, change: &SessionChange, out: &mut FrameWriter) {
        if let Some(title) = &change.title {
            self.update(acp::SessionUpdate::SessionInfoUpdate(acp::SessionInfoUpdate::new().title(title.clone())), out);
        }
    }

    fn changed(&self, id: &ToolCallId, changed: &ChangedCall, out: &mut FrameWriter) {
        let fields = acp::ToolCallUpdateFields::new()
            .title(changed.title.clone())
            .locations(changed.locations.iter().map(content::location).collect::<Vec<_>>())
            .raw_input(changed.input.clone());
        self.tool(id, fields, out);
    }

    fn tool(&self, id: &ToolCallId, fields: acp::ToolCallUpdateFields, out: &mut FrameWriter) {
        self.tool_with(id, fields, None, out);
    }

    /// Writes a tool call update. The content of `terminal` replaces that of `fields`.
    fn tool_with(
        &self,
        id: &ToolCallId,
        fields: acp::ToolCallUpdateFields,
        terminal: Option<TerminalUpdate>,
        out: &mut FrameWriter,
    ) {
        let id = acp::ToolCallId::new(id.as_str());
        let update = match terminal {
            Some((content, meta)) => acp::ToolCallUpdate::new(id, fields.content(content)).meta(meta),
            None => acp::ToolCallUpdate::new(id, fields),
        };
        self.update(acp::SessionUpdate::ToolCallUpdate(update), out);
    }
}

fn notice_severity(severity: Severity) -> acp::NoticeSeverity {
    match severity {
        Severity::Info => acp::NoticeSeverity::Info,
        Severity::Warning => acp::NoticeSeverity::Warning,
        Severity::Error => acp::NoticeSeverity::Error,
    }
}

/// Returns the update that lists the commands that a user can enter.
pub(crate) fn available_commands(commands: &[SlashCommand]) -> acp::SessionUpdate {
    let commands = commands.iter().map(|command| {
        let hint = Some(command.hint.clone()).filter(|hint| !hint.is_empty());
        let input = hint.map(|hint| acp::AvailableCommandInput::Unstructured(acp::UnstructuredCommandInput::new(hint)));
        acp::AvailableCommand::new(command.name.clone(), command.description.clone()).input(input)
    });
    acp::SessionUpdate::AvailableCommandsUpdate(acp::AvailableCommandsUpdate::new(commands.collect()))
}
