//! How a call is described, routed and run.

pub(super) mod agent_status;
pub(super) mod app;
pub(super) mod call_context;
pub(super) mod call_order;
pub(super) mod client;
pub(super) mod directories;
pub(super) mod event_stream;
pub(super) mod flatten;
pub(super) mod method;
pub(super) mod params;
pub(super) mod prompt_result;
pub(super) mod route;
pub(super) mod schemas;
pub(super) mod system_prompt;
