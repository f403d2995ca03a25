//! Signatures of AWS.

use std::time::{Duration, UNIX_EPOCH};

use nuncio::internal::model::AwsKeys;
use nuncio::internal::model::sigv4::sign;
use reqwest::{Method, Request, Url};

/// The time of AWS's test suite: 2015-08-30T12:36:00Z.
const TIME: Duration = Duration::from_secs(1_440_938_160);

fn keys(token: Option<&str>) -> AwsKeys {
    AwsKeys {
        access_key: "AKIDEXAMPLE".into(),
        secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        session_token: token.map(str::to_owned),
        region: "us-east-1".into(),
        origin: String::new(),
    }
}

fn sign_example(method: Method, url: &str, service: &str, token: Option<&str>, body: Option<(&str, &'static str)>) -> String {
    let mut request = Request::new(method, Url::parse(url).expect("a URL"));
    if let Some((kind, body)) = body {
        request.headers_mut().insert("content-type", kind.parse().expect("a value"));
        *request.body_mut() = Some(body.into());
    }
    sign(&keys(token), service, UNIX_EPOCH + TIME, &mut request).expect("valid headers");
    let value = request.headers()["authorization"].to_str().expect("text").to_owned();
    let scope = format!("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, SignedHeaders=");
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
    let url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-5-sonnet-20241022-v2%3A0/converse-stream";
    let signature = "534a6d226b45f8064ff718bf92ef8755002d0af529103600a4d41f31a6c57764";
    let expected = format!("content-type;host;x-amz-date;x-amz-security-token {signature}");
    let body = Some(("application/json", "{}"));
    assert_eq!(sign_example(Method::POST, url, "bedrock", Some("session"), body), expected);
}

#[test]
fn leap_days_are_dates() {
    let at = |seconds| {
        let mut request = Request::new(Method::GET, Url::parse("https://example.amazonaws.com/").expect("a URL"));
        sign(&keys(None), "service", UNIX_EPOCH + Duration::from_secs(seconds), &mut request).expect("valid headers");
        request.headers()["x-amz-date"].to_str().expect("text").to_owned()
    };
    assert_eq!(at(0), "19700101T000000Z");
    assert_eq!(at(1_709_210_096), "20240229T123456Z");
    assert_eq!(at(4_102_444_799), "20991231T235959Z");
}
