//! The cases of the matrix: a call of each method that has a `sessionId`, with what comes before and
//! after the call. Params are JSON whose placeholders the test fills.

/// A step before or after the call. Params are JSON; placeholders are filled by [`fill`].
pub enum Step {
    /// Calls another method.
    Call(&'static str, &'static str),
    /// Waits until the command of a waiting turn runs.
    Running,
    /// Waits until no turn runs and no message is queued.
    Ended,
    /// Waits until a permission request is open.
    Asked,
    /// Ends the command that waits.
    Release,
}

use Step::{Asked, Call, Ended, Release, Running};

/// The model's answers in the turns after the first one.
#[derive(Clone, Copy)]
pub enum Turns {
    /// Says something.
    Quick,
    /// Waits in a command, then says something.
    Waiting,
    /// Asks for a permission, then says something.
    Asking,
    /// Runs a command whose output becomes an artifact.
    Artifact,
}

pub struct Case {
    pub method: &'static str,
    pub params: &'static str,
    pub turns: Turns,
    pub before: &'static [Step],
    pub after: &'static [Step],
    /// The command that makes the call; empty if there is none.
    pub command: &'static [&'static str],
}

const fn case(method: &'static str, params: &'static str) -> Case {
    Case { method, params, turns: Turns::Quick, before: &[], after: &[], command: &[] }
}

const ANSWER: &str = "_nuncio/permission/answer";
const MESSAGE: &str = "_nuncio/session/message";
const EDIT: &str = "_nuncio/session/queue/edit";
const GO: &str = r#"{"sessionId": "{session}", "parts": [{"type": "text", "text": "go"}]}"#;
const SESSION: &str = r#"{"sessionId": "{session}"}"#;
const HERE: &str = r#"{"sessionId": "{session}", "cwd": "{cwd}", "mcpServers": []}"#;
const NOTE: &str = r#"{"sessionId": "{session}", "name": "note.txt", "data": "aGVsbG8K"}"#;
const BUSY: &[Step] = &[Call(MESSAGE, GO), Running];
const QUEUED: &[Step] = &[Call(MESSAGE, GO), Running, Call(MESSAGE, GO)];
const QUESTION: &[Step] = &[Call(MESSAGE, GO), Asked];
const ENDED: &[Step] = &[Ended];
const RELEASED: &[Step] = &[Release, Ended];
const CANCELLED: &[Step] = &[Call("session/cancel", SESSION), Ended];

/// The cases. Each method with a `sessionId` has at least one.
pub const CASES: &[Case] = &[
    case("session/load", HERE),
    Case { turns: Turns::Waiting, before: BUSY, after: RELEASED, ..case("session/load", HERE) },
    case("session/resume", HERE),
    Case { turns: Turns::Waiting, before: BUSY, after: RELEASED, ..case("session/resume", HERE) },
    case("session/fork", SESSION),
    Case { turns: Turns::Waiting, before: BUSY, after: RELEASED, ..case("session/fork", SESSION) },
    case("session/archive", SESSION),
    Case { before: &[Call("session/archive", SESSION)], ..case("session/unarchive", SESSION) },
    case("session/set_title", r#"{"sessionId": "{session}", "title": " a  title "}"#),
    Case {
        turns: Turns::Waiting,
        before: BUSY,
        after: RELEASED,
        ..case("session/set_title", r#"{"sessionId": "{session}", "title": "a title"}"#)
    },
    case("_nuncio/tool/list", SESSION),
    case("session/close", SESSION),
    Case { turns: Turns::Waiting, before: BUSY, ..case("session/close", SESSION) },
    Case { command: &["sessions", "rm", "{session}"], ..case("session/delete", SESSION) },
    Case { turns: Turns::Waiting, before: BUSY, ..case("session/delete", SESSION) },
    case("session/set_mode", r#"{"sessionId": "{session}", "modeId": "plan"}"#),
    case("session/set_mode", r#"{"sessionId": "{session}", "modeId": "nonsense"}"#),
    Case {
        turns: Turns::Waiting,
        before: BUSY,
        after: RELEASED,
        ..case("session/set_mode", r#"{"sessionId": "{session}", "modeId": "plan"}"#)
    },
    case("session/set_config_option", r#"{"sessionId": "{session}", "configId": "thinking", "value": "high"}"#),
    case("session/set_config_option", r#"{"sessionId": "{session}", "configId": "nonsense", "value": "high"}"#),
    Case {
        after: ENDED,
        command: &["run", "--resume", "{session}", "--plain", "go"],
        ..case("session/prompt", r#"{"sessionId": "{session}", "prompt": [{"type": "text", "text": "go"}]}"#)
    },
    Case {
        before: &[Call("_nuncio/attachment/add", NOTE)],
        after: ENDED,
        ..case(
            "session/prompt",
            r#"{"sessionId": "{session}", "prompt": [{"type": "text", "text": "go"}, {"type": "resource_link", "name": "note.txt", "uri": "{attachment}"}]}"#,
        )
    },
    case("session/prompt", r#"{"sessionId": "{session}", "prompt": []}"#),
    case("session/cancel", SESSION),
    Case {
        turns: Turns::Waiting,
        before: BUSY,
        after: ENDED,
        command: &["sessions", "cancel", "{session}"],
        ..case("session/cancel", SESSION)
    },
    Case { turns: Turns::Asking, before: QUESTION, after: ENDED, ..case("session/cancel", SESSION) },
    case("_nuncio/session/get", SESSION),
    Case { turns: Turns::Waiting, before: BUSY, after: RELEASED, ..case("_nuncio/session/get", SESSION) },
    Case { turns: Turns::Asking, before: QUESTION, after: CANCELLED, ..case("_nuncio/session/get", SESSION) },
    case("_nuncio/session/messages", SESSION),
    Case { turns: Turns::Waiting, before: BUSY, after: RELEASED, ..case("_nuncio/session/messages", SESSION) },
    case("_nuncio/session/turns", SESSION),
    Case { turns: Turns::Waiting, before: BUSY, after: RELEASED, ..case("_nuncio/session/turns", SESSION) },
    case("_nuncio/session/result", SESSION),
    Case { turns: Turns::Waiting, before: BUSY, after: RELEASED, ..case("_nuncio/session/result", SESSION) },
    case("_nuncio/session/context", SESSION),
    case("_nuncio/session/compact", SESSION),
    case("_nuncio/session/execute", r#"{"sessionId": "{session}", "command": "true"}"#),
    case("_nuncio/session/execute", r#"{"sessionId": "{session}", "command": " "}"#),
    case("_nuncio/session/configure", r#"{"sessionId": "{session}", "title": "a title", "tools": ["read"]}"#),
    case(
        "_nuncio/session/replace_messages",
        r#"{"sessionId": "{session}", "messages": [{"role": "user", "parts": [{"type": "text", "text": "again"}]}]}"#,
    ),
    Case { after: ENDED, ..case(MESSAGE, GO) },
    case(MESSAGE, r#"{"sessionId": "{session}", "autoRun": false, "role": "system", "parts": [{"type": "text", "text": "note"}]}"#),
    case(MESSAGE, r#"{"sessionId": "{session}", "parts": []}"#),
    Case { turns: Turns::Waiting, before: BUSY, after: RELEASED, ..case(MESSAGE, GO) },
    Case {
        turns: Turns::Waiting,
        before: BUSY,
        after: RELEASED,
        ..case(MESSAGE, r#"{"sessionId": "{session}", "delivery": "steer", "parts": [{"type": "text", "text": "steer"}]}"#)
    },
    case("_nuncio/command/list", SESSION),
    case("_nuncio/resource/list", SESSION),
    case("_nuncio/file/search", r#"{"sessionId": "{session}", "query": "a"}"#),
    case("_nuncio/file/read", r#"{"sessionId": "{session}", "path": "poem.txt"}"#),
    case("_nuncio/session/jobs", SESSION),
    case("_nuncio/permission/rules", SESSION),
    case("_nuncio/permission/rules/remove", r#"{"sessionId": "{session}", "scope": "session", "rule": {"policy": "allow"}}"#),
    case("_nuncio/session/jobs/output", r#"{"sessionId": "{session}", "job": "1"}"#),
    case("_nuncio/session/jobs/kill", r#"{"sessionId": "{session}", "job": "1"}"#),
    case("_nuncio/session/background", SESSION),
    case("_nuncio/session/queue", SESSION),
    Case { turns: Turns::Waiting, before: QUEUED, after: RELEASED, ..case("_nuncio/session/queue", SESSION) },
    Case {
        turns: Turns::Waiting,
        before: QUEUED,
        after: RELEASED,
        ..case(EDIT, r#"{"sessionId": "{session}", "messageId": "{message}", "parts": [{"type": "text", "text": "edited"}]}"#)
    },
    Case {
        turns: Turns::Waiting,
        before: QUEUED,
        after: RELEASED,
        ..case(EDIT, r#"{"sessionId": "{session}", "messageId": "{message}", "delivery": "steer"}"#)
    },
    case(EDIT, r#"{"sessionId": "{session}", "messageId": "msg_none", "delivery": "steer"}"#),
    case(EDIT, r#"{"sessionId": "{session}", "messageId": "msg_none"}"#),
    Case {
        turns: Turns::Waiting,
        before: QUEUED,
        after: RELEASED,
        ..case("_nuncio/session/queue/remove", r#"{"sessionId": "{session}", "messageId": "{message}"}"#)
    },
    case("_nuncio/session/queue/remove", r#"{"sessionId": "{session}", "messageId": "msg_none"}"#),
    Case { after: ENDED, ..case("_nuncio/session/retry", r#"{"sessionId": "{session}", "turnId": "{turn}"}"#) },
    case("_nuncio/session/retry", r#"{"sessionId": "{session}", "turnId": "turn_none"}"#),
    Case {
        turns: Turns::Waiting,
        before: BUSY,
        after: RELEASED,
        ..case("_nuncio/session/retry", r#"{"sessionId": "{session}", "turnId": "{turn}"}"#)
    },
    Case { turns: Turns::Asking, before: QUESTION, after: CANCELLED, ..case("_nuncio/permission/list", SESSION) },
    case("_nuncio/permission/list", SESSION),
    Case {
        turns: Turns::Asking,
        before: QUESTION,
        after: ENDED,
        command: &["sessions", "answer", "{session}", "allow_once"],
        ..case(ANSWER, r#"{"permissionId": "{permission}", "outcome": "allow_once"}"#)
    },
    Case {
        turns: Turns::Asking,
        before: QUESTION,
        after: ENDED,
        ..case(ANSWER, r#"{"permissionId": "{permission}", "optionId": "reject_once", "reason": "not now"}"#)
    },
    Case {
        turns: Turns::Asking,
        before: QUESTION,
        after: CANCELLED,
        ..case(ANSWER, r#"{"permissionId": "{permission}", "optionId": "nonsense"}"#)
    },
    case("_nuncio/attachment/add", NOTE),
    Case { before: &[Call("_nuncio/attachment/add", NOTE)], ..case("_nuncio/attachment/add", NOTE) },
    Case {
        before: &[Call("_nuncio/attachment/add", NOTE)],
        ..case("_nuncio/attachment/get", r#"{"sessionId": "{session}", "name": "note.txt"}"#)
    },
    Case { before: &[Call("_nuncio/attachment/add", NOTE)], ..case("_nuncio/attachment/list", SESSION) },
    Case { turns: Turns::Artifact, before: &[Call(MESSAGE, GO), Ended], ..case("_nuncio/artifact/list", SESSION) },
    Case {
        turns: Turns::Artifact,
        before: &[Call(MESSAGE, GO), Ended],
        ..case("_nuncio/artifact/get", r#"{"sessionId": "{session}", "name": "{artifact}"}"#)
    },
    case("_nuncio/events/follow", SESSION),
    Case { before: &[Call(MESSAGE, GO), Ended], ..case("_nuncio/events/follow", SESSION) },
];
