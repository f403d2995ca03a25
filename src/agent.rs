//! The native agent: requests answers from a model and runs its tool calls until the turn ends.

mod calls;
mod environment;
mod input;
pub mod mcp;
mod native;
mod programs;
mod providers;
mod services;
mod setup;
mod turn;

pub(crate) use calls::call_host::{CallHost, CallOrigin, CallOutcome, CallResult, Question};
pub(crate) use calls::execute::{ToolCall, ToolUse};
pub(crate) use calls::hooks::ForeignCallHooks;
pub(crate) use calls::recorded_results::{RecordedResult, UnavailableTool};
pub(crate) use environment::session_environment::SessionEnvironment;
pub(crate) use environment::task_agents::task_agents;
pub(crate) use input::messages::UNATTENDED;
pub(crate) use mcp::access::{AgentToken, AgentTokens, McpAccess, SessionInUse};
#[cfg(feature = "mcp")]
pub(crate) use mcp::calls::{DelegateCall, InputRounds, ProgressTarget, TargetWatch};
pub(crate) use mcp::form_options::{field_values, is_choice};
#[cfg(feature = "mcp")]
pub(crate) use mcp::launch::oauth_client;
pub(crate) use mcp::servers::SessionMcp;
#[cfg(feature = "mcp")]
pub(crate) use mcp::servers::start_server;
pub(crate) use mcp::wait::StartingServers;
pub(crate) use native::NativeAgents;
pub(crate) use programs::confinement;
pub(crate) use providers::list_refresh::{Refresh, RefreshedList};
pub(crate) use providers::login_state::LoginState;
pub(crate) use providers::model_choices::{ModelSource, OfferedModel};
pub(crate) use providers::models::{Models, provider_names};
pub(crate) use services::{Services, check_depth, model_error};
pub(crate) use setup::{first_request, offered};
pub(crate) use turn::budget::TurnBudget;
pub(crate) use turn::review::{NOT_REVIEWED, review_changes, review_notice};
pub(crate) use turn::verify::Verification;
