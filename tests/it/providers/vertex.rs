//! Google Vertex AI: application default credentials, access tokens, and the addresses of models.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use harness::provider::Protocol;
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use harness::provider::session::connect;
use harness::provider::{Exchange, KEY, Provider, ReceivedRequest};
use harness::wires::{WIRES, Wire};
use harness::{CommandResult, Home, text};

fn wire(protocol: Protocol) -> &'static Wire {
    WIRES.iter().find(|wire| wire.protocol == protocol).expect("a wire")
}

fn hello() -> Exchange {
    Exchange::events(wire(Protocol::Gemini).plain)
}

/// The answer of a token endpoint.
fn token(text: &str) -> Exchange {
    Exchange::error(200, &json!({ "access_token": text, "expires_in": 3599, "token_type": "Bearer" }).to_string())
}

/// A home whose model requests go to `server`.
fn home(server: &Provider) -> Home {
    let home = Home::new();
    home.env("GOOGLE_VERTEX_BASE_URL", &server.base_url);
    home.env("GOOGLE_CLOUD_LOCATION", "europe-west4");
    home
}

/// Uses this file as the application default credentials.
fn credentials(home: &Home, file: &Value) {
    let path = home.put("../credentials.json", &file.to_string());
    home.env("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap());
}

fn user(tokens: &Provider) -> Value {
    json!({
        "type": "authorized_user", "client_id": "client", "client_secret": "s+cret", "refresh_token": "1//refresh",
        "quota_project_id": "quota", "token_uri": format!("{}/token", tokens.base_url), "account": "",
    })
}

async fn servers(answers: Vec<Exchange>, tokens: Vec<Exchange>) -> (Provider, Provider) {
    (Provider::start(Protocol::Gemini, answers).await, Provider::start(Protocol::Gemini, tokens).await)
}

async fn ask(home: &Home, model: &str) -> CommandResult {
    home.run(&["run", "--model", model, "-p", "hi"], "").await
}

fn bearer(received: &ReceivedRequest) -> &str {
    received.header("authorization").expect("a token").strip_prefix("Bearer ").expect("a bearer token")
}

const PATH: &str =
    "/v1/projects/mine/locations/europe-west4/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse";

#[tokio::test]
async fn token_of_a_user_is_kept_and_replaced_when_it_is_refused() {
    let refused = Exchange::error(401, r#"{"error":{"code":401,"status":"UNAUTHENTICATED","message":"expired"}}"#);
    let (server, tokens) = servers(vec![refused, hello(), hello()], vec![token("ya29.one"), token("ya29.two")]).await;
    let home = home(&server);
    credentials(&home, &user(&tokens));
    home.env("GOOGLE_CLOUD_PROJECT", "mine");
    home.config("model = \"vertex/gemini-3.8-flash\"\n");
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    for _ in 0..2 {
        let (_, updates) = agent.turn(&session, "hi").await;
        assert_eq!(text(&updates, "agent_message_chunk"), "Hello");
    }
    agent.finish().await;
    let received = server.finish_unchecked().await;
    assert_eq!(received.iter().map(bearer).collect::<Vec<_>>(), ["ya29.one", "ya29.two", "ya29.two"]);
    assert!(received.iter().all(|received| received.path == PATH), "{}", received[0].path);
    assert_eq!(received[0].header("x-goog-user-project"), Some("quota"));
    let requested = tokens.finish_unchecked().await;
    let form = "grant_type=refresh%5Ftoken&client_id=client&client_secret=s%2Bcret&refresh_token=1%2F%2Frefresh";
    assert_eq!((requested[0].path.as_str(), requested[0].text.as_str()), ("/token", form));
}

#[tokio::test]
async fn service_account_signs_an_assertion() {
    let (server, tokens) = servers(vec![hello()], vec![token("ya29.service")]).await;
    let home = home(&server);
    let pem = include_str!("../cases/service-account-key.pem");
    let uri = format!("{}/token", tokens.base_url);
    credentials(
        &home,
        &json!({
            "type": "service_account", "project_id": "mine", "private_key_id": "key-1", "private_key": pem,
            "client_email": "agent@mine.example", "client_id": "1", "token_uri": uri,
        }),
    );
    let ran = ask(&home, "vertex/gemini-3.8-flash").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    let received = server.finish_unchecked().await;
    assert_eq!((bearer(&received[0]), received[0].path.as_str()), ("ya29.service", PATH));
    let form = tokens.finish_unchecked().await.remove(0).text;
    let start = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant%2Dtype%3Ajwt%2Dbearer&assertion=";
    let assertion = form.strip_prefix(start).expect(&form).replace("%2E", ".").replace("%2D", "-").replace("%5F", "_");
    let (content, signature) = assertion.rsplit_once('.').expect("three parts");
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64");
    let parts: Vec<Value> = content.split('.').map(|part| serde_json::from_slice(&decoded(part)).expect("JSON")).collect();
    assert_eq!(parts[0], json!({ "alg": "RS256", "typ": "JWT", "kid": "key-1" }));
    let claims = &parts[1];
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("agent@mine.example"), &json!(uri)));
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
    assert_eq!(claims["exp"].as_u64().zip(claims["iat"].as_u64()).map(|(end, start)| end - start), Some(3600));
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).expect("a key");
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).expect("an RSA key");
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    public.verify(content.as_bytes(), &decoded(signature)).expect("a valid signature");
}

#[tokio::test]
async fn metadata_server_is_used_without_a_file() {
    let (server, metadata) = servers(vec![hello()], vec![]).await;
    let path = "/computeMetadata/v1/instance/service-accounts/default/token";
    metadata.page(path, 200, r#"{"access_token":"ya29.machine","expires_in":3599,"token_type":"Bearer"}"#);
    let home = home(&server);
    home.env("GOOGLE_CLOUD_PROJECT", "mine");
    home.env("GCE_METADATA_HOST", metadata.base_url.trim_start_matches("http://"));
    let ran = ask(&home, "vertex/gemini-3.8-flash").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    assert_eq!(bearer(&server.finish_unchecked().await[0]), "ya29.machine");
    assert_eq!(metadata.asked(), [format!("GET {path}")]);
    metadata.finish().await;
}

#[tokio::test]
async fn key_uses_express_mode() {
    let server = Provider::start(Protocol::Gemini, vec![hello()]).await;
    let home = home(&server);
    home.env("GOOGLE_API_KEY", KEY);
    let ran = ask(&home, "vertex/gemini-3.8-flash").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    let path = "/v1/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse";
    assert_eq!(server.finish().await[0].path, path);
}

#[tokio::test]
async fn calls_have_no_ids() {
    let wire = wire(Protocol::Gemini);
    let server = Provider::start(Protocol::Gemini, vec![Exchange::events(wire.rich), hello()]).await;
    let home = home(&server);
    home.put("a", "what stands in a\n");
    home.put("b", "what stands in b\n");
    home.env("GOOGLE_API_KEY", KEY);
    let ran = ask(&home, "vertex/gemini-3.8-flash").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let contents = server.finish().await.remove(1).body["contents"].clone();
    let contents = contents.to_string();
    assert!(contents.contains("functionCall") && contents.contains("functionResponse"), "{contents}");
    assert!(!contents.contains("\"id\""), "{contents}");
}

#[tokio::test]
async fn claude_models_use_the_format_of_anthropic() {
    let answer = Exchange::events(wire(Protocol::Anthropic).plain);
    let (server, tokens) = servers(vec![answer], vec![token("ya29.one")]).await;
    let home = home(&server);
    credentials(&home, &user(&tokens));
    home.env("GOOGLE_CLOUD_PROJECT", "mine");
    let ran = ask(&home, "vertex/claude-sonnet-4-5@20250929").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    let received = server.finish_unchecked().await.remove(0);
    let path = "/v1/projects/mine/locations/europe-west4/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict";
    assert_eq!(received.path, path);
    assert_eq!(received.body["anthropic_version"], "vertex-2023-10-16");
    assert_eq!((&received.body["model"], &received.body["stream"]), (&Value::Null, &json!(true)));
    assert_eq!(received.header("anthropic-version"), None);
    tokens.finish_unchecked().await;
}

#[tokio::test]
async fn missing_project_and_invalid_credentials_are_named() {
    let (server, tokens) = servers(vec![], vec![]).await;
    let cases = [
        (json!({ "type": "external_account", "audience": "x" }), "only the types service_account and authorized_user"),
        (json!({ "type": "authorized_user", "client_id": "x" }), "invalid credentials"),
        (
            json!({ "type": "authorized_user", "client_id": "x", "client_secret": "y", "refresh_token": "z" }),
            "set GOOGLE_CLOUD_PROJECT",
        ),
    ];
    for (file, expected) in cases {
        let home = home(&server);
        credentials(&home, &file);
        let ran = ask(&home, "vertex/gemini-3.8-flash").await;
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{expected}: {ran:?}");
    }
    let home = home(&server);
    home.env("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/key.json");
    let ran = ask(&home, "vertex/gemini-3.8-flash").await;
    assert!(ran.code != 0 && ran.stderr.contains("/nonexistent/key.json does not exist"), "{ran:?}");
    server.finish().await;
    tokens.finish().await;
}

#[tokio::test]
async fn refused_refresh_token_is_an_error_with_a_remedy() {
    let refusal = Exchange::error(400, r#"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#);
    let (server, tokens) = servers(vec![], vec![refusal]).await;
    let home = home(&server);
    credentials(&home, &user(&tokens));
    let ran = ask(&home, "vertex/gemini-3.8-flash").await;
    assert!(ran.code != 0 && ran.stderr.contains("gcloud auth application-default login"), "{ran:?}");
    assert!(ran.stderr.contains("invalid_grant") && !ran.stderr.contains("s+cret"), "{ran:?}");
    server.finish().await;
    tokens.finish_unchecked().await;
}
