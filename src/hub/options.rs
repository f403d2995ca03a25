//! Sets the options of a hosted agent before a turn: the agent's mode `plan` in the session mode
//! `plan`, the options that clients set, and the session's model and thinking.

use std::collections::BTreeMap;

use super::abilities::{self, Means};
use super::conversation::{AgentReport, HostedConversation};
use super::process::unavailable;
use crate::config::{HostedAgent, Policy};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, SessionChange, Severity};
use crate::options::Mode;
use crate::session::{AgentOption, AgentSetting, Turn};

/// The agent's mode in the session mode `plan`.
const PLAN: &str = "plan";

/// The category of the option that sets the model.
const MODEL: &str = "model";
/// The category of the option that sets how much the model thinks.
const THINKING: &str = "thought_level";

/// The origins of the wanted values.
pub(super) struct WantedOptions<'a> {
    pub agent: &'a HostedAgent,
    pub session: &'a SessionChange,
    /// The policy of the mode `ask`.
    pub default: Policy,
}

/// Sets the options. Reports an option that the agent does not have or accept; fails only if the
/// mode `plan` cannot be set.
pub(super) async fn apply(
    name: &str,
    conversation: &dyn HostedConversation,
    turn: &Turn,
    WantedOptions { agent, session, default }: WantedOptions<'_>,
) -> Result<()> {
    let mut wanted = turn.log.state(|state| state.settings.agent_options.clone());
    let is_option = |setting| abilities::means(agent, setting) == Some(Means::Option);
    let model = session.model.clone().filter(|_| is_option(AgentSetting::Model));
    let thinking = session.thinking.as_ref().filter(|_| is_option(AgentSetting::Thinking)).map(ToString::to_string);
    for (category, value) in [(MODEL, model), (THINKING, thinking)] {
        if let Some(value) = value {
            let options = conversation.report().options;
            let option = options.into_iter().find(|option| option.category.as_deref() == Some(category));
            wanted.entry(option.map_or_else(|| category.to_owned(), |option| option.id)).or_insert(value);
        }
    }
    // A subagent is also limited by the modes of its parent sessions.
    let (mode, _) = turn.permissions(default);
    let plan = match mode {
        Mode::Plan => Some(plan_option(name, conversation, turn, &wanted).await?),
        _ => None,
    };
    wanted.extend(plan.iter().map(|id| (id.clone(), PLAN.into())));
    let mut wanted: Vec<(String, String)> = wanted.into_iter().collect();
    // Set the model first: a new model can have other options.
    wanted.sort_by_key(|(id, _)| id != MODEL);
    for (id, value) in wanted {
        match set(name, conversation, &id, &value).await {
            Ok(()) => {}
            Err(error) if plan.as_ref() == Some(&id) => return Err(error),
            Err(error) => {
                let title = format!("The option {id} of the agent was not set to {value}");
                turn.emit(Body::notice(Severity::Warning, title, error.message)).await;
            }
        }
    }
    Ok(())
}

/// Returns the model that an agent uses in place of the wanted one. A choice of the option `model`
/// may stand for any model, and a version may follow the name of a model.
pub(super) fn other_model(session: &SessionChange, report: &AgentReport) -> Option<String> {
    let (wanted, used) = (session.model.as_deref()?, report.model_in_use.as_deref()?);
    let is_choice = |option: &AgentOption| option.id == MODEL && option.choices.iter().any(|choice| choice.value == wanted);
    (!used.starts_with(wanted) && !report.options.iter().any(is_choice)).then(|| used.to_owned())
}

/// Sets an option, and checks the value that the agent then reports.
async fn set(name: &str, conversation: &dyn HostedConversation, id: &str, value: &str) -> Result<()> {
    let current = || conversation.report().options.into_iter().find(|option| option.id == id).map(|option| option.current);
    match current() {
        Some(current) if current == value => return Ok(()),
        Some(_) => conversation.set_option(id, value).await?,
        None => return Err(unavailable(name, "it does not have this option")),
    }
    match current() {
        Some(current) if current != value => Err(unavailable(name, format_args!("the option {id} is {current}, not {value}"))),
        _ => Ok(()),
    }
}

/// Returns the id of the option that has the mode `plan`; fails if the agent has none. Records the
/// current mode, so that it is set again after the session mode `plan`.
async fn plan_option(
    name: &str,
    conversation: &dyn HostedConversation,
    turn: &Turn,
    wanted: &BTreeMap<String, String>,
) -> Result<String> {
    let has_plan = |option: &AgentOption| option.is_mode() && option.choices.iter().any(|choice| choice.value == PLAN);
    let Some(AgentOption { id, current, .. }) = conversation.report().options.into_iter().find(has_plan) else {
        let message = format!("agent {name}: it has no mode plan, in which it changes nothing");
        return Err(Error::new(Kind::Unsupported, message).hint("choose another mode for the session"));
    };
    if !wanted.contains_key(&id) && !current.is_empty() && current != PLAN {
        let agent_options = BTreeMap::from([(id.clone(), current)]);
        turn.commit_durably(Body::SessionUpdated { change: SessionChange { agent_options, ..SessionChange::default() } }).await?;
    }
    Ok(id)
}
