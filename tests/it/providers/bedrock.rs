//! Amazon Bedrock: requests of the ConverseStream API, their signatures, and event streams.

use ring::{digest, hmac};
use serde_json::{Value, json};

use harness::provider::{Exchange, KEY, Provider, ReceivedRequest};
use harness::{CommandResult, Home};

const MODEL: &str = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";

/// "Hello" in two deltas, with padding as Bedrock sends it.
const HELLO: &[(&str, &str)] = &[
    ("messageStart", r#"{"p":"abcd","role":"assistant"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hel"},"p":"abcdefgh"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"lo"},"p":"ab"}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":0,"p":"abc"}"#),
    ("messageStop", r#"{"p":"a","stopReason":"end_turn"}"#),
    (
        "metadata",
        r#"{"metrics":{"latencyMs":12},"p":"ab","usage":{"inputTokens":5,"outputTokens":2,"totalTokens":12,"cacheReadInputTokens":4,"cacheWriteInputTokens":1,"serverToolUsage":{}}}"#,
    ),
];

/// Thinking with a signature, a text, and a call of `read`.
const CALL: &[(&str, &str)] = &[
    ("messageStart", r#"{"role":"assistant"}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"One "}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"file."}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"SIG="}}}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"Reading."}}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
    ("futureEvent", r#"{"contentBlockIndex":"one"}"#),
    (
        "contentBlockStart",
        r#"{"contentBlockIndex":2,"start":{"toolUse":{"name":"read","toolUseId":"tooluse_1","type":"tool_use"}}}"#,
    ),
    ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":""}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"file_path\": "}}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"\"a\"}"}}}"#),
    ("contentBlockStop", r#"{"contentBlockIndex":2}"#),
    ("messageStop", r#"{"stopReason":"tool_use"}"#),
    ("metadata", r#"{"usage":{"inputTokens":10,"outputTokens":20,"totalTokens":30}}"#),
];

/// A message of an event stream with text headers.
fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let header = |(name, value): &(&str, &str)| {
        let length = (value.len() as u16).to_be_bytes();
        [&[name.len() as u8], name.as_bytes(), &[7], &length, value.as_bytes()].concat()
    };
    let headers: Vec<u8> = headers.iter().flat_map(header).collect();
    let length = (headers.len() + payload.len() + 16) as u32;
    let mut message = [length.to_be_bytes(), (headers.len() as u32).to_be_bytes()].concat();
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message.extend(headers);
    message.extend(payload.as_bytes());
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message
}

fn event((kind, payload): &(&str, &str)) -> Vec<u8> {
    message(&[(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")], payload)
}

fn exception(kind: &str, text: &str) -> Vec<u8> {
    let headers = [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    message(&headers, &json!({ "message": text }).to_string())
}

fn stream(messages: Vec<Vec<u8>>) -> Exchange {
    Exchange::bytes(200, "application/vnd.amazon.eventstream", messages)
}

fn events(events: &[(&str, &str)]) -> Exchange {
    stream(events.iter().map(event).collect())
}

/// A home with an API key for Bedrock at this server.
async fn keyed(exchanges: Vec<Exchange>) -> (Home, Provider) {
    let server = Provider::start(harness::provider::Protocol::Bedrock, exchanges).await;
    let home = Home::new();
    home.env("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &server.base_url);
    home.env("AWS_BEARER_TOKEN_BEDROCK", KEY);
    (home, server)
}

/// Sends this prompt. Returns the first message of the request.
pub async fn first_message(prompt: Value) -> Value {
    let (home, server) = keyed(vec![events(HELLO)]).await;
    let model = format!("bedrock/{MODEL}");
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({ "protocolVersion": 1 })).await;
    let session = agent.new_session(&home).await;
    agent.call("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    agent.finish().await;
    server.finish().await[0].body["messages"][0].clone()
}

async fn ask(home: &Home, flags: &[&str]) -> CommandResult {
    let model = format!("bedrock/{MODEL}");
    home.run(&[&["run", "--model", &model], flags, &["-p", "hi"]].concat(), "").await
}

#[tokio::test]
async fn thinking_and_calls_are_sent_back() {
    let (home, server) = keyed(vec![events(CALL), events(HELLO)]).await;
    home.put("a", "what stands in a\n");
    let ran = ask(&home, &["--thinking", "low"]).await;
    assert_eq!((ran.code, ran.stdout.trim().ends_with("Hello")), (0, true), "{ran:?}");
    let received = server.finish().await;
    assert_eq!(received[0].path, "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream");
    let first = &received[0].body;
    let cached = json!({ "cachePoint": { "type": "default" } });
    let tools = first["toolConfig"]["tools"].as_array().expect("tools");
    assert_eq!(tools.last(), Some(&cached));
    assert!(tools[0]["toolSpec"]["inputSchema"]["json"].is_object(), "{}", tools[0]);
    assert_eq!(first["system"][1], cached);
    assert!(first["system"][0]["text"].is_string());
    assert_eq!(first["inferenceConfig"], json!({ "maxTokens": 64000 }));
    assert_eq!(first["additionalModelRequestFields"], json!({ "thinking": { "type": "enabled", "budget_tokens": 4096 } }));

    let messages = received[1].body["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["content"].as_array().and_then(|content| content.last()), Some(&cached));
    let expected = json!({ "role": "assistant", "content": [
        { "reasoningContent": { "reasoningText": { "text": "One file.", "signature": "SIG=" } } },
        { "text": "Reading." },
        { "toolUse": { "toolUseId": "tooluse_1", "name": "read", "input": { "file_path": "a" } } },
    ]});
    assert_eq!(messages[1], expected);
    assert!(received[1].text.contains(r#"{"file_path": "a"}"#), "arguments are sent as they were written");
    let result = &messages[2]["content"][0]["toolResult"];
    assert_eq!((&result["toolUseId"], &result["status"]), (&json!("tooluse_1"), &json!("success")));
    assert!(result["content"][0]["text"].to_string().contains("what stands in a"), "{result}");
    assert_eq!(messages[2]["content"].as_array().and_then(|content| content.last()), Some(&cached));
}

#[tokio::test]
async fn other_models_get_no_fields_of_claude() {
    let (home, server) = keyed(vec![events(HELLO)]).await;
    let ran = home.run(&["run", "--model", "bedrock/openai.gpt-oss-120b-1:0", "--thinking", "low", "-p", "hi"], "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
    let body = server.finish().await.remove(0).body;
    assert!(!body.to_string().contains("cachePoint"), "{body}");
    assert_eq!((&body["inferenceConfig"], &body["additionalModelRequestFields"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn events_may_arrive_in_any_pieces() {
    let bytes: Vec<u8> = HELLO.iter().flat_map(event).collect();
    for size in [1, 7, bytes.len()] {
        let (home, server) = keyed(vec![stream(bytes.chunks(size).map(<[u8]>::to_vec).collect())]).await;
        let ran = ask(&home, &["--json"]).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("\"inputTokens\":10"), "cached tokens are counted: {}", ran.stdout);
        server.finish().await;
    }
}

#[tokio::test]
async fn damaged_or_failed_answers_are_requested_again() {
    let damaged = |at: usize| {
        let mut bytes = event(&HELLO[1]);
        bytes[at] ^= 1;
        stream(vec![event(&HELLO[0]), bytes])
    };
    let cases = [
        damaged(1),
        damaged(30),
        stream(vec![event(&HELLO[1])]).cut(),
        stream(vec![exception("throttlingException", "Too many tokens, please wait before trying again.")]),
        stream(vec![event(&HELLO[1]), exception("modelStreamErrorException", "The system encountered an unexpected error.")]),
        events(&[HELLO[0], ("messageStop", r#"{"stopReason":"malformed_tool_use"}"#), HELLO[5]]),
    ];
    for (index, case) in cases.into_iter().enumerate() {
        let (home, server) = keyed(vec![case, events(HELLO)]).await;
        let ran = ask(&home, &[]).await;
        assert_eq!((ran.code, ran.stdout.trim().ends_with("Hello")), (0, true), "case {index}: {ran:?}");
        assert_eq!(server.finish().await.len(), 2, "case {index}");
    }
}

#[tokio::test]
async fn errors_have_a_cause() {
    let validation = json!({ "message": "Input is too long for requested model." }).to_string();
    let denied = json!({ "message": "The security token included in the request is invalid." }).to_string();
    let cases = [
        (Exchange::error(400, &validation).header("x-amzn-errortype", "ValidationException"), "context window"),
        (stream(vec![exception("validationException", "Input is too long for requested model.")]), "shorten the prompt"),
        (Exchange::error(403, &denied).header("x-amzn-errortype", "UnrecognizedClientException"), "check AWS_BEARER_TOKEN_BEDROCK"),
        (events(&[HELLO[0], ("messageStop", r#"{"stopReason":"guardrail_intervened"}"#), HELLO[5]]), "refus"),
    ];
    for (exchange, expected) in cases {
        let (home, server) = keyed(vec![exchange]).await;
        let ran = ask(&home, &[]).await;
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{expected}: {ran:?}");
        server.finish().await;
    }
}

/// The signature that the headers and the body must have (AWS Signature Version 4), computed from
/// the request as it was received.
fn signature(received: &ReceivedRequest, secret: &str, host: &str) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let hash = |text: &str| hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    let mac = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
    let header = |name: &str| received.header(name).unwrap_or_else(|| panic!("no {name}")).to_owned();
    let authorization = header("authorization");
    let (_, credential) = authorization.split_once("Credential=").expect("a credential");
    let (scope, _) = credential.split_once(", ").expect("a list");
    let (_, scope) = scope.split_once('/').expect("a scope");
    let (_, names) = authorization.split_once("SignedHeaders=").expect("signed headers");
    let (names, _) = names.split_once(", ").expect("a list");
    assert_eq!(names, "content-type;host;x-amz-date;x-amz-security-token");
    let value = |name: &str| if name == "host" { host.to_owned() } else { header(name) };
    let lines: String = names.split(';').map(|name| format!("{name}:{}\n", value(name))).collect();
    let path = received.path.replace('%', "%25");
    let canonical = format!("POST\n{path}\n\n{lines}\n{names}\n{}", hash(&received.text));
    let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{}", header("x-amz-date"), hash(&canonical));
    let key = scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| mac(&key, part).as_ref().to_vec());
    hex(mac(&key, &text).as_ref())
}

#[tokio::test]
async fn requests_are_signed_with_keys_of_the_environment_or_a_profile() {
    let credentials = "[default]\naws_access_key_id = WRONG\naws_secret_access_key = WRONG\n\n[work]\n\
                       aws_access_key_id = AKIDWORK\naws_secret_access_key = c2VjcmV0K3dvcms=\naws_session_token = dG9rZW4=\n";
    let config = "[default]\nregion = us-west-2\n[profile work]\ns3 =\n  region = us-east-2\nregion = eu-north-1\n";
    let environment = [
        (
            vec![
                ("AWS_ACCESS_KEY_ID", "AKIDENV"),
                ("AWS_SECRET_ACCESS_KEY", "ZW52"),
                ("AWS_SESSION_TOKEN", "dG9rZW4="),
                ("AWS_REGION", "eu-west-1"),
            ],
            "AKIDENV",
            "eu-west-1",
        ),
        (vec![("AWS_PROFILE", "work")], "AKIDWORK", "eu-north-1"),
    ];
    for (variables, key, region) in environment {
        let server = Provider::start(harness::provider::Protocol::Bedrock, vec![events(HELLO)]).await;
        let home = Home::new();
        home.env("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &server.base_url);
        home.env("AWS_SHARED_CREDENTIALS_FILE", home.put("../aws/credentials", credentials).to_str().unwrap());
        home.env("AWS_CONFIG_FILE", home.put("../aws/config", config).to_str().unwrap());
        variables.iter().for_each(|(name, value)| home.env(name, value));
        let ran = ask(&home, &[]).await;
        assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
        let host = server.base_url.trim_start_matches("http://").to_owned();
        let received = server.finish_unchecked().await.remove(0);
        let authorization = received.header("authorization").expect("a signature").to_owned();
        let date = &received.header("x-amz-date").expect("a date")[..8];
        let start = format!("AWS4-HMAC-SHA256 Credential={key}/{date}/{region}/bedrock/aws4_request, ");
        assert!(authorization.starts_with(&start), "{authorization}");
        assert_eq!(received.header("x-amz-security-token"), Some("dG9rZW4="));
        let secret = if key == "AKIDENV" { "ZW52" } else { "c2VjcmV0K3dvcms=" };
        assert!(authorization.ends_with(&format!("Signature={}", signature(&received, secret, &host))), "{authorization}");
    }
}

#[tokio::test]
async fn missing_region_or_credentials_are_named() {
    let home = Home::new();
    let ran = ask(&home, &[]).await;
    assert!(ran.code != 0 && ran.stderr.contains("no AWS region") && ran.stderr.contains("AWS_REGION"), "{ran:?}");
    home.env("AWS_REGION", "eu-west-1");
    let ran = ask(&home, &[]).await;
    assert!(ran.code != 0 && ran.stderr.contains("no AWS credentials"), "{ran:?}");
    assert!(ran.stderr.contains("AWS_BEARER_TOKEN_BEDROCK"), "{ran:?}");
}
