//! The authors of turns, messages and decisions.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The author of a turn, of a message or its change, or of a decision about a tool call: a client,
/// or a cause inside of nuncio. Its JSON encoding is a string: [`Actor::as_str`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Actor {
    /// A client, by its name.
    Client(Arc<str>),
    /// `terminal`: the client of the program's own terminal.
    Terminal,
    /// `task`: the tool that delegates to subagents.
    Task,
    /// `opencode-tui`: OpenCode's own client of a hosted session.
    OpencodeTerminal,
    /// `rule`: a permission rule of the settings.
    Rule,
    /// `mode`: the permission mode of the session.
    Mode,
    /// `hook`: a hook before a tool call.
    Hook,
    /// `verify.auto`: the setting that allows the project's checks.
    VerifyAuto,
    /// `repeated`: the same question was denied earlier in the turn.
    Repeated,
    /// No client could answer.
    Nobody,
    /// `unasked`: no message asks for the git command, and no client could allow it.
    Unasked,
    /// `deadline`: no answer came in time.
    Deadline,
    /// `disconnect`: the last client that could answer disconnected.
    Disconnect,
    /// `cancel`: the turn was cancelled.
    Cancel,
    /// `interrupted`: the process that ran the turn ended.
    Interrupted,
}

impl Actor {
    /// All authors that are no clients with names of their own.
    const CAUSES: [Actor; 14] = [
        Actor::Terminal,
        Actor::Task,
        Actor::OpencodeTerminal,
        Actor::Rule,
        Actor::Mode,
        Actor::Hook,
        Actor::VerifyAuto,
        Actor::Repeated,
        Actor::Nobody,
        Actor::Unasked,
        Actor::Deadline,
        Actor::Disconnect,
        Actor::Cancel,
        Actor::Interrupted,
    ];

    /// Returns the name of the client, or the word of the cause.
    pub fn as_str(&self) -> &str {
        match self {
            Actor::Client(name) => name,
            Actor::Terminal => "terminal",
            Actor::Task => "task",
            Actor::OpencodeTerminal => "opencode-tui",
            Actor::Rule => "rule",
            Actor::Mode => "mode",
            Actor::Hook => "hook",
            Actor::VerifyAuto => "verify.auto",
            Actor::Repeated => "repeated",
            Actor::Nobody => "nobody",
            Actor::Unasked => "unasked",
            Actor::Deadline => "deadline",
            Actor::Disconnect => "disconnect",
            Actor::Cancel => "cancel",
            Actor::Interrupted => "interrupted",
        }
    }

    /// Returns whether the author decided only because no client could answer.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Actor::Nobody | Actor::Disconnect)
    }
}

impl From<&str> for Actor {
    fn from(name: &str) -> Actor {
        let cause = Actor::CAUSES.into_iter().find(|cause| cause.as_str() == name);
        cause.unwrap_or_else(|| Actor::Client(name.into()))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Actor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Actor, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Ok(Actor::from(&*name))
    }
}

impl JsonSchema for Actor {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
