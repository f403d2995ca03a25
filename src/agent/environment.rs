//! The environment of a session: directories, settings and tools.

pub(super) mod session_environment;
pub(super) mod session_tools;
pub(super) mod task_agents;
pub(super) mod tool_offer;
