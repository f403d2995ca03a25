//! The sandbox around the process of a hosted agent: it writes only below the directories of the
//! session, in a new temporary directory, and where it keeps its login and its sessions.

use std::path::PathBuf;

use super::process::unavailable;
use crate::config::{AgentKind, HostedAgent, SandboxMode};
use crate::error::Result;
use crate::process::{Command, Sandbox};
use crate::runtime::Services;
use crate::workspace::{create_private_dir, linked_git_dirs, real_path, real_writable};

/// A directory in which agents keep their state.
struct StateDirectory {
    /// A word of the commands of these agents contains this.
    program: &'static str,
    /// The environment variable that replaces `default`, if there is one.
    variable: &'static str,
    /// The directory below the user's home.
    default: &'static str,
    /// The part of that directory that the agents use.
    part: &'static str,
}

const fn state(program: &'static str, variable: &'static str, default: &'static str, part: &'static str) -> StateDirectory {
    StateDirectory { program, variable, default, part }
}

const STATE: [StateDirectory; 8] = [
    state("claude", "CLAUDE_CONFIG_DIR", ".claude", ""),
    state("codex", "CODEX_HOME", ".codex", ""),
    state("gemini", "", ".gemini", ""),
    state("opencode", "XDG_DATA_HOME", ".local/share", "opencode"),
    state("opencode", "XDG_STATE_HOME", ".local/state", "opencode"),
    state("opencode", "XDG_CACHE_HOME", ".cache", "opencode"),
    state("opencode", "XDG_CONFIG_HOME", ".config", "opencode"),
    state("pi-acp", "PI_CODING_AGENT_DIR", ".pi", ""),
];

/// The variable with the mode in which codex-acp starts.
const CODEX_ACP_MODE: &str = "INITIAL_AGENT_MODE";

/// The directory for the temporary directories of agents, below nuncio's data directory.
const TEMP: &str = "temp";

pub(super) struct ProcessSandbox<'a> {
    pub services: &'a Services,
    pub name: &'a str,
    pub agent: &'a HostedAgent,
    pub mode: SandboxMode,
    /// The directory of the session, and the others.
    pub roots: Vec<PathBuf>,
    /// The directory for files of the agent.
    pub data: PathBuf,
}

impl ProcessSandbox<'_> {
    /// Confines a command. Creates the directories of the agent's state, because a program that
    /// cannot create them fails.
    pub(super) fn confine(self, command: Command) -> Result<Command> {
        let ProcessSandbox { services, name, agent, mode, roots, data } = self;
        if !Sandbox::is_available() {
            return Err(unavailable(name, "this system has no sandbox (Landlock)").hint("set sandbox = \"off\""));
        }
        let mut writable = if mode == SandboxMode::WorkspaceWrite { roots } else { Vec::new() };
        let git_dirs: Vec<_> = writable.iter().flat_map(|root| linked_git_dirs(root)).collect();
        let states = states(services, agent, &command);
        for state in &states {
            create_private_dir(state)?;
        }
        writable.extend(states.into_iter().chain(agent.writable.iter().cloned()));
        // The agent reads its files in `data`. It must not write there, because nuncio does.
        create_private_dir(&data)?;
        if agent.kind == AgentKind::Fake {
            writable.push(data.clone());
        }
        if let Some(missing) = writable.iter().find(|path| !path.exists()) {
            return Err(unavailable(name, format_args!("{} cannot be writable: it does not exist", missing.display())));
        }
        let mut writable = real_writable(&writable, &data).map_err(|path| {
            let why = "a symlink that the agent can write leads out of its directories";
            unavailable(name, format_args!("{} cannot be writable: {why}", path.display())).hint("remove the symlink")
        })?;
        // Not resolved: the sandbox does not follow symlinks.
        writable.extend(git_dirs);
        let command = adapted(agent, command);
        let places = &services.places;
        let sandbox = Sandbox {
            writable,
            private: places.private().iter().map(|path| real_path(path)).collect(),
            readable: vec![real_path(&data)],
            temp: real_path(&places.data).join(TEMP),
            new_temp: true,
            git_config: services.user.settings.sandbox.git_config,
            settings: false,
            network: true,
            required: true,
        };
        Ok(command.sandbox(Some(sandbox)))
    }
}

/// Turns off the sandbox of codex-acp, which cannot start in another sandbox.
fn adapted(agent: &HostedAgent, command: Command) -> Command {
    let runs = agent.command_line().iter().any(|word| word.contains("codex-acp"));
    let is_set = command.env_set.iter().any(|(set, _)| set == CODEX_ACP_MODE);
    if runs && !is_set { command.env(CODEX_ACP_MODE, "agent-full-access") } else { command }
}

/// Returns the directories of an agent's state.
fn states(services: &Services, agent: &HostedAgent, command: &Command) -> Vec<PathBuf> {
    let line = agent.command_line();
    let runs = |program: &str| line.iter().any(|word| word.contains(program)) || kind_program(agent.kind) == program;
    let value = |name: &str| command.env_set.iter().rev().find(|(set, _)| set == name).map(|(_, value)| PathBuf::from(value));
    let directories = |state: &StateDirectory| {
        let default = services.places.home.as_ref().map(|home| home.join(state.default));
        // The directory that the variable names may have links to the user's.
        let (given, users) = (value(state.variable), services.environment.get(state.variable).map(PathBuf::from));
        let part = state.part;
        let all = [given, users.or(default)].into_iter().flatten();
        all.map(move |above| if part.is_empty() { above } else { above.join(part) }).collect::<Vec<_>>()
    };
    STATE.iter().filter(|state| runs(state.program)).flat_map(directories).collect()
}

/// Returns the program of a kind, as in [`STATE`].
fn kind_program(kind: AgentKind) -> &'static str {
    match kind {
        AgentKind::ClaudeCode => "claude",
        AgentKind::Codex => "codex",
        AgentKind::Opencode => "opencode",
        AgentKind::Acp | AgentKind::Fake => "",
    }
}
