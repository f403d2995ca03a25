//! Methods for models, agents, servers and workspaces.

pub(super) mod agent_processes;
pub(super) mod agent_status;
pub(super) mod auth_status;
pub(super) mod comparison;
pub(super) mod initialize;
pub(super) mod mcp_servers;
pub(super) mod model_list;
pub(super) mod workspace;
pub(super) mod workspace_apply;
