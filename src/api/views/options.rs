//! Session settings that clients can change: mode, model and thinking. ACP's `modes` and the option
//! `mode` set the same value.

use std::collections::BTreeMap;

use schemars::Schema;
use serde_json::{Value, json};

use crate::api::dispatch::app::App;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::Client;
use crate::api::dispatch::convert::session_id;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::error::{Error, Result};
use crate::event::{Body, SessionChange};
use crate::options::{MODES, Mode, OptionValue, Thinking};
use crate::protocol::acp;
use crate::session::{AgentOption, Session, SessionState};

/// Lists all modes, with the current mode of a session.
pub(crate) fn modes(state: &SessionState) -> acp::SessionModeState {
    modes_with(&state.mode.to_string())
}

/// Lists all modes, with `current` as the current mode.
pub(crate) fn modes_with(current: &str) -> acp::SessionModeState {
    let available = MODES.iter().map(|row| acp::SessionMode::new(row.id, row.name).description(row.description.to_string()));
    acp::SessionModeState::new(current.to_string(), available.collect())
}

/// Returns all options with their current values. Does not query model servers: the models come
/// from the cached lists, and a local server's model is listed only after a turn has found it.
/// `client` is the client that receives the options.
pub(crate) async fn config_options(app: &App, client: &Client, session: &Session) -> Vec<acp::SessionConfigOption> {
    let (mode, model, thinking) =
        session.log.state(|state| (state.mode.clone(), state.settings.model.clone(), state.settings.thinking.clone()));
    if session.log.state(|state| state.settings.agent.is_some()) {
        let agent_options = agent_options(session, client.supports_boolean_options());
        return std::iter::once(mode_option(&mode.to_string())).chain(agent_options).collect();
    }
    let loaded = app.services.settings(&session.log.state(|state| state.cwd.clone()));
    // Invalid project settings are replaced by the user settings here; the error is reported when a
    // turn starts.
    let settings = &loaded.as_ref().unwrap_or(&app.services.user).settings;
    let models = &app.services.models;
    let model = match model {
        Some(model) => model,
        None => models.known_default(settings).unwrap_or_default(),
    };
    let thinking = thinking.or(app.services.overrides.thinking.map(OptionValue::Known)).unwrap_or_default();
    let model_choices = app.services.model_choices(settings, &model).await.into_iter().map(|choice| {
        let name = choice.name().to_owned();
        acp::SessionConfigSelectOption::new(choice.id, name)
    });
    let levels = Thinking::ALL.map(|level| acp::SessionConfigSelectOption::new(level.as_str(), level.name()));
    let mut options = vec![mode_option(&mode.to_string())];
    if !model.is_empty() {
        options.push(
            acp::SessionConfigOption::select("model", "Model", model, model_choices.collect::<Vec<_>>())
                .category(acp::SessionConfigOptionCategory::Model),
        );
    }
    options.push(
        acp::SessionConfigOption::select("thinking", "Thinking", thinking.to_string(), levels.to_vec())
            .description("How much the model thinks before it answers".to_string())
            .category(acp::SessionConfigOptionCategory::ThoughtLevel),
    );
    options
}

fn mode_option(current: &str) -> acp::SessionConfigOption {
    let choices =
        MODES.iter().map(|row| acp::SessionConfigSelectOption::new(row.id, row.name).description(row.description.to_string()));
    acp::SessionConfigOption::select("mode", "Mode", current.to_string(), choices.collect::<Vec<_>>())
        .description("What the agent may do without asking".to_string())
        .category(acp::SessionConfigOptionCategory::Mode)
}

/// Prefix of the ids of a hosted agent's options.
const AGENT_PREFIX: &str = "agent.";

/// Returns the options of the session's hosted agent, if it is running. Its mode besides nuncio's
/// has no category, so that clients do not confuse the two. With `booleans`, options that are on or
/// off are boolean options; else they have the values `true` and `false`.
fn agent_options(session: &Session, booleans: bool) -> Vec<acp::SessionConfigOption> {
    let option = |option: AgentOption| {
        let choices = option.choices.iter().map(|choice| {
            acp::SessionConfigSelectOption::new(choice.value.clone(), choice.name.clone()).description(choice.description.clone())
        });
        let (id, name) = (format!("{AGENT_PREFIX}{}", option.id), format!("Agent: {}", option.name));
        let shown = match option.switch().filter(|_| booleans) {
            Some(is_on) => acp::SessionConfigOption::boolean(id, name, is_on),
            None => acp::SessionConfigOption::select(id, name, option.current.clone(), choices.collect::<Vec<_>>()),
        };
        match option.category.as_deref() {
            Some("model") => shown.category(acp::SessionConfigOptionCategory::Model),
            Some("thought_level") => shown.category(acp::SessionConfigOptionCategory::ThoughtLevel),
            _ => shown,
        }
    };
    session.agent_options().into_iter().map(option).collect()
}

/// Creates the event that sets an option of a hosted agent, from its next turn on. Fails if the
/// option or the value is unknown.
fn agent_option_event(session: &Session, id: &str, value: String) -> Result<Body> {
    let options = session.agent_options();
    let Some(option) = options.iter().find(|option| option.id == id) else {
        let hint = match options.is_empty() {
            true => "the options are known after the agent's first turn has started".into(),
            false => format!("options: {}", options.iter().map(|option| option.id.as_str()).collect::<Vec<_>>().join(", ")),
        };
        return Err(Error::invalid_params(format!("configId: unknown option {AGENT_PREFIX}{id}")).hint(hint));
    };
    if !option.choices.iter().any(|choice| choice.value == value) {
        let choices: Vec<&str> = option.choices.iter().map(|choice| choice.value.as_str()).collect();
        return Err(Error::invalid_params(format!("value: unknown value {value}")).hint(format!("values: {}", choices.join(", "))));
    }
    let agent_options = BTreeMap::from([(id.to_owned(), value)]);
    Ok(Body::SessionUpdated { change: SessionChange { agent_options, ..SessionChange::default() } })
}

fn mode_event(mode: &str, field: &str) -> Result<Body> {
    let mode: Mode = mode.parse().map_err(|error| in_field(field, error))?;
    Ok(Body::ModeChanged { mode: OptionValue::Known(mode) })
}

fn in_field(field: &str, error: Error) -> Error {
    Error { message: format!("{field}: {}", error.message), ..error }
}

pub(crate) struct SetMode;

impl Method for SetMode {
    type Params = acp::SetSessionModeRequest;
    type Result = acp::SetSessionModeResponse;
    const NAME: &'static str = "session/set_mode";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "modeId": "accept-edits"}"#;
    const ROUTES: &'static [Route] = &[Route::put("/v1/sessions/{sessionId}/mode")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Sets what the agent may do without asking, from the next tool call on.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let body = mode_event(&params.mode_id.0, "modeId")?;
        let session = cx.owned(&session_id(&params.session_id)).await?;
        let seq = session.change(body).await?;
        Ok(Reply::new(acp::SetSessionModeResponse::new()).after(session.log.id.clone(), seq))
    }
}

pub(crate) struct SetConfigOption;

impl Method for SetConfigOption {
    type Params = acp::SetSessionConfigOptionRequest;
    type Result = acp::SetSessionConfigOptionResponse;
    const NAME: &'static str = "session/set_config_option";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "configId": "thinking", "value": "high"}"#;
    const ROUTES: &'static [Route] = &[Route::put("/v1/sessions/{sessionId}/config/{configId}")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Sets the option `mode`, `model` or `thinking`. Returns all options.";

    /// Declares `value` as a string, because all options have string values.
    fn rest_schema(params: &mut Schema, _: &mut Schema) {
        params.remove("anyOf");
        if let Some(Value::Object(all)) = params.get_mut("properties") {
            all.insert("value".into(), json!({ "type": "string" }));
        }
        if let Some(Value::Array(required)) = params.get_mut("required") {
            required.push("value".into());
        }
    }

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let value = match &params.value {
            acp::SessionConfigOptionValue::ValueId { value } => value.0.to_string(),
            acp::SessionConfigOptionValue::Boolean { value } => value.to_string(),
            _ => return Err(Error::invalid_params("value: must be one of the option's values")),
        };
        let session = cx.owned(&session_id(&params.session_id)).await?;
        let body = match &*params.config_id.0 {
            "mode" => mode_event(&value, "value")?,
            "model" => {
                let (cwd, hosted) = session.log.state(|state| (state.cwd.clone(), state.settings.agent.is_some()));
                if !hosted {
                    cx.app.services.check_model(&value, &cwd).map_err(|error| in_field("value", error))?;
                }
                Body::SessionUpdated { change: SessionChange { model: Some(value), ..SessionChange::default() } }
            }
            "thinking" => {
                let level: Thinking = value.parse().map_err(|error| in_field("value", error))?;
                Body::SessionUpdated {
                    change: SessionChange { thinking: Some(OptionValue::Known(level)), ..SessionChange::default() },
                }
            }
            other => match other.strip_prefix(AGENT_PREFIX) {
                Some(id) => agent_option_event(&session, id, value)?,
                None => {
                    let unknown = Error::invalid_params(format!("configId: unknown option {other}"));
                    return Err(unknown.hint("options: mode, model, thinking"));
                }
            },
        };
        let seq = session.change(body).await?;
        let response = acp::SetSessionConfigOptionResponse::new(config_options(&cx.app, &cx.client, &session).await);
        Ok(Reply::new(response).after(session.log.id.clone(), seq))
    }
}
