//! Built-in providers, which require no settings.

use nuncio::internal::model::{catalog, endpoint, providers};
use nuncio::internal::web::HttpClients;

#[test]
fn catalog_resolves_providers_from_environment() {
    let environment = |name: &str| match name {
        "GEMINI_API_KEY" => Some("k".to_owned()),
        "OLLAMA_HOST" => Some("0.0.0.0:9999".to_owned()),
        "ANTHROPIC_API_KEY" => Some(" ".to_owned()),
        _ => None,
    };
    let has_key = |known: &providers::KnownProvider| known.endpoint("-", &environment).is_ok();
    assert_eq!(providers::default_model(has_key).as_deref(), Some("gemini/gemini-3.8-flash"));
    let known = |name| providers::provider(name).expect("known");
    assert_eq!(known("ollama").base_url(&environment), "http://127.0.0.1:9999/v1");
    let error = known("anthropic").endpoint("claude-sonnet-5", &environment).expect_err("no key");
    assert_eq!(error.message, "no API key for anthropic");
    assert_eq!(
        error.hint.as_deref(),
        Some("set ANTHROPIC_API_KEY, store a key: nuncio login anthropic, or use --model ollama/NAME")
    );
    assert!(error.unreachable && providers::nothing().unreachable);
    let endpoint = known("gemini").endpoint("gemini-3.8-flash", &environment).expect("a key");
    assert_eq!(format!("{:?}", endpoint.credentials), "Key(Key(from GEMINI_API_KEY))");
}

/// Model, context window in thousands of tokens, and whether its price is known.
const MODELS: &[(&str, Option<u64>, bool)] = &[
    ("anthropic/claude-sonnet-4-5", Some(200), true),
    ("anthropic/claude-sonnet-4.5", Some(200), true),
    ("anthropic/claude-sonnet-4-5-20250929", Some(200), true),
    ("work/claude-sonnet-4-5@20250929", Some(200), false),
    ("elsewhere/us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some(200), false),
    ("openai/gpt-5-2025-08-07", Some(272), true),
    ("openai/gpt-4.1-of-tomorrow", Some(1000), false),
    ("openai/gpt-4.1", Some(1047), true),
    ("openai/gpt-4-1106-preview", Some(128), false),
    ("openai/gpt-4-something", Some(8), false),
    ("local/gpt-oss-20b-Q4", Some(131), false),
    ("local/unheard-of", None, false),
    ("unheard-of", None, false),
];

#[test]
fn properties_are_found_by_id_then_by_name_then_by_family() {
    for (id, context_window, priced) in MODELS {
        let properties = catalog::properties(id);
        let thousands = properties.limits.context_window.map(|tokens| tokens / 1000);
        assert_eq!((thousands, properties.limits.price.is_some()), (*context_window, *priced), "{id}: {properties:?}");
    }
}

#[test]
fn client_is_created_for_https_and_ipv6_addresses() {
    let clients = HttpClients::default();
    let made = |url| endpoint::client(&clients, url).is_ok();
    assert!(made("https://api.anthropic.com") && made("http://[::1]:1"));
}
