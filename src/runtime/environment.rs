//! The environment of a session: directories, settings, tools, models and programs.

mod asked_git_acts;
pub(super) mod check_confinement;
pub(super) mod model_choices;
pub(super) mod price;
pub(super) mod program_place;
pub(crate) mod session_environment;
pub(super) mod session_tools;
pub(super) mod task_agents;
pub(crate) mod tool_offer;
pub(super) mod workspace_variable;
