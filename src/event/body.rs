//! The bodies of events.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::change::SessionChange;
use super::child::{ChildEnd, ChildLabel, SessionParent};
use super::compaction::{CompactionOutcome, CompactionReason, PrunedOutput};
use super::hook::{ChangedCall, HookEvent, HookOutcome};
use super::message::{Delivery, MessageExtra, ReplacedMessage};
use super::notice::Severity;
use super::permission::PermissionOutcome;
use super::tool::ToolChange;
use super::unknown::UnknownEvent;
use crate::content::{
    BudgetLimits, CheckResult, Cost, Location, Part, PermissionOption, PlanEntry, ProviderState, ReviewOffer, Role, StepOutcome,
    StopReason, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus, Usage,
};
use crate::id::{MessageId, PermissionId, ToolCallId, TurnId};
use crate::options::{Mode, OptionValue};

/// The body of an event; `type` names it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase", remote = "Self")]
pub enum Body {
    #[serde(rename = "session.created")]
    SessionCreated {
        cwd: PathBuf,
        mode: OptionValue<Mode>,
        #[serde(flatten)]
        change: SessionChange,
        /// Present for the session of a subagent.
        parent: Option<SessionParent>,
    },
    #[serde(rename = "session.updated")]
    SessionUpdated {
        #[serde(flatten)]
        change: SessionChange,
    },
    #[serde(rename = "session.closed")]
    SessionClosed {},
    #[serde(rename = "session.deleted")]
    SessionDeleted {},

    /// `by` is the client that prompted. `retries` is the earlier turn whose prompt this one runs
    /// again: the model sees what it saw when that turn started. `budget` has limits of this turn.
    #[serde(rename = "turn.started")]
    TurnStarted { by: Option<String>, retries: Option<TurnId>, budget: Option<BudgetLimits> },
    #[serde(rename = "turn.completed")]
    TurnCompleted { stop_reason: StopReason },
    /// `code` is a code of the error table. `info` has the same facts as `info` of the error. For a
    /// failed model request, `info.cause` is `context_overflow` (with `requestTokens` and
    /// `contextWindow` if the provider reported them), `rate_limit`, `quota`, `authentication`,
    /// `unknown_model`, `overloaded`, `content_filter`, `bad_request`, `invalid_answer` or `other`.
    /// Later requests leave out a turn that ended with `context_overflow`.
    #[serde(rename = "turn.failed")]
    TurnFailed { code: String, message: String, hint: Option<String>, info: Option<Value> },
    #[serde(rename = "turn.cancelled")]
    TurnCancelled {},
    /// The process that ran the turn died. The turn is not resumed.
    #[serde(rename = "turn.interrupted")]
    TurnInterrupted {},

    /// A model request starts. `step` is its number in the turn, from 1; a request that is sent
    /// again has a number of its own. `model` is `PROVIDER/NAME`.
    #[serde(rename = "step.started")]
    StepStarted { step: u32, model: String },
    /// The model request ended. The messages and tool calls of its answer precede this event; the
    /// tool calls run after it. `usage` is missing if the provider reported none, `cost` (in US
    /// dollars) also if the model's price is unknown.
    #[serde(rename = "step.completed")]
    StepCompleted {
        step: u32,
        model: String,
        outcome: StepOutcome,
        usage: Option<Usage>,
        cost: Option<Cost>,
        /// Why the request failed or is sent again.
        error: Option<String>,
        /// When the request is sent again, in milliseconds since the Unix epoch.
        retry_at_ms: Option<u64>,
    },

    /// A piece of a message that starts at byte `offset` of its text.
    #[serde(rename = "message.delta")]
    MessageDelta { message_id: MessageId, role: Role, offset: u64, text: String },
    /// A whole message. `discarded`: the start of an answer that was interrupted and requested
    /// again; it is not sent to models.
    #[serde(rename = "message.completed")]
    MessageCompleted {
        message_id: MessageId,
        role: Role,
        parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        discarded: bool,
        provider_state: Option<ProviderState>,
        #[serde(flatten)]
        extra: MessageExtra,
    },
    /// A client replaced the messages that the model sees. The earlier ones stay in the log.
    #[serde(rename = "messages.replaced")]
    MessagesReplaced { messages: Vec<ReplacedMessage> },
    /// A message that waits while a turn runs; `message.completed` follows when it is delivered.
    /// `by` is the client that sent it.
    #[serde(rename = "message.queued")]
    MessageQueued { message_id: MessageId, role: Role, parts: Vec<Part>, delivery: Delivery, auto_run: bool, by: Option<String> },

    /// A queued message changed; an absent field did not. `by` is the client that changed it.
    #[serde(rename = "message.edited")]
    MessageEdited { message_id: MessageId, parts: Option<Vec<Part>>, delivery: Option<Delivery>, by: Option<String> },
    /// A queued message was removed; it is not delivered. `by` is the client that removed it.
    #[serde(rename = "message.removed")]
    MessageRemoved { message_id: MessageId, by: Option<String> },

    /// The model requested a tool call; it is pending. `input_text` is the input as the model wrote
    /// it, if the serialization of `input` differs, for example in its white space. `automatic`:
    /// nuncio made the call, not the model, whose messages do not contain it.
    #[serde(rename = "tool.started")]
    ToolStarted {
        tool_call_id: ToolCallId,
        name: String,
        title: String,
        kind: ToolKind,
        category: Option<ToolCategory>,
        input: Value,
        input_text: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
        provider_state: Option<ProviderState>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        automatic: bool,
    },
    /// The model writes the arguments of a call, of which it has written `bytes` so far. `path` is
    /// the file of the call, once it is known. Short arguments have no such event.
    #[serde(rename = "tool.input")]
    ToolInput { name: String, bytes: u64, path: Option<String> },
    /// Changed fields of a tool call. `content` replaces the content shown so far.
    #[serde(rename = "tool.updated")]
    ToolUpdated {
        tool_call_id: ToolCallId,
        status: Option<ToolStatus>,
        content: Option<Vec<ToolContent>>,
        #[serde(flatten)]
        change: ToolChange,
    },
    /// `output` is sent to the model, `content` is shown to users, `details` is the tool's typed
    /// result. `name`, `title` and `category` are those of `tool.started`, here and in the
    /// `permission` events; events of older versions lack them.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        tool_call_id: ToolCallId,
        #[serde(flatten)]
        tool: Option<ToolLabel>,
        status: ToolStatus,
        output: Vec<Part>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<ToolContent>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
        details: Option<Value>,
        /// `unknown`: the process that ran the call died, so the call may have had an effect.
        effect: Option<String>,
    },

    /// A tool call needs permission. The first answer counts. A request with the name `budget`
    /// belongs to no tool call: it asks for permission to exceed a budget that is used up.
    #[serde(rename = "permission.requested")]
    PermissionRequested {
        permission_id: PermissionId,
        tool_call_id: ToolCallId,
        #[serde(flatten)]
        tool: Option<ToolLabel>,
        /// The change or command to approve.
        content: Vec<ToolContent>,
        options: Vec<PermissionOption>,
        /// Milliseconds since the Unix epoch. The request is denied at this time.
        deadline_ms: u64,
        /// For a review of changes: the files and hunks that the answer may decide about.
        review: Option<ReviewOffer>,
    },
    /// The decision on a tool call: the answer to a permission request (`permission_id`), or the
    /// result of a rule or the mode (no `permission_id`).
    #[serde(rename = "permission.resolved")]
    PermissionResolved {
        permission_id: Option<PermissionId>,
        tool_call_id: ToolCallId,
        #[serde(flatten)]
        tool: Option<ToolLabel>,
        outcome: PermissionOutcome,
        reason: Option<String>,
        /// A principal, `rule`, `mode`, `deadline`, `disconnect`, or the setting `verify.auto`.
        by: String,
        /// The rule that decided, or the session rule that an "always" answer created.
        rule: Option<Value>,
    },

    /// nuncio runs the project's checks, because the turn changed files (`verify.auto`). `round` is
    /// the number of the run in the turn, from 1; 0 is the run before the first edit
    /// (`verify.baseline`). The call `tool_call_id` shows the output.
    #[serde(rename = "verify.started")]
    VerifyStarted { tool_call_id: ToolCallId, round: u32, commands: Vec<String> },
    /// The checks ended. `error`: why they could not be run.
    #[serde(rename = "verify.completed")]
    VerifyCompleted { tool_call_id: ToolCallId, round: u32, passed: bool, commands: Vec<CheckResult>, error: Option<String> },

    #[serde(rename = "plan.updated")]
    PlanUpdated { entries: Vec<PlanEntry> },
    /// Usage of one model request, and its cost in US dollars if the model's price is known.
    /// `context_tokens` of the model's `context_window` are in use.
    #[serde(rename = "usage.updated")]
    UsageUpdated {
        model: String,
        #[serde(flatten)]
        usage: Usage,
        cost: Option<Cost>,
        context_tokens: u64,
        context_window: u64,
    },
    /// Later requests contain a short text instead of these tool outputs. `tokens` is an estimate
    /// of the tokens saved.
    #[serde(rename = "context.pruned")]
    ContextPruned { outputs: Vec<PrunedOutput>, tokens: u64 },
    /// The model is asked for a summary of the conversation. `context_tokens` is an estimate for
    /// the conversation before it; `focus` is the emphasis that the user asked for.
    #[serde(rename = "compaction.started")]
    CompactionStarted { reason: CompactionReason, focus: Option<String>, context_tokens: u64 },
    /// With the outcome `completed`, later requests contain `summary` and the messages after this
    /// event instead of the messages before it; during a turn, the user's messages of the turn
    /// follow the summary. The log keeps all messages. `context_tokens` is an estimate for the
    /// conversation after the compaction.
    #[serde(rename = "compaction.completed")]
    CompactionCompleted {
        outcome: CompactionOutcome,
        summary: Option<String>,
        context_tokens: Option<u64>,
        /// Why it failed.
        error: Option<String>,
    },
    /// A tool call started a subagent, which works in a session of its own. `background`: the call
    /// does not wait for it.
    #[serde(rename = "child.started")]
    ChildStarted {
        #[serde(flatten)]
        child: ChildLabel,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
    },
    /// The work of a subagent ended.
    #[serde(rename = "child.completed")]
    ChildCompleted {
        #[serde(flatten)]
        child: ChildLabel,
        #[serde(flatten)]
        end: ChildEnd,
    },
    /// A hook ran for a tool call or, without `tool_call_id`, for a model request. `hook` is the
    /// command. `reason` says why the hook blocked. `error` says why it failed; its setting
    /// `on_failure` decides what then happens.
    #[serde(rename = "hook.completed")]
    HookCompleted {
        event: HookEvent,
        hook: String,
        tool_call_id: Option<ToolCallId>,
        outcome: HookOutcome,
        duration_ms: u64,
        reason: Option<String>,
        error: Option<String>,
        changed: Option<ChangedCall>,
    },
    /// An answer to a permission request raised a limit of the running turn or of the session.
    #[serde(rename = "budget.raised")]
    BudgetRaised {
        #[serde(flatten)]
        limits: BudgetLimits,
    },
    #[serde(rename = "mode.changed")]
    ModeChanged { mode: OptionValue<Mode> },
    /// `code` names the subject of some notices: `repeated_calls`, `repeated_text`, `hook_message`,
    /// `hook_failed`, `verify`, `review` and `repository` (context for the model, which clients do
    /// not show). `note` is text about it for the model, which later requests contain.
    #[serde(rename = "notice")]
    Notice { severity: Severity, title: String, description: Option<String>, code: Option<String>, note: Option<String> },
    /// An event of a newer version.
    #[serde(skip)]
    Unknown(UnknownEvent),
}
