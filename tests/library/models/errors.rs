//! Errors of providers: tests/library/cases/errors.jsonl has recorded and documented responses with
//! their causes.

use std::time::Duration;

use nuncio::content::Part;
use nuncio::internal::model::{Cause, Chunk, Message, Retry};
use nuncio::internal::web::HttpClients;
use serde::Deserialize;
use serde_json::Value;

use super::{Answer, ask, endpoint, hi, request};
use harness::provider::{Exchange, Provider};
use harness::wires::{WIRES, Wire};

/// A response and the cause of the error.
#[derive(Deserialize)]
struct Case {
    /// The provider.
    of: String,
    status: u16,
    body: Value,
    cause: String,
    /// Tokens of the request and of the context window.
    request: Option<u64>,
    window: Option<u64>,
}

impl Case {
    fn body(&self) -> String {
        self.body.as_str().map_or_else(|| self.body.to_string(), str::to_owned)
    }
}

fn cases() -> Vec<Case> {
    include_str!("../cases/errors.jsonl").lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn text() -> Vec<Message> {
    vec![Message::User(vec![Part::text("hi")])]
}

/// Sends one request that never waits for an overloaded provider, and that has an output limit.
async fn answer(wire: &Wire, provider: &Provider) -> Answer {
    let endpoint = nuncio::internal::model::endpoint::Endpoint {
        wait: Duration::ZERO,
        max_output_tokens: Some(500),
        ..endpoint("test", wire, &provider.base_url)
    };
    ask(
        nuncio::internal::model::open(endpoint, &HttpClients::default(), &Default::default(), Default::default()).as_ref(),
        request(text()),
    )
    .await
}

/// The cause of the error, or of the first retry's error.
async fn cause(wire: &Wire, exchange: Exchange) -> (Cause, Option<String>, usize) {
    // A failure that is repeated once gets the same response again.
    let provider = Provider::start(wire.protocol, Vec::new()).await;
    // A fault of the model, which some servers report with the status 400, is not in the request.
    provider.lax(&[40]);
    provider.reject_larger(0, exchange);
    let answer = answer(wire, &provider).await;
    let error = answer.error.expect("an error");
    (error.cause, error.hint, provider.finish().await.len())
}

#[tokio::test]
async fn errors_of_providers_are_classified() {
    let cases = cases();
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| case.cause != "other") {
        let (cause, hint, requests) = cause(&WIRES[1], Exchange::error(case.status, &case.body())).await;
        let expected = match case.cause.as_str() {
            "context_overflow" => Cause::ContextOverflow { request_tokens: case.request, context_window: case.window },
            _ => cause,
        };
        // A request is repeated without the tool that an error names.
        let is_repeated = case.cause == "invalid_answer" || case.of == "OpenAI, name of a tool";
        let attempts = if is_repeated { 2 } else { 1 };
        if serde_json::json!(cause)["cause"] != case.cause || cause != expected || hint.is_none() || requests != attempts {
            failures
                .push(format!("{}: {cause:?} instead of {} {expected:?}; {requests} requests; hint {hint:?}", case.of, case.cause));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
    assert!(cases.iter().filter(|case| case.cause == "context_overflow").count() >= 50);
}

#[tokio::test]
async fn errors_within_answers_are_classified() {
    for wire in WIRES {
        for case in cases().iter().filter(|case| case.cause == "context_overflow" && case.body["error"]["message"].is_string()) {
            let error = &case.body["error"];
            let event = match wire.protocol {
                harness::provider::Protocol::OpenaiResponses => {
                    serde_json::json!({"type": "response.failed", "response": {"error": error}})
                }
                _ => serde_json::json!({"type": "error", "error": error}),
            };
            let (cause, _, requests) = cause(wire, Exchange::events(&[&event.to_string()])).await;
            let expected = Cause::ContextOverflow { request_tokens: case.request, context_window: case.window };
            assert_eq!((cause, requests), (expected, 1), "{} {}", wire.model, case.of);
        }
    }
}

#[tokio::test]
async fn hint_for_unknown_model_names_similar_models() {
    let lists = [
        r#"{"object":"list","data":[{"id":"zephyr"},{"id":"MODEL-2"},{"id":"other"},{"id":"MODEL-3"}]}"#,
        r#"{"models":[{"name":"models/zephyr"},{"name":"models/MODEL-2"},{"name":"models/other"},{"name":"models/MODEL-3"}]}"#,
    ];
    for wire in WIRES {
        for list in lists {
            let body = r#"{"error":{"code":"model_not_found","message":"no such model"}}"#;
            let provider = Provider::start(wire.protocol, vec![Exchange::error(404, body)]).await;
            provider.list_models(&list.replace("MODEL", wire.model));
            let error = answer(wire, &provider).await.error.expect("an error");
            assert_eq!(error.cause, Cause::UnknownModel);
            let start = format!("choose a model that the provider offers, such as {0}-2, {0}-3, ", wire.model);
            assert!(error.hint.as_ref().is_some_and(|hint| hint.starts_with(&start)), "{error:?}");
            let path = match wire.protocol {
                harness::provider::Protocol::Anthropic => "/v1/models?limit=1000",
                harness::provider::Protocol::Gemini => "/models?pageSize=1000",
                _ => "/models",
            };
            assert!(provider.asked().contains(&format!("GET {path}")), "{:?}", provider.asked());
            provider.finish().await;
        }
    }
}

/// The provider's pause is longer than the request may wait.
#[tokio::test]
async fn long_requested_pause_is_reported() {
    let busy = Exchange::error(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "86400");
    for wire in WIRES {
        let provider = Provider::start(wire.protocol, vec![busy.clone()]).await;
        let answer = ask(super::open(wire, &provider.base_url).as_ref(), request(hi())).await;
        let error = answer.error.expect("an error");
        assert!(error.message.ends_with("slow down; the provider asks to wait 86400 s"), "{error:?}");
        assert!(error.hint.is_some_and(|hint| hint.contains("retry.wait_s")));
        provider.finish().await;
    }
}

#[tokio::test]
async fn retry_delay_is_read_from_headers_and_body() {
    check_retry_delay(&[], "", None).await;
    check_retry_delay(&[("retry-after", "2")], "", Some(Duration::from_secs(2))).await;
    check_retry_delay(&[("retry-after", "2"), ("retry-after-ms", "1500")], "", Some(Duration::from_millis(1500))).await;
    check_retry_delay(&[("retry-after", "86400")], "", Some(Duration::from_secs(86_400))).await;
    check_retry_delay(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], "", Some(Duration::ZERO)).await;
    check_retry_delay(&[("retry-after", "soon")], "", None).await;
    check_retry_delay(&[], r#"{"error":{"details":[{"retryDelay": "34s"}]}}"#, Some(Duration::from_secs(34))).await;
}

/// Checks the delay that the error for a response with status 429 names.
async fn check_retry_delay(headers: &[(&'static str, &str)], body: &str, expected: Option<Duration>) {
    let busy = headers.iter().fold(Exchange::error(429, body), |busy, (name, value)| busy.header(name, value));
    let provider = Provider::start(WIRES[1].protocol, vec![busy]).await;
    let error = answer(&WIRES[1], &provider).await.error.expect("an error");
    assert_eq!(error.retry, Retry::Wait(expected), "{headers:?} {body}: {error:?}");
    provider.finish().await;
}

/// Usage of an attempt that failed is reported, if the provider sent it.
#[tokio::test]
async fn usage_of_failed_attempt_is_counted() {
    for wire in WIRES {
        let events: &[&str] = match wire.protocol {
            harness::provider::Protocol::Anthropic => &wire.plain[..1],
            harness::provider::Protocol::OpenaiChat => &[r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1}}"#],
            harness::provider::Protocol::OpenaiResponses => &[
                r#"{"type":"response.failed","response":{"error":{"message":"busy"},"usage":{"input_tokens":10,"output_tokens":1}}}"#,
                r#"{"type":"response.in_progress","response":{"usage":{"input_tokens":10,"output_tokens":1}}}"#,
            ],
            harness::provider::Protocol::Gemini => &[r#"{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}}"#],
            // Only a complete answer has usage.
            harness::provider::Protocol::Ollama | harness::provider::Protocol::Bedrock => &[],
        };
        for event in events {
            let exchanges = vec![Exchange::events(&[event]).cut(), Exchange::events(wire.plain)];
            let provider = Provider::start(wire.protocol, exchanges).await;
            let answer = ask(super::open(wire, &provider.base_url).as_ref(), request(hi())).await;
            provider.finish().await;
            let counted: Vec<u64> = answer
                .chunks
                .iter()
                .filter_map(|chunk| if let Chunk::Usage(usage) = chunk { Some(usage.input_tokens) } else { None })
                .collect();
            assert_eq!(counted, [10, 10], "{event}: {:?}", answer.chunks);
        }
    }
}

/// A deterministic failure is repeated once.
#[tokio::test]
async fn invalid_answer_is_requested_once_more() {
    let invalid = [
        Exchange::events(&["{\"type\": oops"]),
        Exchange::events(&[
            r#"{"error":{"code":500,"message":"does not match the expected peg-native format","type":"server_error"},"type":"error"}"#,
        ]),
        Exchange::error(200, r#"{"object":"list","data":[]}"#),
    ];
    for wire in WIRES {
        for exchange in &invalid {
            let (cause, _, requests) = cause(wire, exchange.clone()).await;
            assert_eq!((cause, requests), (Cause::InvalidAnswer, 2), "{} {exchange:?}", wire.model);
        }
    }
}
