//! Sets the options of a hosted agent before a turn: the agent's mode `plan` in the session mode
//! `plan`, and the options that clients set.

use std::collections::BTreeMap;

use super::conversation::HostedConversation;
use super::process::unavailable;
use crate::config::Policy;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, SessionChange, Severity};
use crate::options::Mode;
use crate::session::{AgentOption, Turn};

/// The agent's mode in the session mode `plan`.
const PLAN: &str = "plan";

/// Sets the options. Reports an option that the agent does not have or accept; fails only if the
/// mode `plan` cannot be set. `default` is the policy of the mode `ask`.
pub(super) async fn apply(name: &str, conversation: &dyn HostedConversation, turn: &Turn, default: Policy) -> Result<()> {
    let mut wanted = turn.log.state(|state| state.agent_options.clone());
    // A subagent is also limited by the modes of its parent sessions.
    let (mode, _) = turn.permissions(default);
    let plan = match mode {
        Mode::Plan => Some(plan_option(name, conversation, turn, &wanted).await?),
        _ => None,
    };
    wanted.extend(plan.iter().map(|id| (id.clone(), PLAN.into())));
    let mut wanted: Vec<(String, String)> = wanted.into_iter().collect();
    // Set the model first: a new model can have other options.
    wanted.sort_by_key(|(id, _)| id != "model");
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

/// Sets an option, and checks the value that the agent then reports.
async fn set(name: &str, conversation: &dyn HostedConversation, id: &str, value: &str) -> Result<()> {
    let current = || conversation.report().options.into_iter().find(|option| option.id == id).map(|option| option.current);
    match current() {
        Some(current) if current == value => return Ok(()),
        Some(_) => conversation.set_option(id, value).await?,
        None => return Err(unavailable(name, "it no longer has this option")),
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
