//! Local model servers are identified by their answers.

use nuncio::internal::model::local::{Candidate, LocalServer, identify, probe};
use nuncio::internal::model::providers::{self, KnownProvider};
use nuncio::internal::web::HttpClients;

use harness::Site;

const JSON: &str = "200 OK\ncontent-type: application/json";

/// Answers of the servers, shortened.
const OLLAMA: &str = r#"{"object":"list","data":[{"id":"nomic-embed-text:latest","object":"model","created":1,"owned_by":"library"},{"id":"qwen3:8b","object":"model","created":1,"owned_by":"library"}]}"#;
const LM_STUDIO: &str = r#"{"data":[{"id":"qwen/qwen3.5-9b","object":"model","owned_by":"organization_owner"},{"id":"text-embedding-nomic","object":"model","owned_by":"organization_owner"}],"object":"list"}"#;
const LLAMA_CPP: &str = r#"{"models":[{"name":"a.gguf","type":"model","capabilities":["completion"]}],"object":"list","data":[{"id":"a.gguf","aliases":[],"object":"model","created":1,"owned_by":"llamacpp","meta":{"n_ctx":8192}}]}"#;
const KOBOLD_CPP: &str = r#"{"object":"list","data":[{"id":"koboldcpp/a","object":"model","created":1,"owned_by":"koboldcpp","permission":[],"root":"koboldcpp"}]}"#;
const KOBOLD_CPP_EMPTY: &str = r#"{"object":"list","data":[{"id":"inactive","object":"model","created":1,"owned_by":"koboldcpp","permission":[],"root":"koboldcpp"}]}"#;
const JAN: &str = r#"{"object":"list","data":[{"id":"jan-v3-4b","object":"model","created":1,"owned_by":"user"}]}"#;
const JAN_DOCS: &str = r#"{"openapi":"3.1.0","info":{"title":"👋Jan API","version":"0.3.14"},"paths":{}}"#;
const VLLM: &str = r#"{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","created":1,"owned_by":"vllm","root":"Qwen/Qwen3-8B","parent":null,"max_model_len":32768,"permission":[]}]}"#;

fn known(name: &str) -> &'static KnownProvider {
    providers::provider(name).expect("known")
}

#[tokio::test]
async fn local_server_is_identified_by_its_answers() {
    let cases = [
        ("ollama", OLLAMA, Some("qwen3:8b")),
        ("lmstudio", LM_STUDIO, Some("qwen/qwen3.5-9b")),
        ("llamacpp", LLAMA_CPP, Some("a.gguf")),
        ("vllm", VLLM, Some("Qwen/Qwen3-8B")),
        ("koboldcpp", KOBOLD_CPP, Some("koboldcpp/a")),
        ("koboldcpp", KOBOLD_CPP_EMPTY, None),
        ("jan", JAN, Some("jan-v3-4b")),
        // A different server at the port.
        ("koboldcpp", JAN, None),
        ("vllm", LLAMA_CPP, None),
        ("llamacpp", VLLM, None),
        ("lmstudio", OLLAMA, None),
        ("vllm", r#"{"object":"list","data":[{"id":"a","object":"model","owned_by":"vllm"},{"id":"b","object":"model"}]}"#, None),
        ("vllm", r#"{"object":"list","data":[{"id":"a","object":"dataset","owned_by":"vllm"}]}"#, None),
        ("vllm", r#"{"data":[{"id":"a","object":"model","owned_by":"vllm"}]}"#, None),
        ("vllm", r#"{"object":"list","data":[]}"#, None),
        ("vllm", r#"{"object":"list","data":null}"#, None),
        ("vllm", "{}", None),
        ("vllm", "[]", None),
        ("vllm", "<!doctype html>", None),
        ("llamacpp", "", None),
    ];
    for (name, answer, expected) in cases {
        let site = Site::start().await;
        site.page("/v1/models", JSON, answer);
        site.page("/api/version", JSON, r#"{"version":"0.12.3"}"#);
        site.page("/openapi.json", JSON, JAN_DOCS);
        let found = identify(&HttpClients::default(), known(name), &site.url("/v1"), None).await;
        assert_eq!(found.as_deref(), expected, "{name}: {answer}");
    }
}

#[tokio::test]
async fn ollama_is_identified_by_its_version() {
    for (head, version, found) in [
        (JSON, r#"{"version":"0.12.3"}"#, true),
        (JSON, r#"{"version":3}"#, false),
        (JSON, "{}", false),
        ("404 Not Found", r#"{"version":"0.12.3"}"#, false),
        ("302 Found\nlocation: /", "", false),
    ] {
        let site = Site::start().await;
        site.page("/v1/models", JSON, OLLAMA);
        site.page("/api/version", head, version);
        let here = LocalServer { id: "ollama/qwen3:8b".into(), base_url: site.url("/v1") };
        let probed = probe(&HttpClients::default(), candidates("ollama", [site.url("/v1")])).await;
        assert_eq!(probed, found.then_some(here), "{head} {version}");
    }
}

fn candidates(name: &str, base_urls: impl IntoIterator<Item = String>) -> Vec<Candidate> {
    base_urls.into_iter().map(|base_url| Candidate { provider: known(name), base_url, key: None }).collect()
}

#[tokio::test]
async fn llamacpp_is_found_at_both_default_ports() {
    let base_urls = known("llamacpp").base_urls(&|_| None);
    assert_eq!(base_urls, ["http://127.0.0.1:8080/v1", "http://127.0.0.1:9931/v1"]);
    let site = Site::start().await;
    site.page("/v1/models", JSON, LLAMA_CPP);
    let closed = "http://127.0.0.1:1/v1".to_owned();
    for base_urls in [[closed.clone(), site.url("/v1")], [site.url("/v1"), closed]] {
        let here = LocalServer { id: "llamacpp/a.gguf".into(), base_url: site.url("/v1") };
        assert_eq!(probe(&HttpClients::default(), candidates("llamacpp", base_urls)).await, Some(here));
    }
}
