//! Builds the params of a method from a request. Path values override query values, which override
//! body values.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, RawPathParams, Request};
use axum::http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, Uri};
use axum::{RequestExt, body::Bytes};
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use schemars::Schema;
use serde_json::{Map, Value};
use tokio::sync::SemaphorePermit;

use super::state::AppState;
use super::{files, schema};
use crate::api::MethodRow;
use crate::error::{Error, Kind, Result};
use crate::json;
use crate::limits;

/// Timeout for receiving the body of a request.
const HTTP_BODY: Duration = Duration::from_secs(30);
/// Maximum number of JSON values in a request body.
const HTTP_BODY_VALUES_MAX: usize = 1_000_000;

/// Parses a path or query value as the type of its field. A value of the wrong type stays a string,
/// so that the method reports the invalid field.
fn value(schema: &Schema, name: &str, text: String) -> Value {
    let types = schema.get("properties").map(|properties| &properties[name]["type"]);
    let is = |wanted: &str| match types {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => false,
    };
    let read = match () {
        () if is("integer") || is("number") => text.parse().ok().map(Value::Number),
        () if is("boolean") => text.parse().ok().map(Value::Bool),
        () => None,
    };
    read.unwrap_or(Value::String(text))
}

/// Collects the params of a request. Unknown fields and repeated query fields are errors. If `form`
/// is true, the body may be a form with a file.
pub(crate) async fn gather(
    row: &MethodRow,
    state: &AppState,
    mut request: Request,
    schema: &Schema,
    form: bool,
) -> Result<Map<String, Value>> {
    let path = request.extract_parts::<RawPathParams>().await;
    let path = path.map_err(|error| Error::invalid_params(format!("the path: {error}")))?;
    let query = query(request.uri())?;
    let mut params = body(state, request, form).await?;
    row.flatten_params(&mut params)?;
    let mut seen = Map::new();
    for (name, text) in query {
        let value = value(schema, &name, text);
        if seen.insert(name.clone(), value).is_some() {
            return Err(Error::invalid_params(format!("{name}: given twice")));
        }
    }
    params.extend(seen);
    for (name, text) in &path {
        params.insert(name.into(), Value::String(text.into()));
    }
    schema::check(schema.as_value(), &params)?;
    Ok(params)
}

/// Parses the fields of the query, in order.
pub(crate) fn query(uri: &Uri) -> Result<Vec<(String, String)>> {
    let read = Query::<Vec<(String, String)>>::try_from_uri(uri);
    read.map(|Query(pairs)| pairs).map_err(|error| Error::invalid_params(format!("the query: {error}")))
}

/// Reads the fields of a JSON body or a form. Returns no fields if the body is empty.
async fn body(state: &AppState, request: Request, form: bool) -> Result<Map<String, Value>> {
    if request.method() == "GET" || request.method() == "HEAD" {
        return Ok(Map::new());
    }
    let headers = request.headers().clone();
    let bytes = bytes(state, request.into_body()).await?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    if form && files::is_form(&headers) {
        return files::form(headers, bytes).await;
    }
    is_plain_json(&headers)?;
    // Limit the number of values, because parsed values take much more memory than their text.
    let separators = bytes.iter().filter(|byte| b",[{".contains(byte)).count();
    if separators > HTTP_BODY_VALUES_MAX {
        return Err(Error::new(Kind::TooLarge, format!("the body has more than {} values", HTTP_BODY_VALUES_MAX)));
    }
    match json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Error::invalid_params("the body must be a JSON object")),
        Err(error) => Err(Error::new(Kind::ParseError, format!("the body is not JSON: {error}"))),
    }
}

/// Returns true if the `Accept` header names this media type (RFC 9110, section 12.5.1). Weights
/// are ignored.
pub(crate) fn accepts(request: &Request, media: &str) -> bool {
    let named = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|one| one.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(media))
}

/// Returns the media type of the body in lower case, without its parameters.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    given.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Fails with `unsupported_media_type` unless the body is uncompressed JSON.
pub(crate) fn is_plain_json(headers: &HeaderMap) -> Result<()> {
    let wrong = |message: String| Error::new(Kind::UnsupportedMediaType, message).hint("send JSON as application/json");
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        return Err(wrong(format!("content encoding {encoding:?} is not supported")));
    }
    let media = media_type(headers);
    if media == "application/json" || (media.starts_with("application/") && media.ends_with("+json")) {
        return Ok(());
    }
    Err(wrong(if media.is_empty() {
        "the body has no content type".into()
    } else {
        format!("content type {media} is not supported")
    }))
}

/// Reads a whole body, within the limits on the body's size, the time to read it, and the memory
/// used by all bodies.
pub(crate) async fn bytes(state: &AppState, body: Body) -> Result<Bytes> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || Error::new(Kind::TooLarge, format!("the body is longer than {} bytes", limits::HTTP_BODY_BYTES_MAX));
    let announced = body.size_hint().upper().unwrap_or(limits::HTTP_BODY_BYTES_MAX as u64);
    if announced > limits::HTTP_BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let read = async {
        let (mut body, mut bytes) = (body, BytesMut::with_capacity(announced.min(limits::HTTP_BODY_BYTES_SMALL) as usize));
        // Permits are acquired as bytes arrive, so that a slow body holds few permits.
        let mut held: Option<SemaphorePermit<'_>> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Error::invalid_params(format!("the body was interrupted: {error}")))?;
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            if bytes.len() > limits::HTTP_BODY_BYTES_MAX {
                return Err(too_large());
            }
            let wanted = (bytes.len().saturating_sub(limits::HTTP_BODY_BYTES_SMALL as usize) >> 10)
                - held.as_ref().map_or(0, SemaphorePermit::num_permits);
            if wanted > 0 {
                let more = state
                    .bodies
                    .acquire_many(wanted as u32)
                    .await
                    .map_err(|_| Error::internal("internal error: the semaphore of request bodies is closed"))?;
                match &mut held {
                    Some(held) => held.merge(more),
                    None => held = Some(more),
                }
            }
        }
        Ok(bytes.freeze())
    };
    match tokio::time::timeout(HTTP_BODY, read).await {
        Ok(read) => read,
        Err(_) => Err(Error::new(Kind::Timeout, "the body did not arrive in time")),
    }
}
