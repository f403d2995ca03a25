//! The messages of a session: what the user and the model wrote, and the completed tool calls.

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::views::view::PageParams;
use crate::content::{Location, Part, Role, ToolKind, ToolLabel, ToolStatus};
use crate::error::Result;
use crate::event::{Body, Event, MessageExtra, ToolEnd, ToolStart};
use crate::id::{MessageId, Seq, ToolCallId, TurnId};
use crate::limits;
use crate::session::Session;

/// Maximum number of event pages that are read to fill a page of messages. Reading continues beyond
/// the limit only while the page of messages is empty.
const MESSAGES_PAGES_MAX: usize = 4;

/// The author of a listed message.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ListedRole {
    User,
    Assistant,
    /// The model's reasoning, if its provider returns it.
    Thought,
    System,
    /// A message between clients, which no model receives.
    Custom,
    /// A tool call with its result.
    Tool,
}

/// A completed message, or a completed tool call.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageView {
    /// For role `tool`, the id of the tool call.
    message_id: MessageId,
    turn_id: Option<TurnId>,
    /// Seq of the message's `message.completed`, or of the tool call's `tool.completed`.
    seq: Seq,
    /// Milliseconds since the Unix epoch.
    at_ms: u64,
    role: ListedRole,
    /// For role `tool`, the output that the model received.
    parts: Vec<Part>,
    /// `PROVIDER/NAME`, for roles `assistant` and `thought`.
    model: Option<String>,
    /// The message is the start of an interrupted answer; it is not sent to models.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    discarded: bool,
    #[serde(flatten)]
    extra: MessageExtra,
    /// Present for role `tool`.
    #[serde(flatten)]
    tool: Option<ToolCallView>,
}

/// A completed tool call. Calls that one answer of the model requested start before the first of
/// them completes.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToolCallView {
    tool_call_id: ToolCallId,
    #[serde(flatten)]
    label: ToolLabel,
    kind: ToolKind,
    /// The arguments as the model wrote them.
    input: Value,
    status: ToolStatus,
    /// Files that the call has read or written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    locations: Vec<Location>,
    /// The tool's typed result.
    details: Option<Value>,
    /// `unknown`: the process that ran the call died, so the call may have had an effect.
    effect: Option<String>,
    /// Seq of the call's `tool.started`.
    started_seq: Seq,
    /// Time of the call's `tool.started`, in milliseconds since the Unix epoch.
    started_at_ms: u64,
}

/// A page of messages, oldest first. `nextCursor` is missing on the last page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessagesPage {
    messages: Vec<MessageView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(crate) struct ListMessages;

impl Method for ListMessages {
    type Params = PageParams;
    type Result = MessagesPage;
    const NAME: &'static str = "_nuncio/session/messages";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "limit": 20}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/messages")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the completed messages and the completed tool calls (role tool) of a session, oldest first.";

    async fn call(cx: CallContext, params: PageParams) -> Result<Reply<MessagesPage>> {
        let (after, limit) = params.bounds()?;
        let session = cx.open_read_only(&params.session_id).await?;
        Ok(Reply::new(Reader::new(&session).page(after, limit).await?))
    }
}

/// Reads the messages of a session.
struct Reader<'a> {
    session: &'a Session,
    /// The `tool.started` events that were read.
    started: HashMap<ToolCallId, Arc<Event>>,
}

impl Reader<'_> {
    fn new(session: &Session) -> Reader<'_> {
        Reader { session, started: HashMap::new() }
    }

    /// Reads events until `limit` + 1 messages are found or a bounded number of pages is read. The
    /// additional message shows that a next page exists.
    async fn page(mut self, mut after: Seq, limit: usize) -> Result<MessagesPage> {
        let (mut messages, mut pages) = (Vec::new(), 0);
        while messages.len() <= limit {
            if !messages.is_empty() && pages >= MESSAGES_PAGES_MAX {
                return Ok(MessagesPage { messages, next_cursor: Some(after.to_string()) });
            }
            let events = self.session.log.page(after, limits::PAGE_EVENTS, false).await?;
            let Some(last) = events.last() else { return Ok(MessagesPage { messages, next_cursor: None }) };
            after = last.seq;
            pages += 1;
            for event in events {
                messages.extend(self.message(event).await?);
            }
        }
        messages.truncate(limit);
        let next_cursor = messages.last().map(|last| last.seq.to_string());
        Ok(MessagesPage { messages, next_cursor })
    }

    /// Returns the message that an event completes.
    async fn message(&mut self, event: Arc<Event>) -> Result<Option<MessageView>> {
        let mut more = MessageExtra::default();
        let (message_id, role, parts, discarded, tool) = match &event.body {
            Body::MessageCompleted { message_id, role, parts, discarded, extra, .. } => {
                more = extra.clone();
                (message_id.clone(), listed(*role), parts, *discarded, None)
            }
            Body::ToolStarted(ToolStart { tool_call_id, .. }) => {
                self.started.insert(tool_call_id.clone(), event);
                return Ok(None);
            }
            Body::ToolCompleted(ToolEnd { tool_call_id, output, .. }) => {
                let Some(started) = self.started(tool_call_id).await? else { return Ok(None) };
                (tool_call_id.as_str().into(), ListedRole::Tool, output, false, tool_call(&started, &event))
            }
            _ => return Ok(None),
        };
        let model = match role {
            ListedRole::Assistant | ListedRole::Thought => self.model(event.turn_id.as_ref()),
            ListedRole::User | ListedRole::System | ListedRole::Custom | ListedRole::Tool => None,
        };
        Ok(Some(MessageView {
            message_id,
            turn_id: event.turn_id.clone(),
            seq: event.seq,
            at_ms: event.at_ms,
            role,
            parts: parts.clone(),
            model,
            discarded,
            extra: more,
            tool,
        }))
    }

    /// Returns the `tool.started` of a call. The event precedes the page if the page starts while
    /// the call runs.
    async fn started(&mut self, id: &ToolCallId) -> Result<Option<Arc<Event>>> {
        if let Some(started) = self.started.remove(id) {
            return Ok(Some(started));
        }
        let log = &self.session.log;
        let Some(seq) = log.state(|state| state.history.call_started(id)) else { return Ok(None) };
        Ok(log.page(seq - 1, 1, false).await?.pop())
    }

    fn model(&self, turn: Option<&TurnId>) -> Option<String> {
        self.session.log.state(|state| state.turns.get(turn?)?.model.as_deref().map(String::from))
    }
}

fn listed(role: Role) -> ListedRole {
    match role {
        Role::User => ListedRole::User,
        Role::Assistant => ListedRole::Assistant,
        Role::Thought => ListedRole::Thought,
        Role::System => ListedRole::System,
        Role::Custom => ListedRole::Custom,
    }
}

/// Combines the start and the end of a tool call.
fn tool_call(started: &Event, completed: &Event) -> Option<ToolCallView> {
    let Body::ToolStarted(ToolStart { tool_call_id, name, title, kind, category, input, .. }) = &started.body else { return None };
    let Body::ToolCompleted(ToolEnd { status, locations, details, effect, .. }) = &completed.body else { return None };
    Some(ToolCallView {
        tool_call_id: tool_call_id.clone(),
        label: ToolLabel { name: name.clone(), title: title.clone(), category: *category },
        kind: *kind,
        input: input.clone(),
        status: *status,
        locations: locations.clone(),
        details: details.clone(),
        effect: effect.clone(),
        started_seq: started.seq,
        started_at_ms: started.at_ms,
    })
}
