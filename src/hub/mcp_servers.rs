//! The MCP servers of a hosted agent: those that the client gave, and nuncio's own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use crate::config::{McpServer, NATIVE, SESSION_VARIABLE, SecretText};
use crate::error::{Error, Result};
use crate::options::Mode;
use crate::runtime::{AgentToken, McpAccess, Services};

/// The MCP servers for an agent.
#[derive(Default)]
pub(super) struct AgentMcp {
    /// The servers that the client gave.
    given: BTreeMap<String, McpServer>,
    /// nuncio's own server as a program; `None` if the agent does not receive it.
    program: Option<McpServer>,
    /// nuncio's own server over HTTP, if this process has an HTTP server.
    http: Option<McpServer>,
}

impl AgentMcp {
    /// Returns the servers that an agent can use, including nuncio's own, and the names of given
    /// servers that it cannot use. `http` is true if the agent can connect to servers over HTTP.
    pub(super) fn usable(&self, http: bool) -> (BTreeMap<String, McpServer>, Vec<String>) {
        let (mut usable, unusable): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.given.clone().into_iter().partition(|(_, server)| http || server.url.is_none());
        let own = self.http.clone().filter(|_| http).or_else(|| self.program.clone());
        if let Some(own) = own.filter(|_| !self.given.contains_key(NATIVE)) {
            usable.insert(NATIVE.into(), own);
        }
        (usable, unusable.into_keys().collect())
    }

    /// Adds the servers that the client gave, with values instead of names of variables.
    pub(super) fn give(&mut self, services: &Services, mut given: BTreeMap<String, McpServer>) -> Result<()> {
        for (name, server) in &mut given {
            for value in server.env.values_mut().chain(server.headers.values_mut()) {
                if let Some(variable) = value.variable() {
                    let missing =
                        || Error::invalid_params(format!("MCP server {name}: the environment variable {variable} is not set"));
                    *value = SecretText::literal(services.environment.get(variable).ok_or_else(missing)?.to_owned());
                }
            }
        }
        self.given = given;
        Ok(())
    }

    /// Adds nuncio's own server, with which the agent delegates tasks and uses workspaces. As a
    /// program, it is a process over the same sessions, which receives the variables of nuncio in
    /// `environment`. A program that embeds the library has no such process.
    pub(super) fn add_own(&mut self, services: &Services, environment: &[(OsString, OsString)]) {
        let places = &services.places;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let Some(program) = services.binary() else { return };
        let mut command = vec![path(&program), "mcp".into(), "serve".into(), "--data-dir".into(), path(&places.data)];
        if places.file.is_file() {
            command.extend(["--config".into(), path(&places.file)]);
        }
        // Set the variables here: some agents do not pass their environment to their servers.
        let ours = environment.iter().filter(|(name, _)| name.to_string_lossy().starts_with("NUNCIO_"));
        if !environment.iter().any(|(name, _)| name == SESSION_VARIABLE) {
            // The sessions of a shared server can have different modes: use the strictest.
            command.extend(["--mode".into(), Mode::Plan.id().into()]);
        }
        let env = ours.map(|(name, value)| (name.to_string_lossy().into(), SecretText::literal(value.to_string_lossy().into())));
        self.program = Some(McpServer { command, env: env.collect(), ..McpServer::default() });
    }

    /// Adds nuncio's own server over HTTP. The token is valid until it is dropped; `None` if this
    /// process has no HTTP server for programs of this machine.
    pub(super) fn add_http(&mut self, services: &Services, access: McpAccess) -> Result<Option<AgentToken>> {
        let Some(url) = services.local_url() else { return Ok(None) };
        let token = services.agent_tokens.grant(access)?;
        let headers = BTreeMap::from([("Authorization".to_owned(), SecretText::literal(format!("Bearer {}", token.text)))]);
        self.http = Some(McpServer { url: Some(format!("{url}/mcp")), headers, ..McpServer::default() });
        Ok(Some(token))
    }
}
