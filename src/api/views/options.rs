//! Session settings that clients can change: mode, model and thinking. ACP's `modes` and the option
//! `mode` set the same value.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::dispatch::app::App;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::Client;
use crate::api::dispatch::method::{Method, NoResult, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::error::{Error, Result};
use crate::event::{Body, SessionChange};
use crate::id::SessionId;
use crate::options::{MODES, Mode, OptionValue, Thinking};
use crate::protocol::acp;
use crate::session::{AgentOption, Session, SessionState};

/// The options of a session with their values.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionOptions {
    modes: acp::SessionModeState,
    config_options: Vec<acp::SessionConfigOption>,
}

impl SessionOptions {
    /// Returns the options of a session as the caller sees them.
    pub(in crate::api) async fn of(session: &Session, cx: &CallContext) -> SessionOptions {
        let modes = session.log.state(modes);
        SessionOptions { modes, config_options: config_options(&cx.app, &cx.client, session).await }
    }
}

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

/// The mode of a session.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SetModeParams {
    pub session_id: SessionId,
    /// `ask`, `accept-edits`, `plan` or `auto`.
    pub mode_id: String,
}

pub(crate) struct SetMode;

impl Method for SetMode {
    type Params = SetModeParams;
    type Result = NoResult;
    const NAME: &'static str = "session/set_mode";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "modeId": "accept-edits"}"#;
    const ROUTES: &'static [Route] = &[Route::put("/v1/sessions/{sessionId}/mode")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Sets what the agent may do without asking, from the next tool call on.";

    async fn call(cx: CallContext, params: SetModeParams) -> Result<Reply<NoResult>> {
        let body = mode_event(&params.mode_id, "modeId")?;
        let session = cx.owned(&params.session_id).await?;
        let seq = session.change(body).await?;
        Ok(Reply::new(NoResult {}).after(session.log.id.clone(), seq))
    }
}

/// An option of a session, and its value.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetOptionParams {
    pub session_id: SessionId,
    /// `mode`, `model`, `thinking` or an option of the hosted agent.
    pub config_id: String,
    #[serde(deserialize_with = "option_value")]
    #[schemars(with = "String")]
    pub value: String,
}

impl SetOptionParams {
    pub(crate) fn new(session: &SessionId, option: &str, value: &str) -> SetOptionParams {
        SetOptionParams { session_id: session.clone(), config_id: option.into(), value: value.into() }
    }
}

/// Reads the value of an option, which can be a boolean in ACP.
fn option_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    use serde::de::Error as _;
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(value) => Ok(value),
        serde_json::Value::Bool(value) => Ok(value.to_string()),
        _ => Err(D::Error::custom("must be one of the option's values")),
    }
}

/// All options of a session.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OptionList {
    config_options: Vec<acp::SessionConfigOption>,
}

pub(crate) struct SetConfigOption;

impl Method for SetConfigOption {
    type Params = SetOptionParams;
    type Result = OptionList;
    const NAME: &'static str = "session/set_config_option";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "configId": "thinking", "value": "high"}"#;
    const ROUTES: &'static [Route] = &[Route::put("/v1/sessions/{sessionId}/config/{configId}")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Sets the option `mode`, `model` or `thinking`. Returns all options.";

    async fn call(cx: CallContext, params: SetOptionParams) -> Result<Reply<OptionList>> {
        let SetOptionParams { session_id, config_id, value } = params;
        let session = cx.owned(&session_id).await?;
        let body = match &*config_id {
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
        let list = OptionList { config_options: config_options(&cx.app, &cx.client, &session).await };
        Ok(Reply::new(list).after(session.log.id.clone(), seq))
    }
}
