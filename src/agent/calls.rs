//! The path of a tool call: hooks, permission, execution, result.

pub(super) mod call_host;
pub(super) mod call_requests;
pub(super) mod execute;
pub(super) mod hooks;
pub(super) mod model_query;
mod order;
pub(super) mod permission;
pub(super) mod recorded_results;
