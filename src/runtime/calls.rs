//! The path of a tool call: hooks, permission, budget, execution, result.

pub(crate) mod budget;
pub(super) mod call_host;
pub(super) mod call_requests;
pub(crate) mod execute;
pub mod form_answer;
pub mod form_options;
pub(crate) mod hooks;
pub(crate) mod model_query;
pub(super) mod nested_instructions;
pub(super) mod order;
pub(crate) mod permission;
pub(super) mod turn_host;
