//! Agents that `nuncio agents add` supports: their settings, how to install them and how to log in.

use super::{claude_code, codex};
use crate::config::{AgentKind, HostedAgent};

/// The recommended settings of an agent.
pub(crate) struct KnownAgent {
    pub name: &'static str,
    kind: AgentKind,
    /// The program and its arguments; the first word is the program of the kind if it is empty.
    command: &'static [&'static str],
    env_pass: &'static [&'static str],
    /// The command that installs the agent.
    pub install: &'static str,
    /// How to log in.
    pub login: &'static str,
}

/// The known agents. docs/AGENTS.md describes the same settings.
pub(crate) const KNOWN: &[KnownAgent] = &[
    KnownAgent {
        name: "claude-code",
        kind: AgentKind::ClaudeCode,
        command: &[],
        env_pass: &[],
        install: "npm install -g @anthropic-ai/claude-code",
        login: claude_code::LOGIN,
    },
    KnownAgent {
        name: "codex",
        kind: AgentKind::Codex,
        command: &[],
        env_pass: &[],
        install: "npm install -g @openai/codex",
        login: codex::LOGIN,
    },
    KnownAgent {
        name: "gemini",
        kind: AgentKind::Acp,
        command: &["gemini", "--acp"],
        env_pass: &["GEMINI_API_KEY"],
        install: "npm install -g @google/gemini-cli",
        login: "set GEMINI_API_KEY, or run gemini and log in",
    },
    KnownAgent {
        name: "opencode",
        kind: AgentKind::Opencode,
        command: &[],
        env_pass: &[],
        install: "npm install -g opencode-ai",
        login: "run opencode auth login",
    },
];

impl KnownAgent {
    /// Returns the recommended settings.
    pub(crate) fn settings(&self) -> HostedAgent {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        HostedAgent { command: words(self.command), env_pass: words(self.env_pass), ..HostedAgent::new(self.kind) }
    }

    /// Finds the known agent that runs the same program as an agent of the settings.
    pub(crate) fn find(agent: &HostedAgent) -> Option<&'static KnownAgent> {
        let program = |agent: &HostedAgent| agent.command_line().into_iter().next();
        let same = |known: &&KnownAgent| known.kind == agent.kind && program(&known.settings()) == program(agent);
        // A wrapper may start the program of a kind.
        KNOWN.iter().find(same).or_else(|| KNOWN.iter().find(|known| known.kind == agent.kind && agent.kind != AgentKind::Acp))
    }
}
