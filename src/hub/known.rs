//! Agents that `nuncio agents add` supports: their settings, how to install them and how to log in.

use super::{claude_code, codex};
use crate::config::{AgentKind, HostedAgent};

/// The recommended settings of an agent.
pub(crate) struct KnownAgent {
    pub name: &'static str,
    /// Creates the settings.
    pub settings: fn() -> HostedAgent,
    /// The command that installs the agent.
    pub install: &'static str,
    /// How to log in.
    pub login: &'static str,
}

/// The known agents. docs/AGENTS.md describes the same settings.
pub(crate) const KNOWN: &[KnownAgent] = &[
    KnownAgent {
        name: "claude-code",
        settings: || HostedAgent::new(AgentKind::ClaudeCode),
        install: "npm install -g @anthropic-ai/claude-code",
        login: claude_code::LOGIN,
    },
    KnownAgent {
        name: "codex",
        settings: || HostedAgent::new(AgentKind::Codex),
        install: "npm install -g @openai/codex",
        login: codex::LOGIN,
    },
    KnownAgent {
        name: "gemini",
        settings: || HostedAgent {
            command: vec!["gemini".into(), "--acp".into()],
            env_pass: vec!["GEMINI_API_KEY".into()],
            ..HostedAgent::new(AgentKind::Acp)
        },
        install: "npm install -g @google/gemini-cli",
        login: "set GEMINI_API_KEY, or run gemini and log in",
    },
    KnownAgent {
        name: "opencode",
        settings: || HostedAgent::new(AgentKind::Opencode),
        install: "npm install -g opencode-ai",
        login: "run opencode auth login",
    },
];

impl KnownAgent {
    /// Finds the known agent that runs the same program as an agent of the settings.
    pub(crate) fn find(agent: &HostedAgent) -> Option<&'static KnownAgent> {
        let program = |agent: &HostedAgent| agent.command_line().into_iter().next();
        let of_kind = || KNOWN.iter().map(|known| (known, (known.settings)())).filter(|(_, settings)| settings.kind == agent.kind);
        // A wrapper may start the program of a kind.
        let same = of_kind().find(|(_, settings)| program(settings) == program(agent));
        same.or_else(|| of_kind().find(|_| agent.kind != AgentKind::Acp)).map(|(known, _)| known)
    }
}
