//! What comes first on a connection: who we are, and whether a model can be used.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::method::{Method, Reply, Route};
use super::{Cx, Role};
use crate::error::{Error, Kind, Result};
use crate::model::catalog::PROVIDERS;
use crate::protocol::{ProtocolVersion, acp};

/// Ways to authenticate. Keys of models come from the environment, a file or a command, never over
/// the wire: both check what is there.
const AUTH_METHODS: [&str; 2] = ["environment", "settings"];

/// ACP's response, with the authentication method type `env_var` that its crate has no variant for
/// (agentclientprotocol.com/rfds/auth-methods).
pub struct Introduction(acp::InitializeResponse);

impl Serialize for Introduction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut response = serde_json::to_value(&self.0).map_err(S::Error::custom)?;
        response["authMethods"] = auth_methods();
        response.serialize(serializer)
    }
}

impl JsonSchema for Introduction {
    fn schema_name() -> Cow<'static, str> {
        acp::InitializeResponse::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        acp::InitializeResponse::json_schema(generator)
    }
}

fn auth_methods() -> Value {
    let variables = PROVIDERS.iter().filter(|provider| !provider.local).filter_map(|provider| provider.key_env.first());
    let variables: Vec<Value> = variables.map(|name| json!({ "name": name, "optional": true })).collect();
    let [environment, settings] = AUTH_METHODS;
    json!([
        {
            "id": environment,
            "type": "env_var",
            "name": "API key in the environment",
            "description": "Uses the model of the first provider whose key is set",
            "vars": variables,
        },
        {
            "id": settings,
            "type": "agent",
            "name": "Settings of nuncio",
            "description": "Uses the model that nuncio's settings name, or that a local server offers",
        },
    ])
}

pub struct Initialize;

impl Method for Initialize {
    type Params = acp::InitializeRequest;
    type Result = Introduction;
    const NAME: &'static str = "initialize";
    const ROUTE: Option<Route> = Some(Route::get("/v1/info"));
    const ROLE: Role = Role::Observer;
    const DOC: &'static str = "Says what both sides can do (ACP initialization); may be repeated.";

    fn rest_schema(params: &mut Schema, _: &mut Schema) {
        *params = json_schema!({ "type": "object", "additionalProperties": false });
    }

    /// Whoever asks over REST speaks the one version there is, and can do what HTTP can.
    fn from_rest(_: &Cx, params: &mut Map<String, Value>) {
        *params = Map::from_iter([("protocolVersion".to_string(), 1.into())]);
    }

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        cx.client.introduce(params.client_capabilities);
        let session = acp::SessionCapabilities::new()
            .list(acp::SessionListCapabilities::new())
            .delete(acp::SessionDeleteCapabilities::new())
            .additional_directories(acp::SessionAdditionalDirectoriesCapabilities::new())
            .resume(acp::SessionResumeCapabilities::new())
            .close(acp::SessionCloseCapabilities::new());
        let capabilities = acp::AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(acp::PromptCapabilities::new().image(true).embedded_context(true))
            .session_capabilities(session)
            .auth(acp::AgentAuthCapabilities::new().logout(acp::LogoutCapabilities::new()));
        // The only version there is; a client that wants another one decides itself whether it can do with this.
        let response = acp::InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .meta(acp::Meta::from_iter([("nuncio".to_string(), json!({ "fork": true }))]))
            .agent_info(acp::Implementation::new("nuncio", env!("CARGO_PKG_VERSION")).title("nuncio".to_string()));
        Ok(Reply::new(Introduction(response)))
    }
}

pub struct Authenticate;

impl Method for Authenticate {
    type Params = acp::AuthenticateRequest;
    type Result = acp::AuthenticateResponse;
    const NAME: &'static str = "authenticate";
    const ROLE: Role = Role::Observer;
    const EXAMPLE: &'static str = r#"{"methodId": "environment"}"#;
    const DOC: &'static str = "Checks that a model can be used with what the settings and the environment hold.";

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        if !AUTH_METHODS.contains(&&*params.method_id.0) {
            return Err(Error::invalid_params(format!("methodId: there is no method {}", params.method_id.0))
                .details(json!({ "known": AUTH_METHODS })));
        }
        let agents = &cx.nuncio.agents;
        let settings = &agents.user.settings;
        let usable = match agents.models.default_id(settings).await {
            Ok(id) => agents.models.open(&id, settings).await.map(drop),
            Err(error) => Err(error),
        };
        usable.map_err(|error| {
            let told = Error::new(Kind::Unauthenticated, error.message);
            match error.hint {
                Some(hint) => told.hint(hint),
                None => told,
            }
        })?;
        cx.client.log_out(false);
        Ok(Reply::new(acp::AuthenticateResponse::new()))
    }
}

pub struct Logout;

impl Method for Logout {
    type Params = acp::LogoutRequest;
    type Result = acp::LogoutResponse;
    const NAME: &'static str = "logout";
    const ROLE: Role = Role::Observer;
    const DOC: &'static str = "Refuses new sessions and prompts on this connection until it authenticates again.";

    async fn call(cx: Cx, _params: Self::Params) -> Result<Reply<Self::Result>> {
        cx.client.log_out(true);
        Ok(Reply::new(acp::LogoutResponse::new()))
    }
}
