//! AWS Signature Version 4 for requests
//! (docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).

use std::time::{SystemTime, UNIX_EPOCH};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Request;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, InvalidHeaderValue};
use ring::{digest, hmac};

use super::aws::AwsKeys;
use crate::event::timestamp;
use crate::hex::hex;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The characters that are encoded in the canonical path: all but the unreserved ones and `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Adds the headers of the signature to `request`. Headers that are added later are not signed.
pub fn sign(keys: &AwsKeys, service: &str, time: SystemTime, request: &mut Request) -> Result<(), InvalidHeaderValue> {
    let time = compact(time);
    let date = &time[..8];
    request.headers_mut().insert("x-amz-date", HeaderValue::from_str(&time)?);
    if let Some(token) = &keys.session_token {
        let mut token = HeaderValue::from_str(token)?;
        token.set_sensitive(true);
        request.headers_mut().insert("x-amz-security-token", token);
    }
    let (canonical, signed_headers) = canonical_request(request);
    let scope = format!("{date}/{}/{service}/aws4_request", keys.region);
    let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hash(canonical.as_bytes()));
    let mut key = mac(format!("AWS4{}", keys.secret_key).as_bytes(), date);
    for part in [&keys.region, service, "aws4_request"] {
        key = mac(key.as_ref(), part);
    }
    let signature = hex(mac(key.as_ref(), &text).as_ref());
    let credential = &keys.access_key;
    let value = format!("{ALGORITHM} Credential={credential}/{scope}, SignedHeaders={signed_headers}, Signature={signature}");
    let mut value = HeaderValue::from_str(&value)?;
    value.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, value);
    Ok(())
}

/// Returns the canonical request, and the names of the signed headers: `host`, `content-type` and
/// all `x-amz-…` headers.
fn canonical_request(request: &Request) -> (String, String) {
    let url = request.url();
    let host = match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    let is_signed = |name: &HeaderName| name == "content-type" || name.as_str().starts_with("x-amz-");
    let values = request.headers().iter().filter(|(name, _)| is_signed(name));
    let mut headers: Vec<(&str, String)> =
        values.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()).trim().to_owned())).collect();
    headers.push(("host", host));
    headers.sort();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let mut query: Vec<String> = url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
    query.sort();
    let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
    // The path of the URL is encoded already; the canonical path is encoded twice.
    let path = utf8_percent_encode(url.path(), PATH);
    let canonical = format!("{}\n{path}\n{}\n{lines}\n{names}\n{}", request.method(), query.join("&"), hash(body));
    (canonical, names)
}

/// Returns a query parameter in canonical form: with an equals sign, even without a value.
fn pair(pair: &str) -> String {
    if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") }
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

/// Returns the SHA-256 digest in hexadecimal.
fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Formats a time as `YYYYMMDDTHHMMSSZ` (ISO 8601).
fn compact(time: SystemTime) -> String {
    let ms = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let extended = timestamp(ms);
    let seconds = extended.split('.').next().unwrap_or_default();
    seconds.replace(['-', ':'], "") + "Z"
}
