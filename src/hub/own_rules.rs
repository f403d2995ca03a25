//! Agents that act by their own rules: nuncio's rules have no effect on calls about which an agent
//! does not ask.

use crate::config::AccessKind;
use crate::error::{Error, Kind, Result};
use crate::options::Mode;
use crate::permission::rules::{Rules, denies_some};
use crate::process::Command;
use crate::runtime::Services;

/// The settings of an agent that decide whether it asks.
pub(super) struct AskingSettings<'a> {
    pub services: &'a Services,
    pub name: &'a str,
    /// The setting `config`, with values instead of names of environment variables.
    pub config: Option<String>,
    /// The program, with its environment, in the directory of the session.
    pub command: Command,
    /// The mode of the session.
    pub mode: Mode,
}

/// The cause with which an agent makes calls without asking.
pub(super) struct OwnRules {
    /// The setting or the file.
    pub source: String,
    /// The calls about which the agent does not ask, as nuncio's tools and their access.
    pub unasked: &'static [(&'static str, AccessKind)],
}

impl OwnRules {
    pub(super) const COMMANDS: &[(&str, AccessKind)] = &[("bash", AccessKind::Exec)];
    pub(super) const COMMANDS_AND_EDITS: &[(&str, AccessKind)] = &[OwnRules::COMMANDS[0], ("edit", AccessKind::Write)];

    /// Fails if a rule denies calls about which the agent `name` does not ask.
    pub(super) fn check(&self, name: &str, rules: &Rules) -> Result<()> {
        let OwnRules { source, unasked } = self;
        let Some(rule) = unasked.iter().find_map(|(tool, kind)| denies_some(rules, tool, *kind)) else { return Ok(()) };
        let rule = serde_json::to_string(&rule).unwrap_or_default();
        let message = format!("agent {name}: with {source} it acts without asking nuncio, so it could break the rule {rule}");
        Err(Error::new(Kind::Unsupported, message).hint(format!("remove {source}, or the rule")))
    }
}
