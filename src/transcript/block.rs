//! The blocks of a transcript.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::content::{Cost, PermissionOption, PlanEntry, ReviewOffer, StopReason, ToolCategory, ToolContent, ToolKind, Usage};
use crate::event::{Actor, ChildEnd, ChildLabel, CompactionOutcome, Delivery, Severity};
use crate::id::{MessageId, PermissionId, ToolCallId};
use crate::options::{Mode, OptionValue};

/// A text that is attached to a message, for example the content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedText {
    pub uri: String,
    /// Number of lines.
    pub lines: usize,
}

/// A change to the transcript.
#[derive(Debug, PartialEq)]
pub enum TranscriptBlock<'a> {
    /// A complete user message.
    UserMessage {
        text: String,
        attached: Vec<AttachedText>,
    },
    /// The next piece of an answer, or of a thought that precedes it.
    MessageText {
        id: &'a MessageId,
        thought: bool,
        text: Cow<'a, str>,
    },
    /// A message is complete; `text` is the whole message. `discarded` is true if the answer was
    /// interrupted and is requested again.
    MessageEnd {
        id: &'a MessageId,
        thought: bool,
        text: String,
        discarded: bool,
        /// Time since its first piece, if it arrived in pieces.
        duration: Option<Duration>,
    },
    /// The model writes the arguments of a tool call.
    ToolInput {
        name: &'a str,
        bytes: u64,
        path: Option<&'a str>,
    },
    /// The model called a tool.
    ToolStart {
        id: &'a ToolCallId,
        title: &'a str,
        kind: ToolKind,
    },
    /// The content of a running tool call so far, for example the output of a command.
    ToolProgress {
        id: &'a ToolCallId,
        title: String,
        content: &'a [ToolContent],
    },
    /// A tool call ended.
    ToolEnd(ToolEndBlock<'a>),
    /// A tool call needs permission.
    Question(PermissionQuestion<'a>),
    /// A tool call was denied.
    Denied(Denial<'a>),
    /// A request was answered with a choice for the whole session. `choice` is the name of the
    /// option.
    Granted {
        call: &'a ToolCallId,
        title: String,
        choice: String,
    },
    /// The whole plan, which replaces the previous one.
    Plan(&'a [PlanEntry]),
    Notice {
        severity: Severity,
        title: &'a str,
        description: Option<&'a str>,
    },
    TurnStart,
    /// A model request starts. `model` is `PROVIDER/NAME`.
    Request {
        model: &'a str,
    },
    /// A model request reported its usage. `turn` is the sum of the turn so far; `context_tokens`
    /// of the model's `context_window` are in use.
    Usage {
        turn: Usage,
        context_tokens: u64,
        context_window: u64,
    },
    /// A failed model request is sent again at this time, in milliseconds since the Unix epoch.
    Retry {
        at_ms: u64,
    },
    /// The conversation is replaced by a summary.
    CompactionStart,
    /// A compaction ended. The sizes are estimates in tokens, as far as they are known; `error`
    /// says why it failed.
    CompactionEnd {
        outcome: CompactionOutcome,
        before: Option<u64>,
        after: Option<u64>,
        error: Option<&'a str>,
    },
    SubagentStart(&'a ChildLabel),
    SubagentEnd(&'a ChildLabel, &'a ChildEnd),
    /// The project's checks ran. `round` is 0 before the first edit.
    Checks {
        round: u32,
        passed: bool,
    },
    /// A message waits for the running turn, or for its end.
    Queued {
        id: &'a MessageId,
        text: String,
        delivery: Delivery,
    },
    /// A queued message has another text, or another delivery.
    QueuedChange {
        id: &'a MessageId,
        text: Option<String>,
        delivery: Option<Delivery>,
    },
    /// A message left the queue, because it was removed.
    Unqueued {
        id: &'a MessageId,
    },
    ModeChange(&'a OptionValue<Mode>),
    /// A turn ended. `usage` and `cost` are those of the turn's model requests and of the subagents
    /// that ended during the turn, as far as they were reported.
    TurnEnd {
        reason: TurnEndReason<'a>,
        usage: Option<Usage>,
        cost: Option<Cost>,
        /// Time from the start of the turn; `None` if its start is not known.
        duration: Option<Duration>,
    },
}

/// A tool call that ended.
#[derive(Debug, PartialEq)]
pub struct ToolEndBlock<'a> {
    pub id: &'a ToolCallId,
    /// The last title of the call; empty if its start is not known.
    pub title: String,
    pub outcome: ToolOutcome,
    /// The kind of the tool, if the start of the call is known.
    pub kind: Option<ToolKind>,
    /// The typed result of the tool.
    pub details: Option<&'a Value>,
    /// Time since the start of the call, or since its permission.
    pub duration: Option<Duration>,
    /// The answer to a permission request that allowed the call.
    pub permission: Option<CallPermission>,
    /// True if a block has reported the denial of the call.
    pub is_denied: bool,
    /// The whole content.
    pub whole: &'a [ToolContent],
    /// The content, without what the permission request showed.
    pub content: Vec<&'a ToolContent>,
    /// The changes that the permission request showed, if others were made.
    pub proposed: Vec<ToolContent>,
    /// True if earlier blocks already showed the content: a question with the same change, a plan,
    /// or a denial.
    pub already_shown: bool,
}

/// The answer to a permission request that allowed a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPermission {
    pub by: Actor,
    /// The name of the option, if it holds for the whole session.
    pub choice: Option<String>,
}

/// The denial of a tool call. `cancelled` is true if the turn was cancelled while the question was
/// open.
#[derive(Debug, PartialEq)]
pub struct Denial<'a> {
    pub id: &'a ToolCallId,
    pub title: String,
    pub cancelled: bool,
    pub reason: Cow<'a, str>,
    /// The author of the denial, as in `permission.resolved`.
    pub by: &'a Actor,
    /// The files that the call named at its start.
    pub paths: Vec<PathBuf>,
    pub category: Option<ToolCategory>,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    Completed,
    Failed,
    /// A command ended with this exit code.
    Exited(i64),
}

/// A permission question. `title` is the title of the tool call, if known.
#[derive(Debug, PartialEq)]
pub struct PermissionQuestion<'a> {
    pub id: &'a PermissionId,
    /// The call that needs the permission.
    pub call: &'a ToolCallId,
    pub title: Option<String>,
    /// The change or command to approve.
    pub content: &'a [ToolContent],
    pub options: &'a [PermissionOption],
    /// The files and hunks that an answer may decide about.
    pub review: &'a Option<ReviewOffer>,
    /// True for a review of the changes of a turn, which are made already.
    pub is_done: bool,
}

/// How a turn ended.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnEndReason<'a> {
    Stopped(StopReason),
    Failed {
        message: &'a str,
        hint: Option<&'a str>,
    },
    Cancelled,
    /// A permission request got no answer in time.
    Unanswered,
    /// The process that ran the turn exited.
    Interrupted,
}
