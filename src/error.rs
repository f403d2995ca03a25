//! The error type of the crate, and the table that maps each kind of error to its code, JSON-RPC
//! number, HTTP status and exit code.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// `Result` with [`Error`] as the default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, for branching. [`KINDS`] describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The message is not JSON.
    ParseError,
    /// The request is not possible in this form or state.
    InvalidRequest,
    /// A parameter, an argument or a setting has a wrong name, type or value.
    InvalidParams,
    /// The method or the feature does not exist in this build, or with this agent.
    Unsupported,
    /// No session, tool or other object has this name.
    NotFound,
    /// The route does not have this HTTP method.
    MethodNotAllowed,
    /// The body of an HTTP request is not JSON.
    UnsupportedMediaType,
    /// A token is missing or wrong, or a hosted agent is not logged in.
    Unauthenticated,
    /// The token, the mode, a rule or the trust does not allow it.
    Forbidden,
    /// Too many requests with a wrong token.
    RateLimited,
    /// A request, a file or an input exceeds its limit.
    TooLarge,
    /// A turn runs in the session, or another process owns it.
    SessionBusy,
    /// A limit of sessions, turns, messages or open files is reached. The same call may succeed
    /// later.
    Overloaded,
    /// The database of the store cannot be reached, or does not accept changes. The same call may
    /// succeed later.
    StoreUnavailable,
    /// The client or the user cancelled the call.
    Cancelled,
    /// The call took longer than its limit.
    Timeout,
    /// The request to the model failed, after all repetitions.
    ModelError,
    /// A hosted agent cannot start, or has ended.
    AgentUnavailable,
    /// A hosted agent no longer has the session.
    AgentSessionLost,
    /// A file, the store or the system failed, or nuncio has a fault.
    Internal,
}

/// A row of the error table.
pub struct Row {
    /// The kind that the row describes.
    pub kind: Kind,
    /// Stable code for clients: `error.data.code` on JSON-RPC, `error.code` on REST.
    pub code: &'static str,
    /// Error number in JSON-RPC (JSON-RPC 2.0, section 5.1, and ACP); 0 for errors that occur only
    /// on HTTP.
    pub rpc: i32,
    /// HTTP status.
    pub http: u16,
    /// Exit code of the command line.
    pub exit: u8,
}

const fn row(kind: Kind, code: &'static str, rpc: i32, http: u16, exit: u8) -> Row {
    Row { kind, code, rpc, http, exit }
}

/// All rows, in the order of [`Kind`].
pub const KINDS: &[Row] = &[
    row(Kind::ParseError, "parse_error", -32700, 400, 2),
    row(Kind::InvalidRequest, "invalid_request", -32600, 400, 2),
    row(Kind::InvalidParams, "invalid_params", -32602, 400, 2),
    row(Kind::Unsupported, "unsupported", -32601, 501, 2),
    row(Kind::NotFound, "not_found", -32002, 404, 2),
    row(Kind::MethodNotAllowed, "method_not_allowed", 0, 405, 2),
    row(Kind::UnsupportedMediaType, "unsupported_media_type", 0, 415, 2),
    row(Kind::Unauthenticated, "unauthenticated", -32000, 401, 4),
    row(Kind::Forbidden, "forbidden", -32011, 403, 4),
    row(Kind::RateLimited, "rate_limited", -32013, 429, 4),
    row(Kind::TooLarge, "too_large", -32012, 413, 2),
    row(Kind::SessionBusy, "session_busy", -32010, 409, 1),
    row(Kind::Overloaded, "overloaded", -32001, 503, 1),
    row(Kind::StoreUnavailable, "store_unavailable", -32022, 503, 3),
    row(Kind::Cancelled, "cancelled", -32800, 499, 130),
    row(Kind::Timeout, "timeout", -32014, 408, 1),
    row(Kind::ModelError, "model_error", -32020, 502, 1),
    row(Kind::AgentUnavailable, "agent_unavailable", -32021, 502, 1),
    row(Kind::AgentSessionLost, "agent_session_lost", -32023, 502, 1),
    row(Kind::Internal, "internal", -32603, 500, 1),
];

impl Kind {
    /// Returns the row of the error table for this kind.
    pub(crate) fn row(self) -> &'static Row {
        &KINDS[self as usize]
    }

    /// Returns the kind with this stable code.
    pub(crate) fn from_code(code: &str) -> Option<Kind> {
        KINDS.iter().find(|row| row.code == code).map(|row| row.kind)
    }
}

/// An error: `kind` is for branching, `message` and `hint` are for people, `source` is for logs.
#[derive(Clone)]
#[non_exhaustive]
pub struct Error {
    /// The kind, for branching.
    pub kind: Kind,
    /// The failed operation, the affected object and the reason. Lower case, without a full stop.
    pub message: String,
    /// The next step for the user: a command or a setting.
    pub hint: Option<String>,
    /// Machine-readable facts for clients: `info` in the data of the error.
    pub details: Option<Value>,
    /// The underlying error.
    pub source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error without hint, details and source.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, details: None, source: None }
    }

    /// Sets the hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the details.
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Sets the underlying error.
    pub(crate) fn source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Creates an error of kind [`Kind::InvalidParams`].
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidParams, message)
    }

    /// Creates an error of kind [`Kind::NotFound`].
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// Creates an error of kind [`Kind::Internal`].
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// Converts an I/O error; `doing` names the operation. If no file descriptor was free, the kind
    /// is [`Kind::Overloaded`], because the same call may succeed later.
    pub(crate) fn io(doing: impl fmt::Display, error: std::io::Error) -> Self {
        let failed = Self::internal(format!("{doing}: {error}"));
        let failed = match out_of_files(&error) {
            true => Self { kind: Kind::Overloaded, ..failed }.hint("try again, or raise the limit of open files (ulimit -n)"),
            false => failed,
        };
        failed.source(error)
    }
}

/// Returns whether an operation failed because no file descriptor was free (EMFILE, ENFILE).
pub(crate) fn out_of_files(error: &std::io::Error) -> bool {
    [libc::EMFILE, libc::ENFILE].map(Some).contains(&error.raw_os_error())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.kind.row().code)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
