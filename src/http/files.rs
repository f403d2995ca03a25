//! Files over REST: uploads are forms and downloads are bytes. The methods themselves use base64.

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use axum::http::header::{self, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Returns true if the body is a form with files (RFC 7578).
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    media.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case("multipart/form-data")
}

/// Reads the single file of a form into the params `name`, `mimeType` and `data`.
pub(crate) async fn form(headers: HeaderMap, bytes: Bytes) -> Result<Map<String, Value>> {
    let wrong = |error: &dyn std::fmt::Display| Error::invalid_params(format!("the form: {error}"));
    let mut request = Request::new(Body::from(bytes));
    *request.headers_mut() = headers;
    // Disable axum's size limit: the caller has checked the size.
    DefaultBodyLimit::disable().apply(&mut request);
    let mut parts = Multipart::from_request(request, &()).await.map_err(|error| wrong(&error.body_text()))?;
    let mut file = Map::new();
    while let Some(part) = parts.next_field().await.map_err(|error| wrong(&error.body_text()))? {
        let Some(name) = part.file_name().map(String::from) else {
            let field = part.name().unwrap_or("").to_string();
            return Err(wrong(&format!("{field}: unknown field; the form must contain exactly one file")));
        };
        if !file.is_empty() {
            return Err(wrong(&"contains more than one file"));
        }
        file.insert("name".into(), name.into());
        file.extend(part.content_type().map(|kind| ("mimeType".to_string(), kind.into())));
        let bytes = part.bytes().await.map_err(|error| wrong(&error.body_text()))?;
        file.insert("data".into(), STANDARD.encode(bytes).into());
    }
    if file.is_empty() { Err(wrong(&"contains no file")) } else { Ok(file) }
}

/// Creates a download response with the file in `value`. The headers prevent browsers from
/// rendering the file as a page.
pub(crate) fn file(value: &Value) -> Option<Response> {
    let (kind, data) = (value["mimeType"].as_str()?, value["data"].as_str()?);
    let bytes = STANDARD.decode(data).ok()?;
    let kind = HeaderValue::from_str(kind).ok()?;
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ];
    Some((headers, bytes).into_response())
}
