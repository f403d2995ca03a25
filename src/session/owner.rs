//! Ownership of a session: claims, leases and locks.

pub(super) mod claims;
pub(super) mod lease;
pub(super) mod lock;
pub(super) mod unused;
