//! Sessions: the event log, the state computed from it, ownership, and the running turn.

pub mod agent;
pub mod all;
mod artifacts;
pub mod broker;
pub mod counts;
pub mod files;
pub mod follow;
mod foreign;
mod fork;
pub mod hands;
pub mod lock;
pub mod log;
pub mod open;
pub mod prompts;
pub mod queue;
pub mod room;
pub mod sessions;
pub mod state;
mod title;
pub mod turn;
pub mod turns;
mod writer;

pub use agent::{Agent, AgentInfo, Agents, SessionSetup};
pub use all::FollowAll;
pub use broker::PermissionAnswer;
pub use follow::Follow;
pub use log::{Log, SessionLog};
pub use open::Session;
pub use room::Room;
pub use sessions::Sessions;
pub use state::SessionState;
pub use turn::{Turn, TurnEnd, TurnHandle};

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_millis() as u64).unwrap_or(0)
}
