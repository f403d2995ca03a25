//! The connection with language servers.

mod frames;
