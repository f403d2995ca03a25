//! Settings of MCP servers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::model_settings::SecretText;
use super::project_program::ProjectProgram;
use super::secret::has_credentials;

/// Default of `mcp.NAME.timeout_s`.
const MCP_CALL_DEFAULT: Duration = Duration::from_secs(120);

/// A server of the Model Context Protocol: a program (`command`) or a URL (`url`).
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// The program and its arguments. It communicates on its standard input and output.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables of the program. A value `$NAME` is the value of the environment
    /// variable NAME of nuncio.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretText>,
    /// Directory in which the program runs. Default: a directory of its own, outside of all
    /// projects. `$WORKSPACE`: the session's directory, if that is trusted; the program is confined
    /// there. Also in `command` and `env`, `$WORKSPACE` is replaced by the session's directory.
    pub cwd: Option<PathBuf>,
    /// URL of a server with the transport "streamable HTTP": `https://example.com/mcp`.
    pub url: Option<String>,
    /// Additional headers of every HTTP request. A value `$NAME` is the value of the environment
    /// variable NAME.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretText>,
    /// Name of the environment variable that holds the bearer token.
    pub bearer_token_env: Option<String>,
    /// A command that prints the bearer token on its standard output.
    pub bearer_token_command: Option<Vec<String>>,
    /// The sign-in with OAuth: `nuncio mcp login NAME`.
    pub oauth: Option<McpOauth>,
    /// Maximum seconds of a tool call without an answer or a progress report.
    pub timeout_s: u64,
    /// True: the server may send requests to the session's model during a tool call. Permission
    /// rules evaluate each as a call of `mcp__NAME__sampling`.
    pub sampling: bool,
    /// False: the server is not started.
    pub enabled: bool,
    /// Globs for the names of the server's tools that models may see. An empty list: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Globs for the names of the server's tools that models do not see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden_tools: Vec<String>,
    /// Set if a project's settings name the program.
    #[serde(skip)]
    #[schemars(skip)]
    pub project: Option<ProjectProgram>,
}

/// How nuncio signs in to an MCP server. Most servers need none of these settings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpOauth {
    /// Client id of nuncio at the authorization server. Without it, nuncio registers itself.
    pub client_id: Option<String>,
    /// Name of the environment variable that holds the secret of the client.
    pub client_secret_env: Option<String>,
    /// The scopes to request. Default: those that the server names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Port on 127.0.0.1 to which the browser is redirected. Default: a free port.
    pub port: Option<u16>,
}

impl Default for McpServer {
    fn default() -> Self {
        McpServer {
            command: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            bearer_token_env: None,
            bearer_token_command: None,
            oauth: None,
            timeout_s: MCP_CALL_DEFAULT.as_secs(),
            sampling: false,
            enabled: true,
            tools: Vec::new(),
            hidden_tools: Vec::new(),
            project: None,
        }
    }
}

impl McpServer {
    /// Checks settings that depend on each other. The error is a message.
    pub(crate) fn check(&self) -> Result<(), String> {
        match (&self.url, self.command.is_empty()) {
            (None, true) => return Err("set command = [\"PROGRAM\", …] or url".into()),
            (Some(_), false) => return Err("set either command or url".into()),
            (Some(url), true) => {
                if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
                    return Err("url: the scheme must be http or https".into());
                }
                if has_credentials(url) {
                    return Err("url contains credentials: remove them and set bearer_token_env".into());
                }
            }
            (None, false) if self.command[0].is_empty() => return Err("command: the program is empty".into()),
            (None, false) => {}
        }
        if let Some(oauth) = &self.oauth {
            if self.url.is_none() {
                return Err("oauth: only for servers with a url".into());
            }
            if oauth.client_secret_env.is_some() && oauth.client_id.is_none() {
                return Err("oauth: client_secret_env requires client_id".into());
            }
        }
        if self.timeout_s == 0 {
            return Err("timeout_s: must be at least 1".into());
        }
        let globs = [("tools", &self.tools), ("hidden_tools", &self.hidden_tools)];
        for (name, glob) in globs.into_iter().flat_map(|(name, globs)| globs.iter().map(move |glob| (name, glob))) {
            globset::Glob::new(glob).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }

    /// Returns the names of the environment variables that contain the server's secrets.
    pub(crate) fn secret_names(&self) -> impl Iterator<Item = String> {
        let values = self.env.values().chain(self.headers.values()).filter_map(|text| text.variable().map(str::to_owned));
        let oauth = self.oauth.as_ref().and_then(|oauth| oauth.client_secret_env.clone());
        values.chain(self.bearer_token_env.clone()).chain(oauth)
    }
}
