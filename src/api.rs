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
mod settings;
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
pub(crate) use dispatch::client::{Client, ClientRole, OWNER};
pub(crate) use dispatch::event_stream::{EVENT, SUBSCRIPTIONS_MAX, SubscriptionParams, SubscriptionResult, UNFOLLOW};
pub(crate) use dispatch::event_stream::{EventStream, FollowParams, StreamItem};
pub(crate) use dispatch::method::{FollowChange, Method, MethodKind, MethodRow, MethodTypes, Reply, Scope};
pub(crate) use dispatch::params::{deserialize, object};
pub(crate) use dispatch::prompt_result::{PromptResult, turn_end};
pub(crate) use dispatch::route::Route;
pub(crate) use dispatch::schemas::standalone;
pub(crate) use initialize::InitializeResult;
pub(crate) use models::{ListModels, ListModelsParams, ModelList, ModelView, PriceView};
pub(crate) use openapi::{Envelope, ErrorBody, openapi};
pub(crate) use remote::forwarded::{
    ANSWERED, CALL, CANCEL, CallNumber, ForwardedCall, ForwardedReply, RELEASE, Release, SHOWN, STARTED, ShownEvents,
};
pub(crate) use remote::placement::{TAKE, take};
pub(crate) use sessions::command_list::{CommandView, ListCommands, ListCommandsParams};
pub(crate) use sessions::file_read::{ReadFile, ReadFileParams};
pub(crate) use sessions::file_search::{SearchFiles, SearchFilesParams};
pub(crate) use sessions::fork::{ForkParams, ForkSession};
pub(crate) use sessions::resource_list::ListResources;
pub(crate) use sessions::session::{
    CloseSession, DeleteSession, NewSession, NewSessionParams, OpenSessionParams, ResumeSession, SessionPlace,
};
pub(crate) use sessions::session_list::{ListSessions, ListSessionsParams, ListedSession};
pub(crate) use sessions::title::{SetTitle, SetTitleParams};
pub(crate) use status::agent_processes::{AGENTS, ProcessQuery, StopAgents, StopAgentsParams, StoppedAgents};
pub(crate) use status::{GetStatus, ListAgents, ListAgentsParams, ListTools, ListToolsParams, NoParams};
pub use table::METHODS;
pub(crate) use table::method;
pub(crate) use turns::jobs::{JobOutputParams, JobParams, KillJob, ListJobs, MoveToBackground, MoveToBackgroundParams, ReadJob};
pub(crate) use turns::message::{MessageParams, SendMessage};
pub(crate) use turns::permission::{
    AnswerPermission, AnswerPermissionParams, ListPermissions, ListPermissionsParams, PermissionView,
};
pub(crate) use turns::prompt::{CancelTurn, Prompt, PromptParams};
pub(crate) use turns::queue::{RemoveFromQueue, RemoveQueuedParams};
pub(crate) use turns::result::{CheckOutcome, CheckView, GetResult, GetResultParams, SessionResult};
pub(crate) use turns::rules::{ListRules, RemoveRule, RemoveRuleParams, RuleScope, ScopedRule};
pub(crate) use turns::turn::ListTurns;
pub(crate) use views::files::FileView;
pub(crate) use views::options::{SetConfigOption, SetMode, SetModeParams, SetOptionParams, config_options};
pub(crate) use views::view::{GetSession, PageParams, SessionParams, SessionStatus};
pub(crate) use workspaces::apply::{ApplyWorkspace, ApplyWorkspaceParams, WorkspaceApplication};
pub(crate) use workspaces::{
    CreateWorkspace, CreateWorkspaceParams, DeleteWorkspace, DeleteWorkspaceParams, ListWorkspaces, ListWorkspacesParams,
    WorkspaceDeletion, WorkspaceView,
};
