//! The method table: every call that a transport serves, defined once. Transports decode requests
//! into these calls and encode the results and the session events.

mod comparison;
mod dispatch;
mod initialize;
mod models;
mod openapi;
mod remote;
mod run;
mod sessions;
mod sign_in;
mod status;
mod table;
mod turns;
mod views;
mod workspaces;

pub(crate) use comparison::{ComparedAgent, Comparison, StartComparison, StartComparisonParams, title_of};
pub(crate) use dispatch::agent_status::{AGENT_STATUS, StatusSnapshot};
pub(crate) use dispatch::app::App;
pub(crate) use dispatch::call_context::{CallContext, TurnStart};
pub(crate) use dispatch::client::{Client, ClientRole};
pub(crate) use dispatch::convert::to_rest;
pub(crate) use dispatch::event_stream::{EVENT, SUBSCRIPTIONS_MAX, SubscriptionParams, SubscriptionResult, UNFOLLOW};
pub(crate) use dispatch::event_stream::{EventStream, FollowParams, StreamItem};
pub(crate) use dispatch::method::{FollowChange, Method, MethodKind, MethodRow, Reply, Scope};
pub(crate) use dispatch::route::Route;
pub(crate) use models::{ModelList, ModelView, PriceView};
pub(crate) use openapi::{Envelope, ErrorBody, openapi};
pub(crate) use remote::forwarded::{
    ANSWERED, CALL, CANCEL, CallNumber, ForwardedCall, ForwardedReply, RELEASE, Release, SHOWN, STARTED, ShownEvents,
};
pub(crate) use remote::placement::{TAKE, take};
pub(crate) use remote::recover::turn_end;
pub(crate) use sessions::session::{CloseSession, DeleteSession, NewSession, ResumeSession};
pub(crate) use sessions::session_list::ListSessions;
pub(crate) use status::agent_processes::{AGENTS, ProcessQuery, StopAgents, StopAgentsParams, StoppedAgents};
pub use table::METHODS;
pub(crate) use table::method;
pub(crate) use turns::permission::{
    AnswerPermission, AnswerPermissionParams, ListPermissions, ListPermissionsParams, PermissionView,
};
pub(crate) use turns::prompt::{CancelTurn, Prompt};
pub(crate) use turns::result::{CheckOutcome, CheckView, GetResult, GetResultParams, SessionResult};
pub(crate) use views::options::{SetConfigOption, SetMode, config_options};
pub(crate) use workspaces::apply::{ApplyWorkspace, ApplyWorkspaceParams, WorkspaceApplication};
pub(crate) use workspaces::{
    CreateWorkspace, CreateWorkspaceParams, DeleteWorkspace, DeleteWorkspaceParams, ListWorkspaces, ListWorkspacesParams,
    WorkspaceDeletion, WorkspaceView,
};
