//! The state of the session that the chat shows.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::api::{GetSession, SessionParams};
use crate::cli::terminal::amounts::tokens;
use crate::cli::terminal::remarks::hosted_agent;
use crate::client::SessionClient;
use crate::content::{Cost, Usage};
use crate::error::Result;
use crate::id::SessionId;
use crate::options::MODES;

/// The state of the session that the chat shows.
#[derive(Debug, Default)]
pub(crate) struct SessionInfo {
    pub session_id: String,
    pub cwd: PathBuf,
    pub title: Option<String>,
    pub model: Option<String>,
    pub mode: String,
    pub thinking: Option<String>,
    pub agent: Option<String>,
    /// The setting or the file with which the agent acts without asking nuncio.
    pub agent_rules: Option<String>,
    pub context_tokens: u64,
    pub usage: Usage,
    pub cost: Option<Cost>,
    pub tools: Vec<String>,
}

impl SessionInfo {
    pub(crate) async fn read(client: &SessionClient, id: &SessionId) -> Result<SessionInfo> {
        let view = client.call::<GetSession>(SessionParams { session_id: id.clone() }).await?;
        Ok(SessionInfo {
            session_id: view.session_id.to_string(),
            cwd: view.cwd,
            title: view.title,
            model: view.model,
            mode: view.mode.to_string(),
            thinking: view.thinking.map(|level| level.to_string()),
            agent: view.activity.agent().map(String::from),
            agent_rules: view.agent_rules,
            context_tokens: view.context_tokens,
            usage: view.usage,
            cost: view.activity.cost(),
            tools: view.tools,
        })
    }

    /// Returns the name of the hosted agent, and that it acts by its own rules.
    pub(crate) fn agent_name(&self) -> Option<String> {
        self.agent.as_ref().map(|agent| hosted_agent(agent, self.agent_rules.is_some()))
    }

    /// Returns the first rows of a session: where it is, what answers, what it may do, and what may
    /// be typed. `place` names the directory, `instructions` the file that the agent reads.
    pub(crate) fn first_rows(&self, place: &str, instructions: Option<&str>) -> String {
        let agent = self.agent_name().or_else(|| self.model.clone()).unwrap_or_else(|| "no model yet".into());
        let mode = MODES.iter().find(|row| row.id == self.mode).map(|row| row.description.to_lowercase());
        let mode = mode.map(|mode| format!("{} (Shift-Tab changes)", mode.replace("; ", ", ")));
        let servers: BTreeSet<&str> = self.tools.iter().filter_map(|tool| tool.strip_prefix("mcp__")?.split("__").next()).collect();
        let servers = match servers.len() {
            0 => None,
            1 => Some("1 MCP server".to_owned()),
            several => Some(format!("{several} MCP servers")),
        };
        let parts = [Some(agent), mode, instructions.map(String::from), servers];
        let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        format!(
            "nuncio {} · {place}\n{parts}\nDescribe a change, or: / commands  @ files  ! shell  ? keys\n",
            env!("CARGO_PKG_VERSION")
        )
    }

    /// Returns the lines of `/status`.
    pub(crate) fn status(&self) -> String {
        let agent = self.agent_name().unwrap_or_else(|| "nuncio".into());
        let rows = [
            ("session", self.session_id.clone()),
            ("title", self.title.clone().unwrap_or_default()),
            ("directory", self.cwd.display().to_string()),
            ("agent", agent),
            ("own rules", self.agent_rules.clone().unwrap_or_default()),
            ("model", self.model.clone().unwrap_or_default()),
            ("mode", self.mode.clone()),
            ("thinking", self.thinking.clone().unwrap_or_default()),
            ("tools", if self.tools.is_empty() { String::new() } else { self.tools.len().to_string() }),
        ];
        let line = |(name, value): &(&str, String)| format!("{name:<10} {value}\n");
        let lines: String = rows.iter().filter(|(_, value)| !value.is_empty()).map(line).collect();
        lines + &self.cost_lines()
    }

    pub(crate) fn cost_lines(&self) -> String {
        let Usage { input_tokens, output_tokens, cache_read_tokens, .. } = self.usage;
        let cached = (cache_read_tokens > 0).then(|| format!(" ({} of them cached)", tokens(cache_read_tokens)));
        let unknown = match self.usage.total() {
            0 => "not known: no usage was reported",
            _ => "not known: the price of a model is not known",
        };
        let cost = self.cost.map_or_else(|| unknown.to_owned(), |cost| cost.to_string());
        format!(
            "tokens     {} in{}, {} out; {} in the context\ncost       {cost}\n",
            tokens(input_tokens),
            cached.unwrap_or_default(),
            tokens(output_tokens),
            tokens(self.context_tokens),
        )
    }
}
