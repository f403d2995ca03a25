//! The environment, the model and the MCP servers that the turns of a session share.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::agent::prompt::SystemPrompt;
use crate::config::model_settings;
use crate::error::Result;
use crate::event::{Body, SessionParent, Severity};
use crate::id::SessionId;
use crate::model::Model;
use crate::options::Mode;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::environment::tool_offer::ToolOffer;
use crate::runtime::mcp::servers::SessionMcp;
use crate::runtime::services::{Services, model_error};
use crate::session::{SessionLog, Turn};
use crate::task;

/// The native agent of one session. Loads nothing before the session's first turn.
pub(in crate::agent) struct NativeAgent {
    pub services: Arc<Services>,
    session: SessionId,
    /// Set for a subagent.
    pub parent: Option<SessionParent>,
    /// Built by the first turn and rebuilt when the session's directories change.
    pub environment: Mutex<Option<Arc<SessionEnvironment>>>,
    /// The last used model, kept because a scripted model counts its steps.
    model: Mutex<Option<(String, Arc<dyn Model>)>>,
    /// True if a notice reported that the model of the last turn cannot call tools.
    without_tools: Mutex<bool>,
    pub mcp: SessionMcp,
    pub prompt: SystemPrompt,
}

impl NativeAgent {
    pub(in crate::agent) fn new(services: Arc<Services>, session: SessionId, parent: Option<SessionParent>) -> NativeAgent {
        let (environment, model, without_tools, prompt, mcp) = Default::default();
        NativeAgent { services, session, parent, environment, model, without_tools, prompt, mcp }
    }

    /// Returns the environment for the session's current directories, and builds it if necessary.
    /// Reports ignored project settings when the environment is built.
    pub(in crate::agent) async fn current_environment(&self, turn: &Turn) -> Result<Arc<SessionEnvironment>> {
        let environment = match self.kept_environment(&turn.log) {
            Some(environment) => environment,
            None => {
                let before = self.environment.lock().clone();
                let environment = self.new_environment(&turn.log, before).await?;
                *self.environment.lock() = Some(environment.clone());
                report_ignored_settings(turn, &environment).await;
                environment
            }
        };
        self.select_tools(&turn.log, &environment, None);
        Ok(environment)
    }

    /// Returns the environment of the session's next turn, outside of a turn.
    pub(in crate::agent) async fn next_environment(&self, log: &SessionLog) -> Result<Arc<SessionEnvironment>> {
        let environment = match self.kept_environment(log) {
            Some(environment) => environment,
            None => self.new_environment(log, None).await?,
        };
        self.select_tools(log, &environment, None);
        Ok(environment)
    }

    /// Gives the model the tools that the session, the command line or the settings of the model
    /// name, else those that fit it. `model` is the model of the turn, once it is known.
    fn select_tools(&self, log: &SessionLog, environment: &SessionEnvironment, model: Option<&str>) {
        let settings = &environment.loaded.settings;
        let (own, runs) = log.state(|state| (state.settings.tools.clone(), state.turn.is_some()));
        let last = self.model.lock().clone();
        // The requests of a running turn keep their tools, which the turn selected with its model.
        if model.is_none() && runs && last.is_some() {
            return;
        }
        let id = model
            .map(String::from)
            .or_else(|| self.chosen_model(log, environment))
            .or_else(|| last.as_ref().map(|(id, _)| id.clone()))
            .or_else(|| settings.model.clone());
        let of_model = || model_settings(&settings.models, id.as_deref()?).tools;
        let subset = own.or_else(|| self.services.overrides.tools.clone()).or_else(of_model);
        let offer = || {
            let id = id.as_deref().unwrap_or_default();
            ToolOffer::of_model(id, last.as_ref().filter(|(last, _)| last == id).map(|(_, model)| &**model))
        };
        let allowed = self.parent.as_ref().and_then(|parent| parent.tools.as_ref());
        let is_listed = subset.is_some() || allowed.is_some_and(|tools| !tools.iter().any(|entry| entry == "*"));
        let offer = if is_listed { ToolOffer::All } else { offer() };
        environment.tools.set_subset(subset, offer);
    }

    /// Returns the model of the role `plan` in that mode, else the model of the session, if one is
    /// set. A subagent keeps the model that it was started with.
    fn chosen_model(&self, log: &SessionLog, environment: &SessionEnvironment) -> Option<String> {
        let (own, plans) = log.state(|state| (state.settings.model.clone(), state.mode.known() == Some(Mode::Plan)));
        let is_planned = plans && (self.parent.is_none() || own.is_none());
        environment.loaded.settings.roles.plan.clone().filter(|_| is_planned).or(own)
    }

    /// Returns the environment of the last turn, unless the session's directories have changed.
    fn kept_environment(&self, log: &SessionLog) -> Option<Arc<SessionEnvironment>> {
        let kept = self.environment.lock().clone()?;
        log.state(|state| kept.is_for(&state.cwd, state.additional_directories())).then_some(kept)
    }

    /// Builds the environment for the session's directories, which reads files.
    async fn new_environment(&self, log: &SessionLog, before: Option<Arc<SessionEnvironment>>) -> Result<Arc<SessionEnvironment>> {
        let (cwd, directories) = log.state(|state| (state.cwd.clone(), state.additional_directories().to_vec()));
        let (services, session, parent) = (self.services.clone(), self.session.clone(), self.parent.clone());
        let build = move || {
            SessionEnvironment::new(services, Some(&session), parent.as_ref(), cwd, directories, before.as_deref()).map(Arc::new)
        };
        task::blocking("building the environment", build).await?
    }

    /// Returns the model of the turn. Reports once if the model's server offers no tools.
    pub(in crate::agent) async fn current_model(&self, turn: &Turn, environment: &SessionEnvironment) -> Result<Arc<dyn Model>> {
        let (id, model, known) = self.open_model(&turn.log, environment).await?;
        if let Some(base_url) = self.services.models.found_at(&id).filter(|_| !known) {
            let description =
                format!("no model is set and no API key was found; the local server at {base_url} provides this model");
            turn.emit(Body::notice(Severity::Info, format!("Using {id}"), description)).await;
        }
        *self.model.lock() = Some((id.clone(), model.clone()));
        model.prepare().await;
        self.select_tools(&turn.log, environment, Some(&id));
        let reported = std::mem::replace(&mut *self.without_tools.lock(), !model.supports_tools());
        if !model.supports_tools() && !reported {
            let description = "the requests contain no tools, because its chat template (or the setting abilities) has none: \
                               choose another model, or start the server with another chat template";
            turn.emit(Body::notice(Severity::Warning, format!("{} cannot call tools", model.id()), description)).await;
        }
        Ok(model)
    }

    /// Returns the session's model with its id in the settings, and whether it is the last used
    /// one.
    pub(in crate::agent) async fn open_model(
        &self,
        log: &SessionLog,
        environment: &SessionEnvironment,
    ) -> Result<(String, Arc<dyn Model>, bool)> {
        let id = match self.chosen_model(log, environment) {
            Some(id) => id,
            None => self.services.models.default_id(&environment.loaded.settings).await.map_err(model_error)?,
        };
        let last = self.model.lock().clone();
        if let Some(model) = last.and_then(|(last, model)| (last == id).then_some(model)) {
            return Ok((id, model, true));
        }
        let model = self.services.models.open(&id, &environment.loaded.settings).await.map_err(model_error)?;
        Ok((id, model, false))
    }

    /// Updates the tools of the MCP servers, and reports changes of the servers.
    pub(in crate::agent) async fn update_servers(&self, turn: &Turn, environment: &Arc<SessionEnvironment>) -> Result<()> {
        for notice in self.mcp.update(environment, &turn.cancel).await {
            turn.commit(notice).await?;
        }
        Ok(())
    }
}

/// Maximum number of skipped files that a notice names.
const SKIPPED_SHOWN_MAX: usize = 50;

/// Reports settings and files of the project that have no effect in a new environment.
async fn report_ignored_settings(turn: &Turn, environment: &SessionEnvironment) {
    if let Some((title, description)) = environment.loaded.ignored_notice(environment.cwd()) {
        turn.emit(Body::notice(Severity::Warning, title, description)).await;
    }
    for path in &environment.dropped {
        let description = format!("{} is not used: a symlink of the project leads to it", path.display());
        turn.emit(Body::notice(Severity::Warning, "A directory of sandbox.writable is ignored", description)).await;
    }
    if !environment.skipped.is_empty() {
        let mut description = environment.skipped.iter().take(SKIPPED_SHOWN_MAX).cloned().collect::<Vec<_>>().join("; ");
        if let more @ 1.. = environment.skipped.len().saturating_sub(SKIPPED_SHOWN_MAX) {
            description += &format!("; and {more} more");
        }
        turn.emit(Body::notice(
            Severity::Warning,
            "Agent definitions, commands or skills, or parts of them, are skipped",
            description,
        ))
        .await;
    }
}
