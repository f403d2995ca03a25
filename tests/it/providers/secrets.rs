//! Keys and passwords are never printed, shown to a client, logged or stored.

use serde_json::json;

use harness::provider::session::{connect, home};
use harness::provider::{Exchange, KEY, Provider};
use harness::wires::WIRES;
use harness::{Home, notices};

const PASSWORD: &str = "hunter2-is-secret";

/// Returns the contents of all files in the home directory except the user's settings.
fn stored(home: &Home) -> Vec<u8> {
    let mut content = Vec::new();
    let mut directories = vec![home.data()];
    while let Some(directory) = directories.pop() {
        for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => directories.push(path),
                false if path.is_file() && !path.ends_with("config.toml") => content.extend(std::fs::read(path).unwrap()),
                false => {}
            }
        }
    }
    content
}

fn assert_not_stored(home: &Home, secret: &str, what: &str) {
    assert!(memchr::memmem::find(&stored(home), secret.as_bytes()).is_none(), "{what}: {secret} is in the store");
}

#[tokio::test]
async fn key_in_stream_of_provider_is_masked() {
    for wire in WIRES {
        let error: Vec<String> =
            wire.error.iter().map(|event| event.replace("Overloaded", &format!("Overloaded for {KEY}"))).collect();
        let error: Vec<&str> = error.iter().map(String::as_str).collect();
        let (home, provider, name) = home(wire, vec![Exchange::events(&error), Exchange::events(wire.plain)]).await;
        home.env("NUNCIO_LOG", "trace");
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let (stop, updates) = agent.turn(&session, "go").await;
        assert_eq!(stop, "end_turn", "{name}");
        let notices = notices(&updates);
        assert!(notices.iter().any(|notice| notice.contains("Overloaded for [key]")), "{name}: {notices:?}");
        agent.finish().await;
        provider.finish().await;
        assert_not_stored(&home, KEY, &name);
    }
}

#[tokio::test]
async fn key_in_error_of_turn_is_masked() {
    for wire in WIRES {
        let body = json!({"error": {"type": "invalid_request_error", "message": format!("no such key: {KEY}")}}).to_string();
        let (home, provider, name) = home(wire, vec![Exchange::error(400, &body)]).await;
        home.env("NUNCIO_LOG", "trace");
        let ran = home.run(&["run", "go"], "").await;
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        assert!(ran.stderr.contains("no such key: [key]") && !ran.stderr.contains(KEY), "{name}: {ran:?}");
        provider.finish().await;
        assert_not_stored(&home, KEY, &name);
    }
}

/// The key of a server on this machine is often a short word: the message stays readable.
#[tokio::test]
async fn short_key_is_not_masked() {
    let body = json!({"error": {"message": "no model e: one of none"}}).to_string();
    for key in ["e", "none"] {
        let (home, provider, name) = home(&WIRES[0], vec![Exchange::error(400, &body)]).await;
        let settings = std::fs::read_to_string(home.data().join("config.toml")).unwrap();
        home.config(&settings.replace(KEY, key));
        let ran = home.run(&["run", "go"], "").await;
        assert!(ran.stderr.contains("no model e: one of none") && !ran.stderr.contains("[key]"), "{name}: {ran:?}");
        provider.finish_unchecked().await;
    }
}

#[tokio::test]
async fn base_url_with_password_is_refused() {
    let home = Home::new();
    for url in [
        "http://me:hunter2-is-secret@127.0.0.1:1/v1",
        "https://hunter2-is-secret@host/v1",
        "http:me:hunter2-is-secret@127.0.0.1:1/v1",
        "http://me:hunter2-is-secret/with#?signs@127.0.0.1:1/v1",
        "http:\\\\me:hunter2-is-secret@127.0.0.1:1/v1",
    ] {
        home.config(&format!("model = \"mine/x\"\n[providers.mine]\nbase_url = '{url}'\n"));
        for command in [&["config", "show"][..], &["config", "check"], &["run", "go"], &["doctor"]] {
            let ran = home.run(command, "").await;
            assert_eq!(ran.code, 2, "{url}, {command:?}: {ran:?}");
            assert!(ran.stderr.contains("providers.mine.base_url") && ran.stderr.contains("api_key_env"), "{url}: {ran:?}");
            assert!(!format!("{ran:?}").contains(PASSWORD), "{url}, {command:?}: {ran:?}");
        }
    }
    // From a flag, and from a variable.
    let url = format!("http://me:{PASSWORD}@127.0.0.1:1/v1");
    home.config("");
    let flag = home.run(&["run", "--model", "mine/x", "--base-url", &url, "go"], "").await;
    home.env("OPENAI_BASE_URL", &url);
    let variable = home.run(&["run", "--model", "openai/gpt-5", "go"], "").await;
    for ran in [flag, variable] {
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("user name or password") && ran.stderr.to_lowercase().contains("api_key"), "{ran:?}");
        assert!(!format!("{ran:?}").contains(PASSWORD), "{ran:?}");
    }
    assert_not_stored(&home, PASSWORD, "a base_url that was refused");
}

/// Each text is the message of a provider's error. Masking is idempotent.
#[tokio::test]
async fn credentials_of_urls_are_masked() {
    let cases = [
        ("no address: at all", "no address: at all"),
        ("see https://host:80/a?b, and (http://x/y).", "see https://host:80/a?***, and (http://x/y)."),
        ("http://me:pw@host/v1", "http://***@host/v1"),
        ("a http://me@host and \"wss://pw@[::1]:1/x\"", "a http://***@host and \"wss://***@[::1]:1/x\""),
        ("http://me:p/w?x#y@host/v1", "http://***@host/v1"),
        ("https://host/v1?key=secret&alt=sse&empty=#part", "https://host/v1?key=***&alt=***&empty=#part"),
        ("https://host/a/@b/c?d", "https://host/a/@b/c?***"),
        ("[http://h/?k=s](http://h/?k=s)", "[http://h/?k=***](http://h/?k=***)"),
    ];
    let messages: Vec<(&str, &str)> = cases.into_iter().flat_map(|(text, masked)| [(text, masked), (masked, masked)]).collect();
    let error = |text: &str| Exchange::error(400, &json!({"error": {"message": text}}).to_string());
    let (home, provider, _) = home(&WIRES[1], messages.iter().map(|(text, _)| error(text)).collect()).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    for (text, expected) in messages {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        let failed = agent.request("session/prompt", params).await.unwrap_err();
        let (_, message) = failed["message"].as_str().unwrap().split_once("(HTTP 400): ").unwrap();
        assert_eq!(message, format!("{expected} ({})", failed["data"]["hint"].as_str().unwrap()), "{text}");
    }
    agent.finish().await;
    provider.finish().await;
}

#[tokio::test]
async fn urls_with_credentials_are_found() {
    let home = Home::new();
    let check = async |url: &str| {
        home.config(&format!("[providers.mine]\nbase_url = '{url}'\n"));
        let ran = home.run(&["config", "check"], "").await;
        ran.stdout + &ran.stderr
    };
    for url in ["http://me:pw@host", "http:me:pw@host", "https:\\\\pw@host/v1", "me:pw@host:1", "http://me:p/w@host"] {
        let checked = check(url).await;
        assert!(checked.contains("providers.mine.base_url has a user name or password"), "{url}: {checked}");
    }
    for url in ["", "host", "host:1", "http://host:80/@x", "http://[::1]:80/a@b", "http://host/?a@b", "https://host/v1"] {
        let checked = check(url).await;
        let other = if url.starts_with("http") { "the settings are valid" } else { "is not a URL with the scheme" };
        assert!(checked.contains(other), "{url}: {checked}");
    }
}

/// An `@` in the path of a `base_url` is not a password.
#[tokio::test]
async fn base_url_with_at_sign_in_path_is_accepted() {
    let home = Home::new();
    home.config("[providers.mine]\nbase_url = \"https://127.0.0.1:1/v1/@cf/meta\"\n");
    assert_eq!(home.run(&["config", "check"], "").await.code, 0);
}

#[tokio::test]
async fn key_in_query_of_base_url_is_masked() {
    let wire = &WIRES[1];
    let provider = Provider::start(wire.protocol, vec![Exchange::error(404, r#"{"error":{"message":"nothing here"}}"#)]).await;
    let home = Home::new();
    let settings = |base_url: &str| {
        home.config(&format!(
            "model = \"mine/x\"\n[providers.mine]\nbase_url = \"{base_url}\"\napi_key_command = [\"echo\", \"{KEY}\"]\n"
        ));
    };
    settings(&format!("{}/v1?key={PASSWORD}&x=", provider.base_url));
    home.env("NUNCIO_LOG", "trace");
    let shown = home.run(&["config", "show"], "").await;
    assert!(shown.code == 0 && shown.stdout.contains("/v1?key=***"), "{shown:?}");
    let refused = home.run(&["run", "go"], "").await;
    assert!(refused.code == 1 && refused.stderr.contains("nothing here"), "{refused:?}");
    provider.finish().await;
    // No server at the address, and an invalid address.
    settings(&format!("http://127.0.0.1:1/v1?key={PASSWORD}"));
    let unreachable = home.run(&["run", "go"], "").await;
    settings(&format!("http://[::/v1?key={PASSWORD}"));
    let invalid = home.run(&["run", "go"], "").await;
    // The error quotes the line of an invalid file.
    home.config(&format!("[providers.mine]\nbase_url = \"http://127.0.0.1:1/v1?key={PASSWORD}\n"));
    let unreadable = home.run(&["config", "check"], "").await;
    for ran in [shown, refused, unreachable, invalid, unreadable] {
        assert!(!format!("{ran:?}").contains(PASSWORD), "{ran:?}");
    }
    assert_not_stored(&home, PASSWORD, "a key in a query");
}
