//! The bodies of events.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::actor::Actor;
use super::agent::AgentEndReason;
use super::change::SessionChange;
use super::child::{ChildEnd, ChildLabel, SessionParent};
use super::compaction::{CompactionOutcome, CompactionReason, PrunedOutput};
use super::hook::{ChangedCall, HookEvent, HookOutcome};
use super::message::{Delivery, MessageExtra, QueuedMessage, ReplacedMessage};
use super::notice::Notice;
use super::permission::{CancelCause, PermissionDecision, PermissionRequest};
use super::step::{StepEnd, StepStart, UsageUpdate};
use super::tool::{ToolEnd, ToolStart, ToolUpdate};
use super::turn::TurnFailure;
use super::unknown::UnknownEvent;
use crate::content::{BudgetLimits, CheckResult, Part, PlanEntry, ProviderState, Role, StopReason};
use crate::id::{MessageId, PermissionId, ToolCallId, TurnId};
use crate::options::{Mode, OptionValue};

/// The body of an event; `type` names it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase", remote = "Self")]
#[non_exhaustive]
pub enum Body {
    /// The first event of a session.
    #[serde(rename = "session.created")]
    #[non_exhaustive]
    SessionCreated {
        /// The directory of the session.
        cwd: PathBuf,
        /// The permission mode.
        mode: OptionValue<Mode>,
        /// Further settings.
        #[serde(flatten)]
        change: SessionChange,
        /// Present for the session of a subagent.
        parent: Option<SessionParent>,
        /// The key in the tag of notes to the model. Missing in sessions of hosted agents and in
        /// events of older versions.
        note_key: Option<String>,
    },
    /// Settings of the session changed; an absent field did not.
    #[serde(rename = "session.updated")]
    #[non_exhaustive]
    SessionUpdated {
        /// The settings that changed.
        #[serde(flatten)]
        change: SessionChange,
    },
    /// All that the session may do from now on, whatever earlier events say: a new owner has
    /// checked it. Settings that are missing have the values of a new session; the title and the
    /// thinking level do not change.
    #[serde(rename = "session.granted")]
    #[non_exhaustive]
    SessionGranted {
        /// The permission mode.
        mode: OptionValue<Mode>,
        /// The settings.
        #[serde(flatten)]
        change: SessionChange,
        /// Present for the session of a subagent.
        parent: Option<Box<SessionParent>>,
        /// The remembered permission rules, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<Value>,
        /// Limits of the session that answers have raised.
        raised: Option<Box<BudgetLimits>>,
    },
    /// A client closed the session. It can be resumed.
    #[serde(rename = "session.closed")]
    #[non_exhaustive]
    SessionClosed {},
    /// The session is deleted.
    #[serde(rename = "session.deleted")]
    #[non_exhaustive]
    SessionDeleted {},
    /// The work on a prompt starts.
    #[serde(rename = "turn.started")]
    #[non_exhaustive]
    TurnStarted {
        /// The client that prompted.
        by: Option<Actor>,
        /// The earlier turn whose prompt this one runs again: the model sees what it saw when that
        /// turn started.
        retries: Option<TurnId>,
        /// Limits of this turn.
        budget: Option<BudgetLimits>,
    },
    /// The turn ended without an error.
    #[serde(rename = "turn.completed")]
    #[non_exhaustive]
    TurnCompleted {
        /// Why the turn ended.
        stop_reason: StopReason,
    },
    /// The turn ended with an error.
    #[serde(rename = "turn.failed")]
    #[schemars(with = "TurnFailure")]
    TurnFailed(TurnFailure),
    /// A client cancelled the turn, or it ended for the cause.
    #[serde(rename = "turn.cancelled")]
    #[non_exhaustive]
    TurnCancelled {
        /// Missing if a client cancelled the turn.
        cause: Option<CancelCause>,
    },
    /// The process that ran the turn died. The turn is not resumed.
    #[serde(rename = "turn.interrupted")]
    #[non_exhaustive]
    TurnInterrupted {},
    /// A model request starts.
    #[serde(rename = "step.started")]
    StepStarted(StepStart),
    /// The model request ended. The messages and tool calls of its answer precede this event; the
    /// tool calls run after it.
    #[serde(rename = "step.completed")]
    StepCompleted(StepEnd),
    /// A piece of a message.
    #[serde(rename = "message.delta")]
    #[non_exhaustive]
    MessageDelta {
        /// The message, which `message.completed` repeats in full.
        message_id: MessageId,
        /// The author of the message.
        role: Role,
        /// Byte of the message's text at which the piece starts.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// A whole message.
    #[serde(rename = "message.completed")]
    #[non_exhaustive]
    MessageCompleted {
        /// Also the id of its `message.delta` and `message.queued` events.
        message_id: MessageId,
        /// The author of the message.
        role: Role,
        /// The content.
        parts: Vec<Part>,
        /// The start of an answer that was interrupted and requested again; it is not sent to
        /// models.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        discarded: bool,
        /// Data that the provider requires back.
        provider_state: Option<ProviderState>,
        /// Optional fields.
        #[serde(flatten)]
        extra: MessageExtra,
    },
    /// A client replaced the messages that the model sees. The earlier ones stay in the log.
    #[serde(rename = "messages.replaced")]
    #[non_exhaustive]
    MessagesReplaced {
        /// All messages that the model sees from now on.
        messages: Vec<ReplacedMessage>,
    },
    /// A message that waits while a turn runs; `message.completed` follows when it is delivered.
    #[serde(rename = "message.queued")]
    MessageQueued(QueuedMessage),
    /// A queued message changed.
    #[serde(rename = "message.edited")]
    #[non_exhaustive]
    MessageEdited {
        /// The queued message.
        message_id: MessageId,
        /// The new content; missing if it did not change.
        parts: Option<Vec<Part>>,
        /// The new delivery; missing if it did not change.
        delivery: Option<Delivery>,
        /// The client that changed it.
        by: Option<Actor>,
    },
    /// A queued message was removed; it is not delivered.
    #[serde(rename = "message.removed")]
    #[non_exhaustive]
    MessageRemoved {
        /// The queued message.
        message_id: MessageId,
        /// The client that removed it.
        by: Option<Actor>,
    },
    /// The model requested a tool call; it is pending.
    #[serde(rename = "tool.started")]
    ToolStarted(ToolStart),
    /// The model writes the arguments of a call. Short arguments have no such event.
    #[serde(rename = "tool.input")]
    #[non_exhaustive]
    ToolInput {
        /// The name of the tool.
        name: String,
        /// Bytes of the arguments so far.
        bytes: u64,
        /// The file of the call, once it is known.
        path: Option<String>,
    },
    /// Changed fields of a tool call; the others are missing.
    #[serde(rename = "tool.updated")]
    ToolUpdated(ToolUpdate),
    /// The tool call ended.
    #[serde(rename = "tool.completed")]
    ToolCompleted(ToolEnd),
    /// A tool call needs permission. The first answer counts. A request with the name `budget`
    /// belongs to no tool call: it asks for permission to exceed a budget that is used up.
    #[serde(rename = "permission.requested")]
    PermissionRequested(PermissionRequest),
    /// The deadline of a permission request began, or ended because a person's client was attached.
    #[serde(rename = "permission.updated")]
    #[non_exhaustive]
    PermissionUpdated {
        /// The permission request.
        permission_id: PermissionId,
        /// As in `permission.requested`.
        deadline_ms: Option<u64>,
    },
    /// The decision on a tool call: the answer to a permission request, or the result of a rule or
    /// the mode.
    #[serde(rename = "permission.resolved")]
    PermissionResolved(PermissionDecision),
    /// A user removed a rule that an "always" answer had added to the session.
    #[serde(rename = "permission.forgotten")]
    #[non_exhaustive]
    PermissionForgotten {
        /// The rule.
        rule: Value,
        /// The client that removed it.
        by: Actor,
    },
    /// nuncio runs the project's checks, because the turn changed files (`verify.auto`).
    #[serde(rename = "verify.started")]
    #[non_exhaustive]
    VerifyStarted {
        /// The call that shows the output.
        tool_call_id: ToolCallId,
        /// Number of the run in the turn, from 1; 0 is the run before the first edit
        /// (`verify.baseline`).
        round: u32,
        /// The check commands.
        commands: Vec<String>,
    },
    /// The checks ended.
    #[serde(rename = "verify.completed")]
    #[non_exhaustive]
    VerifyCompleted {
        /// The call that shows the output.
        tool_call_id: ToolCallId,
        /// The number in `verify.started`.
        round: u32,
        /// True if all checks passed.
        passed: bool,
        /// The results of the commands that ran.
        commands: Vec<CheckResult>,
        /// Why the checks could not be run.
        error: Option<String>,
    },
    /// The agent changed its plan.
    #[serde(rename = "plan.updated")]
    #[non_exhaustive]
    PlanUpdated {
        /// The whole plan.
        entries: Vec<PlanEntry>,
    },
    /// Usage of one model request.
    #[serde(rename = "usage.updated")]
    UsageUpdated(UsageUpdate),
    /// Later requests contain a short text instead of these tool outputs.
    #[serde(rename = "context.pruned")]
    #[non_exhaustive]
    ContextPruned {
        /// The replaced outputs.
        outputs: Vec<PrunedOutput>,
        /// Estimate of the tokens saved.
        tokens: u64,
    },
    /// A provider refused parts of the conversation and accepted the request without them. Later
    /// requests have a text instead of them, or leave them out.
    #[serde(rename = "request.repaired")]
    #[non_exhaustive]
    RequestRepaired {
        /// Digests of the parts: the start of a SHA-256 in hexadecimal.
        parts: Vec<String>,
    },
    /// The model is asked for a summary of the conversation.
    #[serde(rename = "compaction.started")]
    #[non_exhaustive]
    CompactionStarted {
        /// Why the conversation is compacted.
        reason: CompactionReason,
        /// The emphasis that the user asked for.
        focus: Option<String>,
        /// Estimate of the tokens of the conversation before it.
        context_tokens: u64,
    },
    /// With the outcome `completed`, later requests contain `summary` and the messages after this
    /// event instead of the messages before it; during a turn, the user's messages of the turn
    /// follow the summary. The log keeps all messages.
    #[serde(rename = "compaction.completed")]
    #[non_exhaustive]
    CompactionCompleted {
        /// How the compaction ended.
        outcome: CompactionOutcome,
        /// Present with the outcome `completed`.
        summary: Option<String>,
        /// Estimate of the tokens of the conversation after it.
        context_tokens: Option<u64>,
        /// Why it failed.
        error: Option<String>,
    },
    /// A tool call started a subagent, which works in a session of its own.
    #[serde(rename = "child.started")]
    #[non_exhaustive]
    ChildStarted {
        /// The child session and the call.
        #[serde(flatten)]
        child: ChildLabel,
        /// The call does not wait for the subagent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
    },
    /// The work of a subagent ended.
    #[serde(rename = "child.completed")]
    #[non_exhaustive]
    ChildCompleted {
        /// The child session and the call.
        #[serde(flatten)]
        child: ChildLabel,
        /// How the work ended.
        #[serde(flatten)]
        end: ChildEnd,
    },
    /// The session begins to use a process of its hosted agent, which can work now.
    #[serde(rename = "agent.started")]
    #[non_exhaustive]
    AgentStarted {
        /// The name of the agent.
        agent: String,
        /// The process id.
        pid: u32,
        /// Missing if the agent does not report it.
        version: Option<String>,
        /// The port of the agent's own server on 127.0.0.1, if it has one.
        port: Option<u16>,
        /// Other sessions already used the process.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
    },
    /// The process of a hosted agent ended, or the session no longer uses it.
    #[serde(rename = "agent.ended")]
    #[non_exhaustive]
    AgentEnded {
        /// The name of the agent.
        agent: String,
        /// The process id in `agent.started`.
        pid: u32,
        /// Why the session no longer uses the process.
        reason: AgentEndReason,
        /// The exit status, or 128 + the number of the signal that killed the process.
        exit_code: Option<i32>,
        /// For the reason `exited`: the exit code, and the end of the standard error.
        error: Option<String>,
    },
    /// A hook ran for a tool call or a model request.
    #[serde(rename = "hook.completed")]
    #[non_exhaustive]
    HookCompleted {
        /// The event of the hook.
        event: HookEvent,
        /// The command, or the name of a hook of the embedding program.
        hook: String,
        /// Missing for a model request.
        tool_call_id: Option<ToolCallId>,
        /// How the run ended.
        outcome: HookOutcome,
        /// Milliseconds.
        duration_ms: u64,
        /// Why the hook blocked.
        reason: Option<String>,
        /// Why the hook failed; its setting `on_failure` decides what then happens.
        error: Option<String>,
        /// The call, if the hook changed its input.
        changed: Option<ChangedCall>,
    },
    /// An answer to a permission request raised a limit of the running turn or of the session.
    #[serde(rename = "budget.raised")]
    #[non_exhaustive]
    BudgetRaised {
        /// The new limits; the others did not change.
        #[serde(flatten)]
        limits: BudgetLimits,
    },
    /// The permission mode changed.
    #[serde(rename = "mode.changed")]
    #[non_exhaustive]
    ModeChanged {
        /// The new mode.
        mode: OptionValue<Mode>,
    },
    /// A message of nuncio to the user.
    #[serde(rename = "notice")]
    Notice(Notice),
    /// An event of a newer version.
    #[serde(skip)]
    Unknown(UnknownEvent),
}
