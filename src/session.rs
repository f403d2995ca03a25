//! Sessions: the event log, the state computed from it, ownership, and the running turn.

mod agent_setting;
mod artifacts;
pub(crate) mod attached_clients;
pub(crate) mod claims;
pub(crate) mod clock;
pub mod context_report;
mod events;
pub(crate) mod files;
pub(crate) mod folds;
#[doc(hidden)]
pub mod message;
pub(crate) mod open;
mod owner;
pub(crate) mod permissions;
pub(crate) mod recorded_requests;
mod sessions;
pub(crate) mod shared_files;
pub(crate) mod text_search;
mod title;
#[doc(hidden)]
pub mod turn;

pub use agent_setting::AgentSetting;
pub(crate) use events::follow::Follow;
pub use events::log::SessionLog;
pub use folds::state::SessionState;
pub(crate) use folds::work_view::WorkView;
pub(crate) use open::RemoteCall;
pub use open::Session;
pub use open::owned_session::OwnedSession;
pub(crate) use owner::lease::NodeOptions;
pub(crate) use owner::lock::{closed_before_call, is_not_owner};
pub(crate) use owner::unused::check_unowned;
pub(crate) use permissions::broker::{ChoiceDetails, PermissionAnswer};
pub use sessions::Sessions;
pub(crate) use sessions::follow_all::FollowAll;
pub(crate) use sessions::owners::{LiveOwner, Owners};
pub(crate) use sessions::registration::{REGISTER, REGISTERED, Register};
pub use turn::Turn;
pub use turn::agent::{
    Agent, AgentChoice, AgentInfo, AgentOption, AgentProgram, AgentSetup, Agents, CommandRequest, CommandResult,
    ExternalTurnStarter, HostedProcess, McpResource, OfferedTool, SessionSetup,
};
pub use turn::capacity::Capacity;
pub(crate) use turn::request::TurnQuestion;
