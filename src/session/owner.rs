//! Ownership of a session, and the other processes that use it.

pub(super) mod claims;
pub(super) mod external;
pub(super) mod lease;
pub(super) mod lock;
pub(super) mod owners;
pub(super) mod ownership;
pub(super) mod owning;
pub(super) mod registration;
pub(super) mod takeover;
pub(super) mod unused;
