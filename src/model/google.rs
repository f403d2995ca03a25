//! Accounts of Google Cloud and their access tokens: application default credentials
//! (docs.cloud.google.com/docs/authentication/application-default-credentials).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::CONTENT_TYPE;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::json;

use super::error::{Cause, ModelError, Retry};
use super::limited_body::{self, LimitedBody, MissingPart};
use super::variables::{Variables, set};
use crate::limits::MODEL_ERROR_CHARS_MAX;
use crate::web::causes;
use crate::workspace;

/// How long the request for an access token of a cloud account may take.
const CLOUD_TOKEN: Duration = Duration::from_secs(15);
/// Maximum size of the answer with an access token, in bytes.
const CLOUD_TOKEN_BYTES_MAX: usize = 64 << 10;
/// How long before its expiry an access token is replaced.
const CLOUD_TOKEN_EARLY: Duration = Duration::from_secs(240);

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const HINT: &str = "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS to a key file";

/// An account and its current access token. Secrets are never displayed.
pub struct GoogleAccount {
    source: Source,
    /// The file or server that the credentials come from.
    pub(super) origin: String,
    token: Mutex<Option<Token>>,
    /// Held while a token is requested, so that concurrent requests share it.
    refresh: tokio::sync::Mutex<()>,
}

#[derive(Clone, PartialEq)]
struct Token {
    text: String,
    expires: Instant,
}

/// How access tokens are obtained.
#[derive(PartialEq)]
enum Source {
    File(AccountFile),
    /// The metadata server of a virtual machine or a container. Contains the URL of the token.
    Metadata(String),
}

/// A credentials file.
#[derive(Deserialize, PartialEq)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AccountFile {
    ServiceAccount {
        client_email: String,
        private_key: String,
        private_key_id: Option<String>,
        token_uri: Option<String>,
        project_id: Option<String>,
    },
    AuthorizedUser {
        client_id: String,
        client_secret: String,
        refresh_token: String,
        token_uri: Option<String>,
        quota_project_id: Option<String>,
    },
    /// Workload identity federation, impersonation, and future types.
    #[serde(other)]
    Other,
}

/// The answer of a token endpoint or of the metadata server.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: Option<u64>,
}

/// The error of a token endpoint (RFC 6749, section 5.2).
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenError {
    error: String,
    error_description: String,
}

impl TokenError {
    fn text(&self) -> String {
        match (self.error.is_empty(), self.error_description.is_empty()) {
            (true, true) => "the answer has no access token".to_owned(),
            (false, false) => format!("{}: {}", self.error, self.error_description),
            _ => format!("{}{}", self.error, self.error_description),
        }
    }
}

impl GoogleAccount {
    /// Finds the application default credentials: in the file `GOOGLE_APPLICATION_CREDENTIALS`,
    /// else in the file of the gcloud command line, else at the metadata server.
    pub(super) fn find(environment: Variables<'_>) -> Result<GoogleAccount, ModelError> {
        let named = set(environment, "GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
        let directory = || {
            let own = set(environment, "CLOUDSDK_CONFIG").map(PathBuf::from);
            own.or_else(|| Some(PathBuf::from(set(environment, "HOME")?).join(".config/gcloud")))
        };
        let usual = || directory().map(|path| path.join("application_default_credentials.json"));
        let (source, origin) = match named.clone().or_else(usual).map(|path| (read(&path), path)) {
            Some((Ok(file), path)) => (Source::File(file), path.display().to_string()),
            Some((Err(Some(error)), path)) => return Err(failed(format!("reading {}: {error}", path.display()))),
            Some((Err(None), path)) if named.is_some() => return Err(failed(format!("{} does not exist", path.display()))),
            Some((Err(None), _)) | None => {
                let host = set(environment, "GCE_METADATA_HOST").unwrap_or_else(|| "metadata.google.internal".to_owned());
                let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
                (Source::Metadata(url), "the metadata server".to_owned())
            }
        };
        if source == Source::File(AccountFile::Other) {
            let message = format!("{origin}: only the types service_account and authorized_user are supported");
            return Err(failed(message));
        }
        Ok(GoogleAccount { source, origin, token: Mutex::default(), refresh: tokio::sync::Mutex::default() })
    }

    /// Returns the project of the account, if its file names one.
    pub(super) fn project(&self) -> Option<&str> {
        match &self.source {
            Source::File(AccountFile::ServiceAccount { project_id, .. }) => project_id.as_deref(),
            Source::File(AccountFile::AuthorizedUser { quota_project_id, .. }) => quota_project_id.as_deref(),
            Source::File(AccountFile::Other) | Source::Metadata(_) => None,
        }
    }

    /// Returns the project that a user's requests are charged to (header `x-goog-user-project`).
    pub(super) fn quota_project(&self) -> Option<&str> {
        match &self.source {
            Source::File(AccountFile::AuthorizedUser { .. }) => self.project(),
            Source::File(_) | Source::Metadata(_) => None,
        }
    }

    /// Returns whether tokens come from the metadata server, which cannot be reached through a
    /// proxy.
    pub(super) fn is_metadata(&self) -> bool {
        matches!(self.source, Source::Metadata(_))
    }

    fn token_url(&self) -> &str {
        match &self.source {
            Source::File(AccountFile::ServiceAccount { token_uri, .. } | AccountFile::AuthorizedUser { token_uri, .. }) => {
                token_uri.as_deref().unwrap_or(TOKEN_URI)
            }
            Source::File(AccountFile::Other) => TOKEN_URI,
            Source::Metadata(url) => url,
        }
    }

    /// Returns the current token, even if it has expired.
    pub(super) fn last_token(&self) -> Option<String> {
        self.token.lock().as_ref().map(|token| token.text.clone())
    }

    /// Discards `token`, which the API refused, unless it was replaced already.
    pub(super) fn discard(&self, refused: &str) {
        self.token.lock().take_if(|token| token.text == refused);
    }

    fn valid_token(&self) -> Option<String> {
        let token = self.token.lock();
        token.as_ref().filter(|token| token.expires > Instant::now()).map(|token| token.text.clone())
    }

    /// Returns a valid access token, and requests one with `client` if needed.
    pub(super) async fn token(&self, client: &reqwest::Client) -> Result<String, ModelError> {
        if let Some(token) = self.valid_token() {
            return Ok(token);
        }
        let _refresh = self.refresh.lock().await;
        if let Some(token) = self.valid_token() {
            return Ok(token);
        }
        let requested = Instant::now();
        let answer = tokio::time::timeout(CLOUD_TOKEN, self.request(client));
        let answer = answer.await.map_err(|_| failed(format!("access token of {}: timed out", self.origin)))??;
        let lifetime = Duration::from_secs(answer.expires_in.unwrap_or_default()).saturating_sub(CLOUD_TOKEN_EARLY);
        let token = Token { text: answer.access_token.clone(), expires: requested + lifetime };
        *self.token.lock() = Some(token);
        Ok(answer.access_token)
    }

    async fn request(&self, client: &reqwest::Client) -> Result<TokenAnswer, ModelError> {
        let url = self.token_url();
        let request = match self.form()? {
            Some(form) => client.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form),
            None => client.get(url).header("metadata-flavor", "Google"),
        };
        let response = request.send().await.map_err(|error| {
            let error = ModelError::new(Retry::Backoff, format!("access token of {}: {}", self.origin, causes(&error)));
            error.hint(HINT).unreachable()
        })?;
        let status = response.status();
        let LimitedBody { bytes: body, incomplete } = limited_body::read(response, CLOUD_TOKEN_BYTES_MAX).await;
        match incomplete {
            Some(MissingPart::TooLarge) => {
                return Err(failed(format!("access token of {}: the answer is too large", self.origin)));
            }
            Some(MissingPart::Failed(error)) => {
                let message = format!("access token of {}: {}", self.origin, causes(&error));
                return Err(ModelError::new(Retry::Backoff, message).hint(HINT));
            }
            None => {}
        }
        match serde_json::from_slice(&body) {
            Ok(answer) if status.is_success() => Ok(answer),
            _ if status.is_server_error() => {
                let message = format!("access token of {}: HTTP {}", self.origin, status.as_u16());
                Err(ModelError::new(Retry::Backoff, message).hint(HINT))
            }
            _ => {
                // The rest of the body may contain a token.
                let error: TokenError = serde_json::from_slice(&body).unwrap_or_default();
                let text: String = error.text().chars().take(MODEL_ERROR_CHARS_MAX).collect();
                let message = format!("access token of {} (HTTP {}): {text}", self.origin, status.as_u16());
                Err(ModelError::from_cause(Cause::Authentication, message).hint(HINT))
            }
        }
    }

    /// Returns the form of a request for a token, or `None` for the metadata server.
    fn form(&self) -> Result<Option<String>, ModelError> {
        match &self.source {
            Source::File(AccountFile::ServiceAccount { client_email, private_key, private_key_id, .. }) => {
                let claims = json!({ "iss": client_email, "scope": SCOPE, "aud": self.token_url() });
                let assertion = assertion(claims, private_key, private_key_id.as_deref())
                    .ok_or_else(|| failed(format!("{}: the private key is invalid", self.origin)))?;
                Ok(Some(form(&[("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &assertion)])))
            }
            Source::File(AccountFile::AuthorizedUser { client_id, client_secret, refresh_token, .. }) => Ok(Some(form(&[
                ("grant_type", "refresh_token"),
                ("client_id", client_id),
                ("client_secret", client_secret),
                ("refresh_token", refresh_token),
            ]))),
            Source::File(AccountFile::Other) | Source::Metadata(_) => Ok(None),
        }
    }
}

impl PartialEq for GoogleAccount {
    /// Compares only the credentials: equal accounts may have different tokens.
    fn eq(&self, other: &GoogleAccount) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for GoogleAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GoogleAccount(from {})", self.origin)
    }
}

fn failed(message: String) -> ModelError {
    ModelError::new(Retry::Never, message).hint(HINT).unreachable()
}

/// Reads a credentials file. The error is `None` if the file does not exist.
fn read(path: &Path) -> Result<AccountFile, Option<String>> {
    let text =
        workspace::read_small_text(path).map_err(|error| (error.kind() != io::ErrorKind::NotFound).then(|| error.to_string()))?;
    // The message of serde may quote the file.
    serde_json::from_str(&text).map_err(|error| Some(format!("invalid credentials in line {}", error.line())))
}

/// Creates a signed JSON web token, which a service account exchanges for an access token (RFC
/// 7523). Returns `None` if the private key is invalid.
fn assertion(mut claims: serde_json::Value, private_key: &str, key_id: Option<&str>) -> Option<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    claims["iat"] = now.into();
    claims["exp"] = (now + 3600).into();
    let header = json!({ "alg": "RS256", "typ": "JWT", "kid": key_id });
    let content = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()));
    let der = PrivatePkcs8KeyDer::from_pem_slice(private_key.as_bytes()).ok()?;
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()?;
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), content.as_bytes(), &mut signature).ok()?;
    Some(format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Encodes a body of the type `application/x-www-form-urlencoded`.
fn form(fields: &[(&str, &str)]) -> String {
    let field = |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    let fields: Vec<String> = fields.iter().map(field).collect();
    fields.join("&")
}
