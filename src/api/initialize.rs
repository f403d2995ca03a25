//! `initialize`, `authenticate` and `logout`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::status::NoParams;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{MetaFields, Method, NoResult, Reply};
use crate::api::dispatch::route::Route;
use crate::error::{Error, Kind, Result};
use crate::protocol::{ProtocolVersion, acp};

/// Ids of the authentication methods that `authenticate` takes. API keys come from the environment,
/// a file or a command and are never sent over the wire. With either method, it only checks that a
/// model is usable. Clients may remember `environment`, which is no longer offered: its type
/// `env_var` is unknown to the registry of ACP.
const AUTH_METHODS: [&str; 2] = ["environment", "settings"];

/// ACP's response to `initialize`, with the authentication method type `terminal`, which the ACP
/// crate does not define (agentclientprotocol.com/rfds/auth-methods).
pub(crate) struct InitializeResult {
    response: acp::InitializeResponse,
    /// The client can start the agent in a terminal.
    terminal: bool,
}

impl Serialize for InitializeResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let response = serde_json::to_value(&self.response).map_err(S::Error::custom)?;
        let mut result = serializer.serialize_map(None)?;
        for (name, value) in response.as_object().into_iter().flatten() {
            match name.as_str() {
                "authMethods" => result.serialize_entry(name, auth_methods(self.terminal))?,
                _ => result.serialize_entry(name, value)?,
            }
        }
        result.serialize_entry("fork", &true)?;
        result.end()
    }
}

impl JsonSchema for InitializeResult {
    fn schema_name() -> Cow<'static, str> {
        acp::InitializeResponse::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        acp::InitializeResponse::json_schema(generator)
    }
}

/// An authentication method of ACP.
#[derive(Serialize)]
struct AuthMethod {
    id: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'static [&'static str]>,
}

/// The authentication methods. Only a client that can start the agent in a terminal receives the
/// last one.
const METHODS: [AuthMethod; 2] = [
    AuthMethod {
        id: AUTH_METHODS[1],
        kind: "agent",
        name: "nuncio settings",
        description: "Uses the model of nuncio's settings, of the first provider with a key, or of a local server",
        args: None,
    },
    AuthMethod {
        id: "login",
        kind: "terminal",
        name: "API key",
        description: "Asks for the API key of a provider, and stores it",
        args: Some(&["login"]),
    },
];

/// Returns the authentication methods that a client receives.
fn auth_methods(terminal: bool) -> &'static [AuthMethod] {
    if terminal { &METHODS } else { &METHODS[..1] }
}

/// The announcement of a client. REST clients announce nothing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct ClientIntroduction {
    #[schemars(skip)]
    client_capabilities: acp::ClientCapabilities,
    /// False if a program answers permission requests.
    #[schemars(skip)]
    interactive: Value,
    /// True if the turns of the client go on when its connection has ended.
    #[schemars(skip)]
    finish_turns: Value,
}

pub(crate) struct Initialize;

impl Method for Initialize {
    type Params = ClientIntroduction;
    type Result = InitializeResult;
    const NAME: &'static str = "initialize";
    const ROUTES: &'static [Route] = &[Route::get("/v1/info")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Exchanges the capabilities of client and server (ACP initialization); may be repeated.";

    const META: MetaFields = MetaFields { params: &["interactive", "finishTurns"], result: &["fork"], refuses_others: false };

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        let terminal = params.client_capabilities.auth.terminal;
        cx.client.set_interactive(params.interactive.as_bool().unwrap_or(true));
        cx.client.set_finishes_turns(params.finish_turns.as_bool().unwrap_or(false));
        cx.client.introduce(params.client_capabilities);
        let override_mode =
            acp::SessionSystemPromptModeCapabilities::new().override_(acp::SessionSystemPromptOverrideCapabilities::new());
        let session = acp::SessionCapabilities::new()
            .list(acp::SessionListCapabilities::new())
            .delete(acp::SessionDeleteCapabilities::new())
            .additional_directories(acp::SessionAdditionalDirectoriesCapabilities::new())
            .resume(acp::SessionResumeCapabilities::new())
            .close(acp::SessionCloseCapabilities::new())
            .fork(acp::SessionForkCapabilities::new())
            .archive(acp::SessionArchiveCapabilities::new())
            .title(acp::SessionTitleCapabilities::new())
            .system_prompt(acp::SessionSystemPromptCapabilities::new().mode(override_mode));
        let auth =
            acp::AgentAuthCapabilities::new().logout(acp::LogoutCapabilities::new()).status(acp::AuthStatusCapabilities::new());
        let capabilities = acp::AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(acp::PromptCapabilities::new().image(true).audio(true).embedded_context(true))
            .mcp_capabilities(acp::McpCapabilities::new().http(cfg!(feature = "mcp")))
            .session_capabilities(session)
            .auth(auth);
        // Return the only supported version. A client that requested another version decides
        // whether to continue.
        let response = acp::InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(acp::Implementation::new("nuncio", env!("CARGO_PKG_VERSION")).title("nuncio".to_string()));
        Ok(Reply::new(InitializeResult { response, terminal }))
    }
}

/// The authentication method to check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AuthenticateParams {
    method_id: String,
}

pub(crate) struct Authenticate;

impl Method for Authenticate {
    type Params = AuthenticateParams;
    type Result = NoResult;
    const NAME: &'static str = "authenticate";
    const ROLE: ClientRole = ClientRole::Observer;
    const EXAMPLE: &'static str = r#"{"methodId": "environment"}"#;
    const DOC: &'static str = "Checks that a model is usable with the current settings and environment.";

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        if !AUTH_METHODS.contains(&&*params.method_id) {
            return Err(Error::invalid_params(format!("methodId: unknown method {}", params.method_id))
                .details(json!({ "known": AUTH_METHODS })));
        }
        let services = &cx.app.services;
        let settings = &services.user.settings;
        let usable = match services.models.default_id(settings).await {
            Ok(id) => services.models.open(&id, settings).await.map(drop),
            Err(error) => Err(error),
        };
        usable.map_err(|error| {
            let unusable = Error::new(Kind::Unauthenticated, error.message);
            match error.hint {
                Some(hint) => unusable.hint(hint),
                None => unusable,
            }
        })?;
        cx.client.log_out(false);
        Ok(Reply::new(NoResult {}))
    }
}

pub(crate) struct Logout;

impl Method for Logout {
    type Params = NoParams;
    type Result = NoResult;
    const NAME: &'static str = "logout";
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Refuses new sessions and prompts on this connection until it authenticates again.";

    async fn call(cx: CallContext, _params: NoParams) -> Result<Reply<NoResult>> {
        cx.client.log_out(true);
        Ok(Reply::new(NoResult {}))
    }
}
