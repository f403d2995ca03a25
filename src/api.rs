//! The method table: every call that a transport serves, defined once. Transports decode requests
//! into these calls and encode the results and the session events.

mod agent_status;
mod app;
mod archive;
mod artifact;
mod attachment;
mod auth_status;
mod budget;
mod call_context;
mod client;
mod comparison;
mod configure;
mod context;
mod convert;
mod directories;
mod event_stream;
mod events;
mod execute;
mod files;
mod fork;
mod forward;
mod forwarded;
mod initialize;
mod mcp_servers;
mod message;
mod message_list;
mod method;
mod model_list;
mod openapi;
mod options;
mod permission;
mod prompt;
mod queue;
mod recover;
mod result;
mod route;
mod routing;
mod schemas;
mod session;
mod session_list;
mod status;
mod system_prompt;
mod table;
mod title;
mod turn;
mod view;
mod workspace;
mod workspace_apply;

pub(crate) use agent_status::{AGENT_STATUS, StatusSnapshot};
pub(crate) use app::App;
pub(crate) use call_context::{CallContext, TurnStarted};
pub(crate) use client::{Client, ClientRole};
pub(crate) use comparison::{ComparedAgent, Comparison, StartComparison, StartComparisonParams, title_of};
pub(crate) use convert::to_rest;
pub(crate) use event_stream::{EventStream, FollowParams, StreamItem};
pub(crate) use forwarded::{
    ANSWERED, CALL, CANCEL, CallNumber, ForwardedCall, ForwardedReply, RELEASE, Release, SHOWN, STARTED, Shown,
};
pub(crate) use method::{FollowChange, Method, MethodKind, MethodRow, Reply, Scope};
pub(crate) use model_list::{ModelList, ModelView, PriceView};
pub(crate) use openapi::{Envelope, ErrorBody, openapi};
pub(crate) use options::{SetConfigOption, SetMode, config_options};
pub(crate) use permission::{AnswerPermission, AnswerPermissionParams, ListPermissions, ListPermissionsParams, PermissionView};
pub(crate) use prompt::{CancelTurn, Prompt};
pub(crate) use recover::turn_end;
pub(crate) use result::{GetResult, GetResultParams, SessionResult};
pub(crate) use route::Route;
pub(crate) use session::{CloseSession, DeleteSession, NewSession, ResumeSession};
pub(crate) use session_list::ListSessions;
pub use table::METHODS;
pub(crate) use table::method;
pub(crate) use workspace::{
    CreateWorkspace, CreateWorkspaceParams, DeleteWorkspace, DeleteWorkspaceParams, ListWorkspaces, ListWorkspacesParams,
    WorkspaceDeletion, WorkspaceView,
};
pub(crate) use workspace_apply::{ApplyWorkspace, ApplyWorkspaceParams, WorkspaceApplication};
