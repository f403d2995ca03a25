//! Sessions: the event log, the state computed from it, ownership, and the running turn.

pub(crate) mod agent;
mod ancestor;
mod artifacts;
pub(crate) mod attached_clients;
mod background;
pub(crate) mod broker;
mod budget;
pub(crate) mod budget_owner;
mod capacity;
mod children;
mod close;
pub mod context_report;
#[doc(hidden)]
pub mod core;
pub(crate) mod decisions;
mod external;
pub(crate) mod files;
mod follow;
mod follow_all;
mod fork;
mod lock;
mod log;
#[doc(hidden)]
pub mod message;
mod metrics;
#[doc(hidden)]
pub mod new_turn;
mod open;
pub(crate) mod open_items;
mod owners;
mod ownership;
mod owning;
mod permission_request;
mod queued_messages;
mod registration;
mod run;
mod running_children;
mod sessions;
mod spending;
pub(crate) mod state;
pub(crate) mod summary;
mod tail;
mod title;
#[doc(hidden)]
pub mod turn;
pub(crate) mod turns;
mod work_view;
mod writer;

pub use agent::{
    AdoptTurn, Agent, AgentChoice, AgentInfo, AgentOption, AgentSetup, Agents, BackgroundJob, CommandRequest, CommandResult,
    OfferedTool, SessionSetup,
};
pub(crate) use broker::{ChoiceDetails, PermissionAnswer};
pub use capacity::Capacity;
pub(crate) use children::REPORTER;
pub(crate) use follow::Follow;
pub(crate) use follow_all::FollowAll;
pub(crate) use lock::is_not_owner;
pub use log::SessionLog;
pub(crate) use open::RemoteCall;
pub use open::Session;
pub(crate) use owners::Owners;
pub(crate) use permission_request::TurnQuestion;
pub(crate) use registration::{REGISTER, REGISTERED, Register};
pub use sessions::Sessions;
pub use state::SessionState;
pub use turn::Turn;
pub(crate) use work_view::WorkView;

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_millis() as u64).unwrap_or(0)
}
