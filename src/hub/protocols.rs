//! The protocols of hosted agents: one row for each. docs/CONTRIBUTING.md lists what else a new
//! protocol touches.

use super::conversation::Open;
use super::own_rules::{AskingSettings, OwnRules};
use super::{acp, claude_code, codex, opencode, project_config};
use crate::config::AgentKind;

/// How agents with a protocol are started and used.
pub(super) struct HostedProtocol {
    /// Starts an agent, and creates or resumes its session.
    pub open: Open,
    /// Arguments of the agent after those of the settings.
    pub arguments: &'static [&'static str],
    /// Arguments with which the agent's terminal client continues the last session of a directory.
    pub continues: &'static [&'static str],
    /// The environment variable whose value is the setting `config`.
    pub config_variable: Option<&'static str>,
    /// True if nuncio must prevent the agent from running programs that the project's configuration
    /// names. Other protocols have arguments or parameters for this.
    pub loads_project_config: bool,
    pub login: LoginStatus,
    /// Returns the cause with which the agent makes calls without asking nuncio, if it is known.
    pub own_rules: fn(&AskingSettings<'_>) -> Option<OwnRules>,
}

/// How a check of an agent determines the login status.
pub(super) enum LoginStatus {
    /// The start fails without a login.
    Start,
    /// The program prints the status as JSON with these arguments.
    Printed(&'static [&'static str]),
    /// Without a login, the agent has no option `model`.
    ModelOption,
}

const ACP: HostedProtocol = HostedProtocol {
    open: acp::open,
    arguments: &[],
    continues: &[],
    config_variable: None,
    loads_project_config: true,
    login: LoginStatus::Start,
    own_rules: |_| None,
};

const CLAUDE_CODE: HostedProtocol = HostedProtocol {
    open: claude_code::open,
    arguments: &claude_code::ARGUMENTS,
    loads_project_config: false,
    login: LoginStatus::Printed(&["auth", "status"]),
    ..ACP
};

const CODEX: HostedProtocol = HostedProtocol {
    open: codex::open,
    arguments: &["app-server"],
    continues: &["resume", "--last"],
    loads_project_config: false,
    own_rules: codex::own_rules,
    ..ACP
};

const OPENCODE: HostedProtocol = HostedProtocol {
    open: opencode::open,
    continues: &["--continue"],
    config_variable: Some(project_config::OPENCODE_CONFIG),
    login: LoginStatus::ModelOption,
    ..ACP
};

/// The test agent is nuncio, which speaks ACP. The setting `config` names its script.
const FAKE: HostedProtocol = HostedProtocol { loads_project_config: false, ..ACP };

impl AgentKind {
    pub(super) fn protocol(self) -> &'static HostedProtocol {
        match self {
            AgentKind::Acp => &ACP,
            AgentKind::ClaudeCode => &CLAUDE_CODE,
            AgentKind::Codex => &CODEX,
            AgentKind::Opencode => &OPENCODE,
            AgentKind::Fake => &FAKE,
        }
    }
}
