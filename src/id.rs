//! Identifiers: one newtype per kind, so that the compiler tells a turn id from a session id.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Position of an event in its session's log: starts at 1, without gaps when it is committed.
pub(crate) type Seq = u64;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates an identifier. Later identifiers sort after earlier ones (UUID version 7,
            /// RFC 9562).
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self(format!(concat!($prefix, "{}"), uuid::Uuid::now_v7().simple()).into())
            }

            /// Returns the identifier with its prefix.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id.into())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

ids! {
    /// A conversation and its log.
    SessionId "sess_",
    /// The work between one prompt and its stop.
    TurnId "turn_",
    /// A message of a conversation. All of its deltas carry the same id.
    MessageId "msg_",
    /// A permission request.
    PermissionId "perm_",
    /// A tool call: the model's id, made unique within the session.
    ToolCallId "call_",
}
