//! The providers that need no settings.

use nuncio::model::catalog;
use nuncio::model::endpoint::Http;

#[test]
fn the_catalog() {
    let environment = |name: &str| match name {
        "GEMINI_API_KEY" => Some("k".to_owned()),
        "OLLAMA_HOST" => Some("0.0.0.0:9999".to_owned()),
        "ANTHROPIC_API_KEY" => Some(" ".to_owned()),
        _ => None,
    };
    assert_eq!(catalog::default_model(&environment).as_deref(), Some("gemini/gemini-3.8-flash"));
    let known = |name| catalog::provider(name).expect("known");
    assert_eq!(known("ollama").base_url(&environment), "http://127.0.0.1:9999/v1");
    let error = known("anthropic").endpoint("claude-sonnet-5", &environment).expect_err("no key");
    assert_eq!(error.message, "no API key for anthropic");
    assert_eq!(error.hint.as_deref(), Some("set ANTHROPIC_API_KEY, or use --model ollama/NAME"));
    assert!(error.unreachable && catalog::nothing().unreachable);
    let endpoint = known("gemini").endpoint("gemini-3.8-flash", &environment).expect("a key");
    assert_eq!(format!("{:?}", endpoint.key), "Some(Key(from GEMINI_API_KEY))");
    assert_eq!((catalog::context_window("anthropic/claude-sonnet-4.5"), catalog::context_window("what")), (200_000, 128_000));
}

#[test]
fn clients_are_made_without_help() {
    let http = Http::new();
    assert!(http.client("https://api.anthropic.com").is_ok() && http.client("http://[::1]:1").is_ok());
}

#[tokio::test]
async fn local_servers_are_found() {
    let body = r#"{"object":"list","data":[{"id":"embed-small"},{"id":"qwen3-coder"}]}"#;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let host = listener.local_addr().expect("an address").to_string();
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = [0; 1024];
        let length = stream.read(&mut head).await.expect("a request");
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.expect("the caller listens");
        String::from_utf8_lossy(&head[..length]).lines().next().map(str::to_owned)
    });
    let environment = |name: &str| (name == "OLLAMA_HOST").then(|| host.clone());
    assert_eq!(catalog::probe(&Http::new(), &environment).await.as_deref(), Some("ollama/qwen3-coder"));
    assert_eq!(server.await.expect("no panic").as_deref(), Some("GET /v1/models HTTP/1.1"));
}
