//! Sessions: the event log, the state computed from it, ownership, and the running turn.

pub(crate) mod agent;
mod agent_setting;
mod artifacts;
pub(crate) mod attached_clients;
pub(crate) mod claims;
pub(crate) mod clock;
mod close;
pub mod context_report;
mod events;
pub(crate) mod files;
pub(crate) mod folds;
mod fork;
mod open;
mod owner;
pub(crate) mod permissions;
pub(crate) mod recorded_requests;
mod sessions;
pub(crate) mod shared_files;
pub(crate) mod subagents;
mod title;
pub mod work;

pub use agent::{
    Agent, AgentChoice, AgentInfo, AgentOption, AgentSetup, Agents, BackgroundJob, CommandRequest, CommandResult,
    ExternalTurnStarter, HostedProcess, OfferedTool, SessionSetup,
};
pub use agent_setting::AgentSetting;
pub(crate) use events::follow::Follow;
pub(crate) use events::follow_all::FollowAll;
pub use events::log::SessionLog;
pub use folds::state::SessionState;
pub(crate) use open::RemoteCall;
pub use open::Session;
pub(crate) use owner::lease::NodeOptions;
pub(crate) use owner::lock::{closed_before_call, is_closed_before_call, is_not_owner};
pub(crate) use owner::owners::Owners;
pub(crate) use owner::registration::{REGISTER, REGISTERED, Register};
pub(crate) use owner::unused::check_unowned;
pub(crate) use permissions::broker::{ChoiceDetails, PermissionAnswer};
pub(crate) use permissions::request::TurnQuestion;
pub use sessions::Sessions;
pub(crate) use subagents::work_view::WorkView;
pub use work::capacity::Capacity;
pub use work::turn::Turn;
