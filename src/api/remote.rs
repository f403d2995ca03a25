//! Calls to sessions of other processes.

pub(super) mod forward;
pub(super) mod forwarded;
pub(super) mod placement;
pub(super) mod recover;
