//! The settings that a session may have beyond the defaults of its directory. Each event that
//! changes them is signed, and the last signature covers all of them.

use std::path::PathBuf;

use super::signed_event::parse_rules;
use super::state::SessionState;
use crate::config::Policy;
use crate::content::{BudgetLimits, shortened};
use crate::event::{Body, Event, SessionChange};
use crate::limits;
use crate::options::{Mode, OptionValue};
use crate::permission::git_acts::GitActs;
use crate::workspace::one_line;

impl SessionState {
    /// Returns the event that grants what the session may do now. Its JSON text is signed: a change
    /// of the text of unchanged settings makes all earlier signatures invalid.
    pub(crate) fn granted(&self) -> Body {
        let given = |limits: BudgetLimits| Some(limits).filter(|limits| *limits != BudgetLimits::default());
        let change = SessionChange {
            cwd: Some(self.cwd.clone()),
            additional_directories: Some(self.additional_directories().to_vec()),
            budget: given(self.budget.of_session()),
            ..self.granted_settings()
        };
        Body::SessionGranted {
            mode: self.mode.clone(),
            change,
            parent: self.parent.clone(),
            rules: self.rules.iter().map(|rule| serde_json::json!(rule)).collect(),
            raised: given(self.budget.raised().of_session()).map(Box::new),
        }
    }

    /// Returns the event that grants the same to a fork, which is not the session of a subagent.
    pub(in crate::session) fn granted_to_fork(&self) -> Body {
        let inherited = parse_rules(self.parent.as_ref().map_or(&[], |parent| &parent.rules)).len();
        let mut fork = self.clone_grants();
        fork.rules.drain(..inherited.min(fork.rules.len()));
        fork.parent = None;
        fork.granted()
    }

    /// Adds an event to what the session may do.
    pub(in crate::session) fn apply_grants(&mut self, event: &Event) {
        self.apply_to_fields(event);
        self.budget.apply(event);
    }

    /// Resets the fields that [`Body::SessionGranted`] sets, except those that it always contains.
    pub(super) fn forget_grants(&mut self) {
        let SessionChange { title, thinking, origin, .. } = std::mem::take(&mut self.settings);
        self.settings = SessionChange { title, thinking, origin, ..SessionChange::default() };
        self.rules.clear();
        self.parent = None;
        self.asked_git_acts = GitActs::NONE;
    }

    /// Drops what the session may do beyond the defaults of its directory, because it is not
    /// signed. What restricts the session is kept. `cwd` replaces a directory that only a signature
    /// allows. Returns descriptions of what was dropped.
    pub(in crate::session) fn drop_grants(&mut self, cwd: Option<PathBuf>) -> Vec<String> {
        let (before, budget) = (self.clone_grants(), self.budget.of_session().or(self.budget.raised().of_session()));
        self.forget_grants();
        self.budget = Default::default();
        let SessionChange { model, system_prompt, agent, system_prompt_append, tools, .. } = before.settings.clone();
        (self.settings.tools, self.parent) = (tools, before.parent.clone());
        self.parent.iter_mut().for_each(|parent| parent.rules.clear());
        let (kept, rules): (Vec<_>, Vec<_>) = before.rules.clone().into_iter().partition(|rule| rule.policy != Policy::Allow);
        self.rules = kept;
        self.mode = OptionValue::Known(if before.mode.known() == Some(Mode::Plan) { Mode::Plan } else { Mode::default() });
        let shown = |what: &str, value: String| format!("{what} {}", one_line(shortened(value, limits::TITLE_CHARS_MAX)));
        let number = |what: &str, number: usize| (number > 0).then(|| format!("{what}: {number}"));
        let texts = [("model", model), ("system prompt", system_prompt), ("hosted agent", agent)];
        let texts = texts.into_iter().chain([("end of the system prompt", system_prompt_append)]);
        let mode = Some(&before.mode).filter(|mode| **mode != self.mode).map(|mode| ("mode", Some(mode.to_string())));
        let texts = mode.into_iter().chain(texts).filter_map(|(what, text)| Some(shown(what, text?)));
        let outside = cwd.map(|cwd| std::mem::replace(&mut self.cwd, cwd));
        let directories =
            outside.iter().chain(before.additional_directories()).map(|path| shown("directory", path.display().to_string()));
        let budget = (budget != BudgetLimits::default()).then(|| "limits of the budget".to_owned());
        let options = number("options of the hosted agent", before.settings.agent_options.len());
        texts.chain(directories).chain(number("remembered rules", rules.len())).chain(options).chain(budget).collect()
    }

    /// Copies the settings that are signed.
    fn granted_settings(&self) -> SessionChange {
        SessionChange { title: None, thinking: None, origin: None, ..self.settings.clone() }
    }

    /// Copies what the session may do.
    pub(in crate::session) fn clone_grants(&self) -> SessionState {
        SessionState {
            cwd: self.cwd.clone(),
            settings: self.granted_settings(),
            mode: self.mode.clone(),
            parent: self.parent.clone(),
            rules: self.rules.clone(),
            budget: self.budget,
            ..SessionState::default()
        }
    }
}
