//! A request in a known form: byte for byte as it was sent, by the same version of nuncio.

use std::sync::Arc;

use super::adapt::{Adapter, ImageConverter};
use super::error::ModelError;
use super::kept_encoding::KeptEncoding;
use super::repair_ladder;
use super::request::Request;
use super::request_form::{MASK, RequestForm};
use super::send;
use super::wire::EncodedRequest;

const MASK_IN_QUERY: &str = "%5Bkey%5D";

/// A request as it was sent.
#[derive(Debug)]
pub struct SentRequest {
    pub url: String,
    /// The headers, with secrets masked.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl SentRequest {
    /// Returns the request with this content as it is sent in this form.
    pub(crate) async fn new(
        form: &RequestForm,
        mut request: Request,
        converter: ImageConverter,
    ) -> Result<SentRequest, ModelError> {
        let (endpoint, adapter) = (&form.endpoint, Adapter::new(converter));
        form.media.fit(&mut request.messages);
        if endpoint.tools.or(form.reported.tools) == Some(false) {
            request.tools = Arc::new([]);
        }
        Arc::make_mut(&mut request.refused).extend(form.refused.conversation.iter().cloned());
        adapter.fit_images(endpoint, &mut request).await;
        let (outgoing, _) = repair_ladder::outgoing(&adapter, endpoint, request, &form.refused);
        let encoded = send::encode(endpoint, &form.reported, &outgoing, &KeptEncoding::default(), form.single_calls)?;
        Ok(SentRequest { headers: headers(form, &encoded), url: encoded.url.replace(MASK_IN_QUERY, MASK), body: encoded.body })
    }
}

/// Returns the headers of a request, with secrets masked.
fn headers(form: &RequestForm, encoded: &EncodedRequest) -> Vec<(String, String)> {
    let fixed = send::HEADERS.iter().chain(&encoded.headers).map(|(name, value)| (name.to_string(), value.to_string()));
    let key = form.key_header.iter().map(|name| (name.clone(), MASK.to_owned()));
    fixed.chain(form.endpoint.headers.iter().cloned()).chain(key).collect()
}
