//! The login state: the credentials of the default model.

use super::models::Models;
use crate::config::Settings;

/// The credentials of the default model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoginState {
    /// The model's provider has credentials. They may be invalid.
    HasCredentials {
        provider: String,
        /// The environment variable, setting or file that contains them.
        origin: String,
    },
    /// The model needs no credentials, for example on a local server.
    NotRequired,
    /// There is no model, or its provider requires credentials and has none.
    Missing,
}

impl Models {
    /// Returns the login state. Sends no request to a model provider; local servers may be probed.
    pub(crate) async fn login_state(&self, settings: &Settings) -> LoginState {
        let Ok(id) = self.default_id(settings).await else { return LoginState::Missing };
        if id.starts_with("scripted:") || self.registered(&id).is_some() {
            return LoginState::NotRequired;
        }
        let Ok(endpoint) = self.endpoint(&id, settings).await else { return LoginState::Missing };
        match (endpoint.credentials.origin(), id.split_once('/')) {
            (Some(origin), Some((provider, _))) => LoginState::HasCredentials { provider: provider.into(), origin: origin.into() },
            _ => LoginState::NotRequired,
        }
    }
}
