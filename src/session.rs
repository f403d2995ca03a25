//! Sessions: the event log, the state computed from it, ownership, and the running turn.

pub mod agent;
mod artifacts;
pub mod attached_clients;
pub mod broker;
mod capacity;
mod close;
mod external;
pub mod files;
mod follow;
mod follow_all;
mod fork;
mod lock;
mod log;
pub mod message;
mod metrics;
mod open;
mod ownership;
pub mod prompts;
pub mod queue;
mod run;
mod sessions;
pub mod state;
mod tail;
mod title;
pub mod turn;
mod turn_queue;
pub mod turns;
mod writer;

pub use agent::{Agent, AgentInfo, Agents, SessionSetup};
pub use broker::PermissionAnswer;
pub use capacity::Capacity;
pub use follow::Follow;
pub use follow_all::FollowAll;
pub use log::SessionLog;
pub use open::{OpenSession, Session};
pub use sessions::Sessions;
pub use state::SessionState;
pub use turn::{Turn, TurnEnd, TurnHandle};

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_millis() as u64).unwrap_or(0)
}
