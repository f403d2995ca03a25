//! The form in which a request is sent to a provider, without its content and its credentials. With
//! the content, which the log has, it gives the request again: byte for byte as it was sent, by the
//! same version of nuncio.

use serde::{Deserialize, Serialize};

use super::endpoint::Endpoint;
use super::media::Media;
use super::reported::Properties;

/// Stands for a secret.
pub(super) const MASK: &str = "[key]";

/// How a request is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestForm {
    /// The endpoint without secrets.
    pub(super) endpoint: Endpoint,
    /// The header with the credentials, if there is one.
    pub(super) key_header: Option<String>,
    pub(super) media: Media,
    pub(super) reported: Properties,
    /// At most one tool call per message.
    pub(super) single_calls: bool,
    pub(super) refused: RefusedParts,
}

/// The parts of a request that a server refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RefusedParts {
    /// Fields of the body: the names of nested objects.
    pub fields: Vec<Vec<String>>,
    /// Digests of tools.
    pub tools: Vec<String>,
    /// Digests of parts of the conversation that the session does not know yet.
    pub conversation: Vec<String>,
}

impl RequestForm {
    /// Creates the form of a request. `key_header` is the header with the credentials, `media` are
    /// those that the model reads.
    pub(super) fn new(
        endpoint: &Endpoint,
        key_header: Option<&str>,
        media: Media,
        reported: Properties,
        single_calls: bool,
        refused: RefusedParts,
    ) -> RequestForm {
        RequestForm {
            key_header: key_header.map(String::from),
            endpoint: endpoint.without_secrets(MASK),
            media,
            reported,
            single_calls,
            refused,
        }
    }
}
