//! Settings: plain data, read once. Layers, from lowest to highest: defaults, user file, project
//! file, environment, flags, session. Apart from `main`, no other module reads the environment.

mod data_paths;
mod git;
mod load;
mod narrow;
mod parse;
mod rule_paths;
mod secret;
mod settings;
mod trust;

pub use data_paths::{DataPaths, Environment};
pub use git::excludes;
pub use load::{Loaded, Origin, Overrides, load_project, load_user};
pub use secret::{CREDENTIALS_HINT, has_credentials, mask_urls};
pub use settings::{
    AccessKind, Durability, HttpSettings, Instructions, LanguageServer, Permissions, Policy, Protocol, Provider, Rule, SandboxMode,
    SandboxSettings, Settings, Telemetry, ToolSettings,
};
pub use trust::{Trust, Trusted};
