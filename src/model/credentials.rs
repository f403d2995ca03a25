//! Credentials for requests to a model provider.

use std::fmt;
use std::sync::Arc;

use super::aws::AwsKeys;
use super::google::GoogleAccount;

/// An API key and its origin. The secret is never displayed, logged or serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub(super) secret: String,
    /// The environment variable or setting that contains the key.
    pub(crate) origin: String,
}

impl ApiKey {
    /// Creates a key without surrounding blanks. `origin` names the environment variable or setting
    /// that the user would change.
    pub fn new(secret: impl Into<String>, origin: impl Into<String>) -> Self {
        Self { secret: secret.into().trim().to_owned(), origin: origin.into() }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(from {})", self.origin)
    }
}

/// The credentials of an endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Credentials {
    #[default]
    None,
    Key(ApiKey),
    /// Keys that sign each request.
    Aws(AwsKeys),
    /// An account whose access tokens are sent. Shared, because it stores the current token.
    Google(Arc<GoogleAccount>),
}

impl From<Option<ApiKey>> for Credentials {
    fn from(key: Option<ApiKey>) -> Self {
        key.map_or(Credentials::None, Credentials::Key)
    }
}

impl Credentials {
    /// Returns the environment variable, setting or file that contains the credentials.
    pub(crate) fn origin(&self) -> Option<&str> {
        match self {
            Credentials::None => None,
            Credentials::Key(key) => Some(&key.origin),
            Credentials::Aws(keys) => Some(&keys.origin),
            Credentials::Google(account) => Some(&account.origin),
        }
    }

    /// Returns the secrets, which must not occur in messages.
    pub(super) fn secrets(&self) -> Vec<String> {
        match self {
            Credentials::None => Vec::new(),
            Credentials::Key(key) => vec![key.secret.clone()],
            Credentials::Aws(keys) => [Some(keys.secret_key.clone()), keys.session_token.clone()].into_iter().flatten().collect(),
            Credentials::Google(account) => account.last_token().into_iter().collect(),
        }
    }
}
