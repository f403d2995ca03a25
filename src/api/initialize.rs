//! What comes first on a connection: who we are, and whether a model can be used.

use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};

use super::method::{Method, Reply, Route};
use super::{Cx, Role};
use crate::error::{Error, Kind, Result};
use crate::protocol::{ProtocolVersion, acp};

/// The one way to authenticate: keys of models come from the environment, a file or a command, never over the wire.
const AUTH_METHOD: &str = "environment";

pub struct Initialize;

impl Method for Initialize {
    type Params = acp::InitializeRequest;
    type Result = acp::InitializeResponse;
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
        let environment = acp::AuthMethodAgent::new(AUTH_METHOD, "API key of the environment").description(
            "Uses the model that the settings name, or that a key of the environment or a local server offers".to_string(),
        );
        // The only version there is; a client that wants another one decides itself whether it can do with this.
        let response = acp::InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .auth_methods(vec![acp::AuthMethod::Agent(environment)])
            .meta(acp::Meta::from_iter([("nuncio".to_string(), json!({ "fork": true }))]))
            .agent_info(acp::Implementation::new("nuncio", env!("CARGO_PKG_VERSION")).title("nuncio".to_string()));
        Ok(Reply::new(response))
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
        if &*params.method_id.0 != AUTH_METHOD {
            return Err(Error::invalid_params(format!("methodId: there is no method {}", params.method_id.0))
                .details(json!({ "known": [AUTH_METHOD] })));
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
