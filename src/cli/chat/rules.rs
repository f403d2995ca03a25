//! The permission rules of the session: `/permissions`.

use super::state::Chat;
use crate::api::{ListRules, RemoveRule, RemoveRuleParams, RuleScope, ScopedRule, SessionParams};
use crate::config::Rule;
use crate::error::{Error, Result};
use crate::terminal_text::output_line;

impl Chat {
    /// Runs `/permissions`: lists the rules and what each tool may do, or removes a rule.
    pub(super) async fn permissions(&mut self, argument: &str) -> Result<()> {
        let session_id = self.session.id.clone();
        let listed = self.session.client.call::<ListRules>(SessionParams { session_id: session_id.clone() }).await?;
        let number = match argument.split_whitespace().collect::<Vec<_>>()[..] {
            [] => {
                let mut number = 0;
                let row = |listed: &ScopedRule| {
                    number += usize::from(listed.removable);
                    let mark = if listed.removable { number.to_string() } else { String::new() };
                    format!("{mark:<3} {}\n", text(listed))
                };
                let rows: String = listed.rules.iter().map(row).collect();
                if number > 0 {
                    self.view.print(&format!("{rows}/permissions remove NUMBER removes a rule\n"));
                } else {
                    self.view.print(&rows);
                }
                self.tasks.list_tools(&session_id, "", "the agent has not reported its tools");
                return Ok(());
            }
            ["remove", number] => number.parse::<usize>().ok(),
            _ => None,
        };
        let usage = || Error::invalid_params("/permissions: no arguments, or: remove NUMBER");
        let number = number.ok_or_else(usage)?;
        let chosen = listed.rules.into_iter().filter(|rule| rule.removable).nth(number.wrapping_sub(1));
        let chosen = chosen.ok_or_else(|| Error::not_found(format!("/permissions: there is no rule {number}")))?;
        let removed = format!("removed: {}\n", text(&chosen));
        let params = RemoveRuleParams { session_id, scope: chosen.scope, rule: chosen.rule };
        self.session.client.call::<RemoveRule>(params).await?;
        self.view.print(&removed);
        Ok(())
    }
}

/// Describes a rule and its scope in one line.
fn text(listed: &ScopedRule) -> String {
    let Rule { tool, kind, path, pattern, directory, policy, exact: _ } = &listed.rule;
    let kind = kind.map(|kind| format!("{kind:?}").to_lowercase());
    let subject = tool.clone().or(kind).unwrap_or_else(|| "any call".into());
    let pattern = pattern.as_ref().map(|pattern| format!(" `{pattern}`")).unwrap_or_default();
    let path = path.as_ref().map(|path| format!(" on {path}")).unwrap_or_default();
    let scope = match (listed.scope, directory) {
        (RuleScope::Session, _) => "this session".into(),
        (RuleScope::User, Some(directory)) => format!("your settings, in {}", directory.display()),
        (RuleScope::User, None) => "your settings".into(),
        (RuleScope::TrustedProject, _) => "the project's settings as they were trusted".into(),
        (RuleScope::Project, _) => "the project's settings".into(),
    };
    let policy = format!("{policy:?}").to_lowercase();
    output_line(&format!("{policy:<6} {subject}{pattern}{path} · {scope}"))
}
