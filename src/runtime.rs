//! The parts that agents share: settings, models and MCP servers of the process, the environment
//! of a session, the path of a tool call, and the checks after a turn. The native agent, hosted
//! agents, `nuncio tool` and the MCP server use them.

pub mod calls;
pub(crate) mod checks;
pub(crate) mod environment;
pub(crate) mod mcp;
pub(crate) mod services;

pub(crate) use calls::budget::TurnBudget;
pub(crate) use calls::call_host::{CallHost, CallOutcome, CallResult};
pub(crate) use calls::execute::{ToolCall, ToolUse};
pub(crate) use calls::form_options::{field_values, is_choice};
pub(crate) use calls::hooks::ForeignCallHooks;
pub(crate) use calls::permission::access_path;
pub(crate) use calls::turn_host::CommandHost;
pub(crate) use checks::review::{NOT_REVIEWED, review_changes, review_notice};
pub(crate) use checks::verify::Verification;
pub(crate) use environment::model_choices::{ModelSource, OfferedModel};
pub(crate) use environment::session_environment::SessionEnvironment;
pub(crate) use environment::task_agents::task_agents;
#[cfg(feature = "mcp")]
pub(crate) use mcp::launch::oauth_client;
pub(crate) use mcp::servers::SessionMcp;
#[cfg(feature = "mcp")]
pub(crate) use mcp::servers::start_server;
pub(crate) use services::confinement;
pub(crate) use services::list_refresh::{Refresh, RefreshedList};
pub(crate) use services::login_state::LoginState;
pub(crate) use services::mcp_access::{AgentToken, AgentTokens, McpAccess, SessionInUse};
#[cfg(feature = "mcp")]
pub(crate) use services::mcp_calls::{DelegateCall, InputRounds, ProgressTarget, TargetWatch};
pub(crate) use services::mcp_wait::StartingServers;
pub(crate) use services::models::{Models, provider_names};
pub(crate) use services::recorded_results::{RecordedResult, UnavailableTool};
pub(crate) use services::settings_change::SettingsChange;
pub(crate) use services::{Services, check_depth, model_error};
