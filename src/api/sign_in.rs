//! `auth/status`.

use super::status::NoParams;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::error::Result;
use crate::protocol::acp;
use crate::runtime::LoginState;

pub(crate) struct AuthStatus;

impl Method for AuthStatus {
    type Params = NoParams;
    type Result = acp::AuthStatusResponse;
    const NAME: &'static str = "auth/status";
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str =
        "Returns whether the default model can be used without a further login, and where its credentials are.";

    async fn call(cx: CallContext, _params: NoParams) -> Result<Reply<Self::Result>> {
        if cx.client.authorized().is_err() {
            return Ok(Reply::new(acp::AuthStatusResponse::new(acp::AuthState::Unauthenticated)));
        }
        let services = &cx.app.services;
        let response = match services.models.login_state(&services.user.settings).await {
            LoginState::HasCredentials { provider, origin } => {
                let account = acp::AuthAccount::new(format!("{provider} ({origin})")).active(true);
                acp::AuthStatusResponse::new(acp::AuthState::Authenticated).accounts(vec![account])
            }
            LoginState::NotRequired => acp::AuthStatusResponse::new(acp::AuthState::NotRequired),
            LoginState::Missing => acp::AuthStatusResponse::new(acp::AuthState::Unauthenticated),
        };
        Ok(Reply::new(response))
    }
}
