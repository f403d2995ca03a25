//! The log of a session: its writer, its newest events, and its followers.

mod activity_log;
pub(super) mod follow;
pub(super) mod log;
#[cfg_attr(not(feature = "http"), path = "events/metrics_disabled.rs")]
pub(super) mod metrics;
pub(super) mod signer;
pub(super) mod tail;
pub(super) mod writer;
