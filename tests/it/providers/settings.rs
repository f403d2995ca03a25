//! Settings of providers and models: what they change in the requests, and how they are checked.

use std::sync::Arc;

use harness::provider::Protocol;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

use harness::Home;
use harness::provider::{Exchange, KEY, Provider, ReceivedRequest};
use harness::wires::WIRES;

/// Runs one prompt with a provider of the first chat model and with additional settings. `provider`
/// extends `[providers.test]`; `rest` follows it.
async fn run_with(protocol: Protocol, model: &str, provider: &str, rest: &str, flags: &[&str]) -> ReceivedRequest {
    let wire = WIRES.iter().find(|wire| wire.protocol == protocol).unwrap();
    let server = Provider::start(protocol, vec![Exchange::events(wire.plain)]).await;
    let home = Home::new();
    home.env("GATEWAY_TOKEN", "gateway-secret");
    home.config(&format!(
        "model = \"test/{model}\"\n[providers.test]\nprotocol = \"{}\"\nbase_url = \"{}\"\n\
         api_key_command = [\"echo\", \"{KEY}\"]\n{provider}\n{rest}",
        protocol.as_str(),
        server.base_url
    ));
    let ran = home.run(&[&["run"], flags, &["-p", "hi"]].concat(), "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    server.finish().await.remove(0)
}

#[tokio::test]
async fn settings_of_provider_and_model_are_sent() {
    let provider =
        "headers = { \"x-team\" = \"blue\", \"x-gateway\" = \"$GATEWAY_TOKEN\" }\nquery = { \"api-version\" = \"2026-01 b\" }";
    let models = "[models.\"test/*\"]\nservice_tier = \"flex\"\nbody = { temperature = 0.5, seed = 1 }\n\
                  [models.\"test/big\"]\nmax_output_tokens = 77\nbody = { seed = 7, chat_template_kwargs = { enable_thinking = false } }\n\
                  thinking = { low = \"tiny\", max = \"huge\" }\n";
    let cases: [(&[&str], Value); 3] =
        [(&["--thinking", "off"], Value::Null), (&["--thinking", "high"], json!("tiny")), (&["--thinking", "max"], json!("huge"))];
    for (flags, effort) in cases {
        let received = run_with(Protocol::OpenaiChat, "big", provider, models, flags).await;
        assert_eq!(received.header("x-team"), Some("blue"));
        assert_eq!(received.header("x-gateway"), Some("gateway-secret"));
        assert!(received.path.ends_with("chat/completions?api%2Dversion=2026%2D01%20b"), "{}", received.path);
        let body = &received.body;
        assert_eq!(
            (&body["temperature"], &body["seed"], &body["service_tier"]),
            (&json!(0.5), &json!(7), &json!("flex")),
            "{body}"
        );
        assert_eq!(body["chat_template_kwargs"], json!({ "enable_thinking": false }));
        assert_eq!((&body["max_tokens"], &body["reasoning_effort"]), (&json!(77), &effort), "{body}");
    }
}

#[tokio::test]
async fn objects_in_the_body_are_merged() {
    let models = "[models.\"test/*\"]\nmax_output_tokens = 50\nbody = { generationConfig = { temperature = 0.25 } }\n";
    let body = run_with(Protocol::Gemini, "gemini-3.8-flash", "", models, &[]).await.body;
    let config = &body["generationConfig"];
    assert_eq!((&config["temperature"], &config["maxOutputTokens"]), (&json!(0.25), &json!(50)), "{body}");
}

#[tokio::test]
async fn thinking_level_can_be_a_number_of_tokens() {
    let models = "[models.\"test/*\"]\nmax_output_tokens = 20000\nthinking = { low = 2000 }\n";
    let body = run_with(Protocol::Anthropic, "glm-5", "", models, &["--thinking", "low"]).await.body;
    assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 2000 }));
}

#[tokio::test]
async fn requests_use_the_proxy_of_the_provider() {
    let wire = &WIRES[1];
    let proxy = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
    let address = proxy.base_url.trim_end_matches("/v1");
    let home = Home::new();
    home.config(&format!(
        "model = \"test/x\"\n[providers.test]\nbase_url = \"http://model.example/v1\"\nproxy = \"{address}\"\n\
         api_key_command = [\"echo\", \"{KEY}\"]\n"
    ));
    let ran = home.run(&["run", "-p", "hi"], "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    let received = proxy.finish().await.remove(0);
    assert_eq!(received.path, "http://model.example/v1/chat/completions");
}

/// Forwards TLS connections to `address` without TLS.
async fn terminate_tls(made: &rcgen::CertifiedKey<rcgen::KeyPair>, address: String) -> u16 {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let builder = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, address) = (acceptor.clone(), address.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut plain = TcpStream::connect(address).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut plain).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn certificate_of_the_settings_is_trusted() {
    let wire = &WIRES[1];
    let server = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let address = server.base_url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let port = terminate_tls(&made, address).await;
    let home = Home::new();
    let settings = |more: &str| {
        format!(
            "model = \"test/x\"\n[retry]\nwait_s = 0\n[providers.test]\nbase_url = \"https://localhost:{port}/v1\"\n\
             api_key_command = [\"echo\", \"{KEY}\"]\n{more}"
        )
    };
    home.config(&settings("ca_file = \"missing.pem\"\n"));
    let ran = home.run(&["run", "-p", "hi"], "").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("reading ca_file") && ran.stderr.contains("missing.pem"), "{ran:?}");
    std::fs::write(home.data().join("ca.pem"), made.cert.pem()).unwrap();
    home.config(&settings("ca_file = \"ca.pem\"\n"));
    let ran = home.run(&["run", "-p", "hi"], "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    server.finish().await;
}

#[tokio::test]
async fn silent_answer_times_out_after_the_idle_timeout() {
    let wire = &WIRES[1];
    let answers = vec![Exchange::events(&wire.plain[..1]).hang(), Exchange::events(wire.plain)];
    let server = Provider::start(wire.protocol, answers).await;
    let home = Home::new();
    home.config(&format!(
        "model = \"test/x\"\n[providers.test]\nbase_url = \"{}\"\nidle_timeout_s = 1\napi_key_command = [\"echo\", \"{KEY}\"]\n",
        server.base_url
    ));
    let ran = home.run(&["run", "-p", "hi"], "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    assert!(ran.stderr.contains("timed out"), "{ran:?}");
    server.finish().await;
}

/// Settings, and a part of the error.
const INVALID: &[(&str, &str)] = &[
    ("[providers.a]\nheaders = { \"x y\" = \"1\" }", "providers.a.headers.x y: not a valid HTTP header"),
    ("[providers.a]\nheaders = { x = \"1\\n\" }", "not a valid HTTP header"),
    ("[models.\"a/[\"]\nmax_output_tokens = 1", "models.\"a/[\""),
    ("[models.\"a/b\"]\nbody = { messages = [] }", "models.\"a/b\".body.messages: nuncio sets this field"),
    ("[models.\"a/b\"]\nfallback = [\"c\"]", "models.\"a/b\".fallback: c: expected the form PROVIDER/NAME"),
    ("[models.\"a/b\"]\nthinking = { extreme = \"x\" }", "unknown thinking level extreme"),
    ("[models.\"a/b\"]\nabilities = [\"telepathy\"]", "unknown variant `telepathy`"),
    ("[models.\"a/b\"]\nmax_tokens = 5", "unknown field `max_tokens`"),
    ("[models.\"a/b\"]\nprice = { input = -1.0, output = 2.0 }", "models.\"a/b\".price.input: must be 0 or more"),
    ("[models.\"a/b\"]\nprice = { input = 1.0, output = nan }", "models.\"a/b\".price.output: must be 0 or more"),
    ("[models.\"a/b\"]\ncontext_window = 0", "models.\"a/b\".context_window: must be greater than 0"),
    ("[models.\"a/b\"]\nmax_output_tokens = 0", "models.\"a/b\".max_output_tokens: must be greater than 0"),
    ("[providers.a]\ncontext_window = 0", "providers.a.context_window: must be greater than 0"),
    ("[providers.a]\nidle_timeout_s = 0", "providers.a.idle_timeout_s: must be greater than 0"),
    ("[providers.a]\nproxy = \"::bad::\"", "providers.a.proxy: expected a URL or none"),
];

#[tokio::test]
async fn invalid_settings_are_errors() {
    let home = Home::new();
    for (settings, problem) in INVALID {
        home.config(settings);
        let ran = home.run(&["config", "check"], "").await;
        assert!(ran.code == 2 && ran.stderr.contains(problem), "{settings}: {ran:?}");
    }
}

#[tokio::test]
async fn values_of_headers_are_not_shown() {
    let home = Home::new();
    home.config("[providers.a]\nheaders = { x = \"gateway-secret\", y = \"$NAME\" }\n");
    let ran = home.run(&["config", "show"], "").await;
    assert!(ran.stdout.contains("x = \"***\"") && ran.stdout.contains("y = \"$NAME\""), "{ran:?}");
    assert!(!ran.stdout.contains("gateway-secret"), "{ran:?}");
}

#[tokio::test]
async fn variables_of_headers_and_query_are_hidden_from_commands() {
    let home = Home::new();
    home.env("GATEWAY_TOKEN", "gateway-secret");
    home.env("GATEWAY_CODE", "gateway-code");
    home.config("[providers.a]\nheaders = { x = \"$GATEWAY_TOKEN\" }\nquery = { code = \"$GATEWAY_CODE\" }\n");
    let ran = home.run(&["tool", "bash", "--mode", "auto", r#"{"command": "env"}"#], "").await;
    assert!(ran.code == 0 && ran.stdout.contains("PATH="), "{ran:?}");
    assert!(!ran.stdout.contains("gateway-"), "{ran:?}");
}

/// The host of an Azure resource may begin with the path of the API.
#[tokio::test]
async fn path_of_azure_is_added_to_every_resource() {
    let wire = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiResponses).unwrap();
    let proxy = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
    let home = Home::new();
    home.env("AZURE_OPENAI_ENDPOINT", "http://openai-prod.openai.azure.example");
    home.env("AZURE_OPENAI_API_KEY", "k");
    home.config(&format!("[providers.azure]\nproxy = \"{}\"\n", proxy.base_url.trim_end_matches("/v1")));
    let ran = home.run(&["run", "--model", "azure/gpt-5", "-p", "hi"], "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    let received = proxy.finish_unchecked().await.remove(0);
    assert_eq!(received.path, "http://openai-prod.openai.azure.example/openai/v1/responses");
    assert_eq!(received.header("api-key"), Some("k"));
}

#[tokio::test]
async fn service_tier_is_an_error_where_no_request_has_it() {
    let home = Home::new();
    home.config("model = \"gemini/x\"\n[providers.gemini]\nbase_url = \"http://127.0.0.1:1/v1\"\n[models.\"gemini/*\"]\nservice_tier = \"flex\"\n");
    let ran = home.run(&["run", "-p", "hi"], "").await;
    assert!(ran.code == 1 && ran.stderr.contains("service_tier is not supported by gemini"), "{ran:?}");
}

#[tokio::test]
async fn header_without_its_environment_variable_is_an_error() {
    let home = Home::new();
    home.config("model = \"a/b\"\n[providers.a]\nbase_url = \"http://127.0.0.1:1/v1\"\nheaders = { x = \"$NOT_SET\" }\n");
    let ran = home.run(&["run", "-p", "hi"], "").await;
    assert!(ran.code == 3 && ran.stderr.contains("the header x needs the environment variable NOT_SET"), "{ran:?}");
}

/// A server at `OPENAI_BASE_URL` that has only chat completions.
#[tokio::test]
async fn server_without_responses_gets_chat_completions() {
    let chat = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiChat).unwrap();
    let not_found = |body: &str, status: u16| Exchange::error(status, body);
    for (status, body) in [(404, r#"{"detail":"Not Found"}"#), (404, "404 page not found"), (405, ""), (501, "Not Implemented")] {
        let plain = Exchange::events(chat.plain);
        let provider =
            Provider::start(Protocol::OpenaiChat, vec![not_found(body, status), plain.clone(), plain.clone(), plain]).await;
        let home = Home::new();
        home.env("OPENAI_API_KEY", KEY);
        home.env("OPENAI_BASE_URL", &provider.base_url);
        let prompts = ["run", "--model", "openai/small", "-p", "one", "-p", "two"];
        let ran = home.run(&prompts, "").await;
        assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello\nHello"), "{status}: {ran:?}");
        assert_eq!(ran.stderr.matches("openai/small uses chat completions").count(), 1, "{status}: {}", ran.stderr);
        assert!(ran.stderr.contains("protocol = \"openai-chat\" in [providers.openai]"), "{}", ran.stderr);
        // The next process knows it.
        let ran = home.run(&["run", "--model", "openai/small", "three"], "").await;
        assert_eq!((ran.code, ran.stderr.contains("chat completions")), (0, false), "{status}: {ran:?}");
        let paths: Vec<String> = provider.finish().await.into_iter().map(|received| received.path).collect();
        assert!(paths[0].ends_with("/responses") && paths[1..].iter().all(|path| path.ends_with("/chat/completions")), "{paths:?}");
    }
}

#[tokio::test]
async fn unknown_model_is_not_a_missing_path() {
    let unknown = r#"{"error":{"message":"The model `small` does not exist","code":"model_not_found"}}"#;
    let nothing = "404 page not found";
    let answers: [(Vec<&str>, &str); 3] =
        [(vec![unknown], "does not exist"), (vec![nothing, unknown], "does not exist"), (vec![nothing, nothing], "base_url")];
    for (bodies, message) in answers {
        let count = bodies.len();
        let exchanges = bodies.into_iter().map(|body| Exchange::error(404, body)).collect();
        let provider = Provider::start(Protocol::OpenaiResponses, exchanges).await;
        let home = Home::new();
        home.env("OPENAI_API_KEY", KEY);
        home.env("OPENAI_BASE_URL", &provider.base_url);
        let ran = home.run(&["run", "--model", "openai/small", "one"], "").await;
        assert_eq!((ran.code, ran.stderr.contains(message)), (1, true), "{ran:?}");
        assert!(!ran.stderr.contains("uses chat completions"), "{ran:?}");
        assert_eq!(provider.finish().await.len(), count);
    }
}
