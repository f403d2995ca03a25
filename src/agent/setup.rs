//! The model, the system prompt and the tools of a session's next request, for clients.

use std::path::Path;
use std::sync::Arc;

use super::prompt::{SystemPrompt, without_session};
use crate::config::{Policy, model_settings};
use crate::error::Result;
use crate::model::{Model, ToolSpec};
use crate::options::Mode;
use crate::permission::Access;
use crate::permission::paths::AccessPath;
use crate::permission::rules::{AccessRequest, Rules, decide};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::environment::tool_offer::ToolOffer;
use crate::runtime::services::Services;
use crate::session::{AgentSetup, OfferedTool, SessionLog};
use crate::toolkit::AnyTool;

pub(super) fn read(
    services: &Services,
    prompt: &SystemPrompt,
    environment: &Arc<SessionEnvironment>,
    log: &SessionLog,
) -> Result<AgentSetup> {
    let (model, mode, remembered) = log.state(|state| (state.settings.model.clone(), state.mode.known(), state.rules.clone()));
    let settings = &environment.loaded.settings;
    let model = model.or_else(|| services.models.known_default(settings));
    let system = prompt.preview(log, environment, model.as_deref().unwrap_or_default())?;
    let (rules, default) = (environment.rules(&remembered), settings.permissions.default);
    let (mode, cwd) = (mode.unwrap_or_default(), &environment.workspace.cwd);
    let tools = environment.tools.table().iter().map(|tool| offered(&**tool, &rules, mode, default, cwd)).collect();
    Ok(AgentSetup { model, system_prompt: Some(system.to_string()), tools })
}

/// Returns the system prompt and the tools of the first request to `model` in a new session.
pub(crate) fn first_request(environment: &Arc<SessionEnvironment>, model: &dyn Model) -> Result<(Arc<str>, Arc<[ToolSpec]>)> {
    let (settings, id) = (&environment.loaded.settings, model.id());
    let named = environment.services.overrides.tools.clone();
    let subset = named.or_else(|| model_settings(&settings.models, id).tools);
    let offer = if subset.is_some() { ToolOffer::All } else { ToolOffer::of_model(id, Some(model)) };
    environment.tools.set_subset(subset, offer);
    Ok((without_session(environment, id)?, environment.tools.table().specs()))
}

/// Describes a tool and the decision about an ordinary call of it in `cwd`. A rule about certain
/// paths, commands or addresses can decide differently about a certain call.
pub(crate) fn offered(tool: &dyn AnyTool, rules: &Rules, mode: Mode, default: Policy, cwd: &Path) -> OfferedTool {
    let access = Access::ordinary(tool.access());
    let place =
        || AccessPath { real: cwd.into(), written: cwd.into(), cwd: cwd.into(), inside: true, guarded: false, read_only: false };
    let paths = access.paths.iter().map(|_| place()).collect();
    let request = AccessRequest { paths, ..AccessRequest::new(tool.name(), access.kind) };
    OfferedTool {
        name: tool.name().into(),
        label: tool.label().into(),
        description: tool.spec().description.clone(),
        kind: tool.kind(),
        category: access.category(),
        approval: decide(rules, mode, default, &request).policy,
        input_schema: tool.spec().input_schema.clone(),
    }
}
