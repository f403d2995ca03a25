//! Settings: plain data, read once. Layers, from lowest to highest precedence: defaults, user file,
//! project file, environment variables, command-line flags, session. Apart from `main`, no other
//! module reads environment variables.

mod agent_settings;
mod budget;
mod changed_project;
mod chat_settings;
mod context_settings;
mod data_paths;
mod declared_checks;
mod git;
mod hook_settings;
mod load;
mod mcp_settings;
mod model_settings;
mod named_files;
mod narrow;
mod overrides;
mod owner;
mod parse;
mod price;
mod project_program;
mod rule_checks;
mod rule_paths;
mod sandbox_settings;
mod secret;
#[cfg(feature = "cli")]
pub(crate) mod server_file;
mod settings;
#[cfg(feature = "cli")]
pub(crate) mod settings_file;
mod trust;
mod trust_record;
mod trusted_content;
mod verify_settings;
mod worktree_origin;
mod worktree_settings;

pub(crate) use agent_settings::{AgentKind, AgentScope, HostedAgent, NATIVE};
#[cfg_attr(not(feature = "cli"), allow(unused_imports))]
pub(crate) use chat_settings::{ChatAction, ChatKey, ChatSettings, EditingMode, ProgramStatus};
pub(crate) use context_settings::ContextSettings;
pub(crate) use data_paths::{
    AGENT_PORT_VARIABLE, AGENT_SESSION_VARIABLE, DEPTH_VARIABLE, DataPaths, HIDDEN_VARIABLE, SESSION_VARIABLE,
};
pub use data_paths::{Environment, SessionVariables};
pub(crate) use declared_checks::declared_checks;
pub(crate) use git::excludes;
pub(crate) use hook_settings::script_word;
pub use hook_settings::{FailurePolicy, HookSettings};
pub(crate) use load::{LoadedSettings, Origin, load_project, load_user, project_settings};
pub use mcp_settings::{McpOauth, McpServer};
pub use model_settings::{Ability, CacheTtl, Effort, ModelSettings, Protocol, Provider, SecretText};
pub(crate) use model_settings::{ModelPatterns, model_settings};
pub(crate) use named_files::{files_in_command, named_files};
pub use narrow::narrow;
pub(crate) use overrides::Overrides;
pub(crate) use owner::owner_name;
pub(crate) use parse::most_similar;
pub use price::{Price, PriceAbove};
pub use project_program::{Grant, ProjectGrants, ProjectProgram};
pub(crate) use project_program::{ProgramKind, below_home};
pub use rule_checks::AccessShape;
pub(crate) use rule_checks::KnownTool;
pub(crate) use rule_paths::{exact_rules, retain_rules_for};
pub(crate) use sandbox_settings::SandboxMode;
pub(crate) use secret::{CREDENTIALS_HINT, has_credentials, mask_urls};
pub use settings::{AccessKind, Durability, PROJECT_RIGHTS, Policy, ProjectRight, Rule, Settings};
pub(crate) use settings::{ClusterSettings, HttpSettings, LanguageServer, SQLITE, Telemetry, ToolSettings};
pub(crate) use trust::{Trust, TrustStatus};
pub(crate) use trusted_content::TrustedContent;
pub(crate) use verify_settings::{ReviewMode, VerifySettings};
pub(crate) use worktree_origin::{REPOSITORY_FILE, worktree_origin, worktrees_in};
pub(crate) use worktree_settings::WorktreeSettings;
