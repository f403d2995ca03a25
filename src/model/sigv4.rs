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
pub(crate) fn sign(keys: &AwsKeys, service: &str, time: SystemTime, request: &mut Request) -> Result<(), InvalidHeaderValue> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::{Method, Url};

    use super::*;

    /// The time of AWS's test suite: 2015-08-30T12:36:00Z.
    const TIME: Duration = Duration::from_secs(1_440_938_160);

    fn sign_example(method: Method, url: &str, service: &str, token: Option<&str>, body: Option<(&str, &'static str)>) -> String {
        let keys = AwsKeys {
            access_key: "AKIDEXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: token.map(str::to_owned),
            region: "us-east-1".into(),
            origin: String::new(),
        };
        let mut request = Request::new(method, Url::parse(url).expect("a URL"));
        if let Some((kind, body)) = body {
            request.headers_mut().insert("content-type", kind.parse().expect("a value"));
            *request.body_mut() = Some(body.into());
        }
        sign(&keys, service, UNIX_EPOCH + TIME, &mut request).expect("valid headers");
        let value = request.headers()["authorization"].to_str().expect("text").to_owned();
        let scope = format!("{ALGORITHM} Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, SignedHeaders=");
        value.strip_prefix(&scope).expect("the scope").replace(", Signature=", " ")
    }

    /// Uses the requests and signatures of AWS's test suite (aws-sig-v4-test-suite).
    #[test]
    fn signatures_are_those_of_the_test_suite() {
        let check = |method, path: &str, body, expected: &str| {
            let url = format!("https://example.amazonaws.com{path}");
            assert_eq!(sign_example(method, &url, "service", None, body), expected, "{path}");
        };
        let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        check(Method::GET, "/", None, &format!("host;x-amz-date {vanilla}"));
        let post = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        check(Method::POST, "/", None, &format!("host;x-amz-date {post}"));
        let ordered = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500";
        check(Method::GET, "/?Param2=value2&Param1=value1", None, &format!("host;x-amz-date {ordered}"));
        let form = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        let body = Some(("application/x-www-form-urlencoded", "Param1=value1"));
        check(Method::POST, "/", body, &format!("content-type;host;x-amz-date {form}"));
    }

    /// Expects the signature that botocore 1.44.5 creates for the same request.
    #[test]
    fn encoded_path_is_encoded_again_and_token_is_signed() {
        let url =
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-5-sonnet-20241022-v2%3A0/converse-stream";
        let signature = "534a6d226b45f8064ff718bf92ef8755002d0af529103600a4d41f31a6c57764";
        let expected = format!("content-type;host;x-amz-date;x-amz-security-token {signature}");
        let body = Some(("application/json", "{}"));
        assert_eq!(sign_example(Method::POST, url, "bedrock", Some("session"), body), expected);
    }

    #[test]
    fn leap_days_are_dates() {
        let at = |seconds| compact(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "19700101T000000Z");
        assert_eq!(at(1_709_210_096), "20240229T123456Z");
        assert_eq!(at(4_102_444_799), "20991231T235959Z");
    }
}
