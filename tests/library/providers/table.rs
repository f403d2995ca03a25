//! The table of providers in docs/PROVIDERS.md: complete, correct, and tried against a server.

use harness::provider::Protocol;
use nuncio::internal::model::providers;

use harness::Home;
use harness::provider::{Exchange, KEY, Provider};
use harness::wires::WIRES;

const DOCUMENT: &str = include_str!("../../../docs/PROVIDERS.md");

/// Providers whose address is built from a region, a project or a resource.
const CLOUDS: &[&str] = &["bedrock", "vertex", "azure"];

/// The cells of each row whose first cell is a name in backquotes, by name.
fn rows() -> Vec<(&'static str, Vec<&'static str>)> {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let row = |line: &'static str| {
        let cells = cells(line.strip_prefix("| `").map(|_| line)?);
        Some((cells[0].trim_matches('`'), cells))
    };
    DOCUMENT.lines().filter_map(row).collect()
}

/// The names of all built-in providers, from the hint of an error.
async fn names() -> Vec<String> {
    let ran = Home::new().run(&["run", "--model", "nowhere/x", "-p", "hi"], "").await;
    let (_, list) = ran.stderr.split_once("known providers: ").expect(&ran.stderr);
    let (list, _) = list.split_once(';').expect("the end of the list");
    list.split(", ").map(str::to_owned).collect()
}

#[tokio::test]
async fn every_provider_is_in_the_table() {
    let rows = rows();
    assert_eq!(rows.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names().await);
    for (name, cells) in rows {
        let known = providers::provider(name).expect(name);
        let has = |cell: usize, text: &str| assert!(cells[cell].contains(&format!("`{text}`")), "{name}: {text}: {}", cells[cell]);
        has(1, known.protocol.as_str());
        known.key_env.iter().for_each(|variable| has(2, variable));
        [known.base_url].iter().chain(known.other_base_urls).for_each(|url| has(3, url));
        known.base_env.iter().for_each(|variable| has(4, variable));
    }
}

#[tokio::test]
async fn every_remote_provider_gets_its_key_at_its_path() {
    for (name, _) in rows() {
        let known = providers::provider(name).expect(name);
        if known.local || CLOUDS.contains(&name) {
            continue;
        }
        let wire = WIRES.iter().find(|wire| wire.protocol.as_str() == known.protocol.as_str()).expect("a wire");
        let server = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
        let home = Home::new();
        // The base URL has the path of the built-in one.
        let path = known.base_url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
        let base_url = format!("{}/{path}", server.base_url.trim_end_matches("/v1"));
        home.env(known.base_env.expect(name), &base_url);
        home.env(known.key_env[0], KEY);
        let model = format!("{name}/{}", known.default_model);
        let ran = home.run(&["run", "--model", &model, "-p", "hi"], "").await;
        assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{name}: {ran:?}");
        let received = server.finish().await.remove(0);
        let end = match wire.protocol {
            Protocol::Anthropic => "/v1/messages".to_owned(),
            Protocol::OpenaiChat => format!("/{path}/chat/completions"),
            Protocol::OpenaiResponses => format!("/{path}/responses"),
            Protocol::Gemini => format!("/{path}/models/{}:streamGenerateContent?alt=sse", known.default_model),
            Protocol::Bedrock | Protocol::Ollama => unreachable!("a cloud platform or a local server"),
        };
        assert_eq!(received.path, end, "{name}");
        if wire.protocol != Protocol::Gemini {
            assert_eq!(received.body["model"], known.default_model, "{name}");
        }
    }
}

#[tokio::test]
async fn azure_gets_its_key_in_a_header_of_its_own() {
    let wire = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiResponses).expect("a wire");
    for (end, path) in [("", "/openai/v1/responses"), ("/", "/openai/v1/responses"), ("/openai/v1/", "/openai/v1/responses")] {
        let server = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
        let home = Home::new();
        home.env("AZURE_OPENAI_ENDPOINT", &format!("{}{end}", server.base_url.trim_end_matches("/v1")));
        home.env("AZURE_OPENAI_API_KEY", KEY);
        let ran = home.run(&["run", "--model", "azure/my-deployment", "-p", "hi"], "").await;
        assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello"), "{ran:?}");
        let received = server.finish_unchecked().await.remove(0);
        assert_eq!((received.path.as_str(), received.header("api-key")), (path, Some(KEY)));
        assert_eq!((received.header("authorization"), &received.body["model"]), (None, &"my-deployment".into()));
    }
    let home = Home::new();
    home.env("AZURE_OPENAI_API_KEY", KEY);
    let ran = home.run(&["run", "--model", "azure/my-deployment", "-p", "hi"], "").await;
    assert!(ran.code != 0 && ran.stderr.contains("set AZURE_OPENAI_ENDPOINT"), "{ran:?}");
}
