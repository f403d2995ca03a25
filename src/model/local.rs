//! Local model servers: discovery of a server without settings, and the properties that servers
//! report of their models.

mod api;
mod cache;
mod properties;
mod search;

pub use cache::LocalServers;
pub use search::{Candidate, LocalServer, identify, locate, probe};
