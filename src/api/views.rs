//! Views and parameters of sessions that several groups of methods share.

pub(super) mod attachment;
pub(super) mod budget;
pub(super) mod files;
pub(super) mod mcp_servers;
pub(super) mod options;
pub(super) mod view;
