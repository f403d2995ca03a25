//! The method table: every call that a transport serves, defined once. Transports decode requests
//! into these calls and encode their results and the events of sessions.

mod app;
mod artifact;
mod attachment;
mod call_context;
mod client;
mod convert;
mod directories;
mod event_stream;
mod events;
mod files;
mod fork;
mod initialize;
mod message;
mod method;
mod openapi;
mod options;
mod permission;
mod prompt;
mod route;
mod schemas;
mod session;
mod status;
mod table;
mod turn;
mod view;

pub use app::App;
pub use call_context::{CallContext, TurnStarted};
pub use client::{Client, ClientRole};
pub use convert::{timestamp, to_rest};
pub use event_stream::{EventStream, FollowParams, StreamItem};
pub use events::FollowEvents;
pub use method::{FollowChange, Method, MethodKind, MethodRow, Reply};
pub use openapi::{Envelope, ErrorBody, openapi};
pub use options::{SetConfigOption, SetMode, config_options};
pub use permission::{AnswerPermission, AnswerPermissionParams};
pub use prompt::Prompt;
pub use route::Route;
pub use session::{CloseSession, DeleteSession, ListSessions, NewSession, ResumeSession};
pub use table::{METHODS, method};
