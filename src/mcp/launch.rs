//! The identity of a server: its program or URL, and the roots of the sessions that use it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::process::{Command, ProcessLauncher, ProgramConfinement};

/// The configuration of a server with the directories of its sessions. Sessions with an equal
/// `McpLaunch` share one server. Has no `Debug`, because it contains secrets.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct McpLaunch {
    pub name: String,
    pub transport: McpTransport,
    /// The answer to `roots/list`.
    pub roots: Vec<PathBuf>,
    /// True if the server may send requests to the session's model.
    pub sampling: bool,
}

/// How messages reach a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum McpTransport {
    Stdio {
        /// The program and its arguments; never empty.
        command: Vec<String>,
        env: Vec<(String, String)>,
        /// Variables with secrets, which the program does not inherit.
        env_removed: Vec<String>,
        /// The directory in which the program runs.
        cwd: PathBuf,
        /// Set if the program runs in a project.
        confined: Option<ProgramConfinement>,
        /// A sentence about the place of the program, for messages about failures.
        hint: Option<String>,
    },
    Http {
        url: String,
        headers: Vec<(String, String)>,
        bearer_token: Option<String>,
        /// A command that prints the bearer token, if `bearer_token` is absent.
        bearer_token_command: Option<TokenProgram>,
        /// The OAuth client of the tokens, if it is registered.
        oauth_client: Option<OauthClient>,
    },
}

/// A command that prints a token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TokenProgram {
    pub command: Vec<String>,
    pub cwd: PathBuf,
    pub env: Vec<(&'static str, OsString)>,
    /// Set if a project's settings name the command.
    pub confined: Option<ProgramConfinement>,
}

impl TokenProgram {
    /// Runs the command and returns what it printed. The error is a message.
    pub(super) async fn token(&self, launcher: &ProcessLauncher) -> Result<String, String> {
        let command = Command::program(&self.command, &self.cwd);
        let command = self.env.iter().fold(command, |command, (name, value)| command.env(name, value));
        let command = self.confined.iter().fold(command, Command::confined);
        match (launcher.printed(&command).await, &self.confined) {
            (Err(why), Some(confined)) => Err(confined.program.with_hint(why)),
            (printed, _) => printed,
        }
    }
}

/// The OAuth client that nuncio uses to sign in, if it is registered at the authorization server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OauthClient {
    pub id: String,
    pub secret: Option<String>,
}
