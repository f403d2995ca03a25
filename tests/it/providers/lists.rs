//! Lists of the models that providers offer: cache, errors, and the places that show the lists.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use harness::provider::session::LOCAL;
use harness::{Agent, CommandResult, Home, Site, Watch, WatchFlags, bounded};

pub const OK: &str = "200 OK\ncontent-type: application/json";

pub fn listed(ran: &CommandResult) -> Value {
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn ids(list: &Value) -> Vec<&str> {
    list["models"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect()
}

/// Adds a provider `name` with a key and one model `NAME-1`; returns the settings.
fn simple(home: &Home, site: &Site, name: &str) -> String {
    let variable = format!("KEY_{}", name.to_uppercase());
    home.env(&variable, &format!("secret-of-{name}"));
    site.page(&format!("/{name}/models"), OK, json!({"data": [{"id": format!("{name}-1")}]}).to_string());
    format!("[providers.{name}]\nbase_url = \"{}\"\napi_key_env = \"{variable}\"\n", site.url(&format!("/{name}")))
}

fn cache(home: &Home) -> std::path::PathBuf {
    home.data().join("models.json")
}

/// Makes all cached lists older than a day.
fn age(home: &Home) {
    let mut content: Value = serde_json::from_slice(&std::fs::read(cache(home)).unwrap()).unwrap();
    for list in content["lists"].as_array_mut().unwrap() {
        list["fetchedMs"] = json!(list["fetchedMs"].as_u64().unwrap() - 25 * 3_600_000);
    }
    std::fs::write(cache(home), content.to_string()).unwrap();
}

#[tokio::test]
async fn cached_list_is_shown_without_request_until_it_is_old() {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&format!("model = \"a/a-1\"\n{}", simple(&home, &site, "a")));
    for (arguments, requests) in [(&["models"][..], 1), (&["models"], 1), (&["models", "--json"], 1), (&["models", "--refresh"], 2)]
    {
        let ran = home.run(arguments, "").await;
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
        assert!(ran.stdout.contains("a/a-1"), "{ran:?}");
        assert_eq!(site.asked().len(), requests, "{arguments:?}");
    }
    let mode = std::fs::metadata(cache(&home)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!std::fs::read_to_string(cache(&home)).unwrap().contains("secret"));
    age(&home);
    assert_eq!(listed(&home.run(&["models", "--json"], "").await)["models"][0]["isDefault"], true);
    assert_eq!(site.asked().len(), 3);
    // An old list is better than none.
    site.page("/a/models", "500 Internal Server Error", "");
    age(&home);
    let ran = home.run(&["models"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("* a/a-1") && ran.stderr.contains("HTTP 500"), "{ran:?}");
}

#[tokio::test]
async fn error_of_one_provider_does_not_hide_the_others() {
    let (home, site) = (Home::new(), Site::start().await);
    let settings = ["c", "a", "b", "d"].map(|name| simple(&home, &site, name)).concat();
    home.config(&settings);
    site.page("/b/models", "401 Unauthorized", r#"{"error":{"message":"bad key secret-of-b"}}"#);
    site.page("/d/models", "200 OK", "<html>");
    let ran = home.run(&["models", "--json"], "").await;
    let list = listed(&ran);
    assert_eq!(ids(&list), ["a/a-1", "c/c-1"]);
    assert!(ran.stderr.contains("b: the key was refused (HTTP 401)") && ran.stderr.contains("check KEY_B"), "{ran:?}");
    assert!(ran.stderr.contains("does not return a list of models") && ran.stderr.contains("base_url"), "{ran:?}");
    assert!(!ran.stderr.contains("secret-of"), "{ran:?}");
    let states: Vec<(&str, bool, bool)> = list["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["updatedAt"].is_string(), one["error"].is_string()))
        .collect();
    assert_eq!(states, [("a", true, false), ("b", false, true), ("c", true, false), ("d", false, true)]);
    // The exit code reports that no list is available.
    let ran = home.run(&["models", "b", "d"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
    let ran = home.run(&["models", "nowhere"], "").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("known providers: anthropic, "), "{ran:?}");
    let ran = home.run(&["models", "groq"], "").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("set GROQ_API_KEY"), "{ran:?}");
}

#[tokio::test]
async fn base_url_option_does_not_send_other_keys() {
    let (home, site, other) = (Home::new(), Site::start().await, Site::start().await);
    home.config(&format!("model = \"b/b-1\"\n{}{}", simple(&home, &site, "a"), simple(&home, &site, "b")));
    other.page("/models", OK, r#"{"data":[{"id":"b-2"}]}"#);
    let list = listed(&home.run(&["models", "--json", "--base-url", &other.url("")], "").await);
    assert_eq!(ids(&list), ["b/b-1", "b/b-2"]);
    assert_eq!(site.asked(), Vec::<String>::new());
    let asked = other.asked();
    assert!(asked.len() == 1 && asked[0].contains("secret-of-b"), "{asked:?}");
}

#[tokio::test]
async fn damaged_cache_is_replaced() {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&simple(&home, &site, "a"));
    let future = json!({"version": 99, "lists": [{"provider": "a"}]}).to_string();
    assert_eq!(ids(&listed(&home.run(&["models", "--json"], "").await)), ["a/a-1"]);
    let large = std::fs::read_to_string(cache(&home)).unwrap() + &" ".repeat(8 << 20);
    let damages = ["", "{", "[]", "{\"version\":1,\"lists\":[{}]}", "\u{0}\u{0}", &future, &large];
    for (index, damage) in damages.into_iter().enumerate() {
        std::fs::write(cache(&home), damage).unwrap();
        assert_eq!(ids(&listed(&home.run(&["models", "--json"], "").await)), ["a/a-1"], "{}", damage.trim_end());
        assert_eq!(site.asked().len(), index + 2, "{}", damage.trim_end());
    }
    let mut agent = home.start(&[]).await;
    std::fs::write(cache(&home), "damaged").unwrap();
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.new_session(&home).await;
    agent.finish().await;
}

#[tokio::test]
async fn processes_keep_the_lists_of_each_other() {
    let (home, site) = (Home::new(), Site::start().await);
    let names: Vec<String> = ('a'..='h').map(String::from).collect();
    home.config(&names.iter().map(|name| simple(&home, &site, name)).collect::<String>());
    let runs = names.iter().map(|name| async { home.run(&["models", name], "").await });
    for ran in futures_util::future::join_all(runs).await {
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    }
    let list = listed(&home.run(&["models", "--json"], "").await);
    assert_eq!(ids(&list).len(), names.len());
    assert_eq!(site.asked().len(), names.len(), "all lists are cached");
}

/// Locks the cache as a writing process does. The lock ends with the file.
fn lock(home: &Home) -> std::fs::File {
    let lock = std::fs::File::create(cache(home).with_extension("lock")).unwrap();
    lock.lock().unwrap();
    lock
}

#[tokio::test]
async fn older_list_does_not_replace_newer_list() {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&format!("model = \"a/a-1\"\n{}", simple(&home, &site, "a")));
    home.run(&["models"], "").await;
    let mut content: Value = serde_json::from_slice(&std::fs::read(cache(&home)).unwrap()).unwrap();
    content["lists"][0]["models"][0]["name"] = json!("a-2");
    let locked = lock(&home);
    let opened = Watch::new(&cache(&home).with_extension("lock"), WatchFlags::OPEN);
    let other = async {
        opened.next().await;
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        content["lists"][0]["fetchedMs"] = json!(now.as_millis() as u64);
        std::fs::write(cache(&home), content.to_string()).unwrap();
        drop(locked);
    };
    let (ran, ()) = tokio::join!(home.run(&["models", "--refresh", "--json"], ""), other);
    assert_eq!(ids(&listed(&ran)), ["a/a-1", "a/a-2"]);
    assert_eq!(ids(&listed(&home.run(&["models", "--json"], "").await)), ["a/a-1", "a/a-2"]);
}

#[tokio::test]
async fn locked_cache_does_not_block() {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&simple(&home, &site, "a"));
    let locked = lock(&home);
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.call("_nuncio/model/list", json!({"refresh": true})).await;
    agent.finish().await;
    assert_eq!(home.run(&["models"], "").await.code, 0);
    assert!(!cache(&home).exists());
    drop(locked);
}

fn model_option(made: &Value) -> Vec<String> {
    let options = made["configOptions"].as_array().unwrap();
    let model = options.iter().find(|option| option["id"] == "model").unwrap_or_else(|| panic!("no option model: {made}"));
    model["options"].as_array().unwrap().iter().map(|choice| choice["value"].as_str().unwrap().to_owned()).collect()
}

async fn new_session(agent: &mut Agent, home: &Home) -> Vec<String> {
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    model_option(&agent.call("session/new", json!({"cwd": home.work()})).await)
}

#[tokio::test]
async fn session_lists_cached_models_and_requests_old_lists_later() {
    let (home, site) = (Home::new(), Site::start().await);
    let settings = format!("model = \"a/a-1\"\n{}{}", simple(&home, &site, "a"), simple(&home, &site, "c"));
    // The command that prints a key may ask for a password.
    home.config(&settings.replace("api_key_env = \"KEY_C\"", "api_key_command = [\"echo\", \"k\"]"));
    home.run(&["models"], "").await;
    age(&home);
    let before = site.asked().len();
    let mut agent = home.start(&[]).await;
    // The answer does not wait for a request.
    site.hold(true);
    assert_eq!(new_session(&mut agent, &home).await, ["a/a-1", "c/c-1"]);
    site.page("/a/models", OK, json!({"data": [{"id": "a-1"}, {"id": "a-2"}]}).to_string());
    // The list is requested once for several sessions.
    agent.call("session/new", json!({"cwd": home.work()})).await;
    let requested = async {
        while site.asked().len() == before {
            site.came().await;
        }
    };
    bounded("the request for the old list", requested).await;
    let replaced = Watch::new(&home.data(), WatchFlags::MOVED_TO);
    site.hold(false);
    while ids(&agent.call("_nuncio/model/list", json!({})).await).len() < 3 {
        replaced.next().await;
    }
    assert_eq!(new_session(&mut agent, &home).await, ["a/a-1", "a/a-2", "c/c-1"]);
    agent.finish().await;
    let asked = site.asked();
    assert!(asked.len() == before + 1 && asked[before].contains("/a/models"), "{asked:?}");
}

#[tokio::test]
async fn model_option_is_bounded_and_fair() {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&format!("model = \"few/few-1\"\n{}{}", simple(&home, &site, "many"), simple(&home, &site, "few")));
    let entries: Vec<Value> = (0..500).map(|index| json!({"id": format!("m{index}")})).collect();
    site.page("/many/models", OK, json!({"data": entries}).to_string());
    let few =
        json!({"data": [{"id": "no-tools", "supports_tools": false}, {"id": "few-1", "supports_tools": false}, {"id": "few-2"}]});
    site.page("/few/models", OK, few.to_string());
    assert_eq!(ids(&listed(&home.run(&["models", "--json"], "").await)).len(), 503);
    let mut agent = home.start(&[]).await;
    let choices = new_session(&mut agent, &home).await;
    agent.finish().await;
    assert_eq!(choices[0], "few/few-1");
    let few: Vec<&String> = choices.iter().filter(|id| id.starts_with("few/")).collect();
    assert_eq!(few, ["few/few-1", "few/few-2"], "a model without tools is left out, unless it is selected");
    assert!(choices.len() > 190 && choices.len() <= 200, "{}", choices.len());
}

#[tokio::test]
async fn model_list_method_shows_and_refreshes_lists() {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&format!("model = \"a/a-1\"\n{}", simple(&home, &site, "a")));
    let mut agent = home.start(&[]).await;
    let list = agent.call("_nuncio/model/list", json!({})).await;
    assert_eq!((ids(&list), list["default"].as_str()), (vec!["a/a-1"], Some("a/a-1")));
    assert_eq!(list["providers"], json!([{"name": "a"}]));
    site.page("/a/models", OK, json!({"data": [{"id": "a-1", "context_length": 5_000}, {"id": "a-2"}]}).to_string());
    let list = agent.call("_nuncio/model/list", json!({"refresh": true})).await;
    assert_eq!(ids(&list), ["a/a-1", "a/a-2"]);
    let first = &list["models"][0];
    assert_eq!((&first["contextWindow"], &first["isDefault"], &first["source"]), (&json!(5_000), &json!(true), &json!("provider")));
    assert_eq!((&first["provider"], &first["name"]), (&json!("a"), &json!("a-1")));
    assert!(list["providers"][0]["updatedAt"].as_str().unwrap().starts_with("20"), "{list}");
    agent.finish().await;

    let server = home.serve(&[]).await;
    let requests = site.asked().len();
    assert_eq!(ids(&server.get("/v1/models").expect(200).await), ["a/a-1", "a/a-2"]);
    assert_eq!(site.asked().len(), requests);
    server.get("/v1/models?refresh=true").expect(200).await;
    assert_eq!(site.asked().len(), requests + 1);
    let token = home.run(&["token", "new", "reader", "--role", "observer"], "").await.stdout;
    let observer = server.with_token(token.trim());
    assert_eq!(ids(&observer.get("/v1/models").expect(200).await).len(), 2);
    observer.get("/v1/models?refresh=true").expect(403).await;
    server.stop().await;
}

/// Local servers that are not configured are not asked unless no other provider is.
#[tokio::test]
async fn local_server_is_listed_if_found() {
    let (home, site) = (Home::new(), Site::start().await);
    home.env("OLLAMA_HOST", &site.host);
    let others = LOCAL.iter().filter(|name| **name != "ollama");
    let settings: String = others.map(|name| format!("[providers.{name}]\nbase_url = \"http://127.0.0.1:1/v1\"\n")).collect();
    home.config(&settings);
    let models = json!({"object": "list", "data": [{"id": "q:1b", "object": "model", "owned_by": "library"}]});
    site.page("/v1/models", OK, models.to_string());
    site.page("/api/version", OK, r#"{"version":"0.12.3"}"#);
    site.page("/api/tags", OK, r#"{"models":[{"name":"q:1b"},{"name":"q:8b"}]}"#);
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let list = agent.call("_nuncio/model/list", json!({"refresh": true})).await;
    agent.finish().await;
    assert_eq!(ids(&list), ["ollama/q:1b", "ollama/q:8b"]);
    assert_eq!(list["default"], "ollama/q:1b");
    let requests = site.asked().len();
    home.config(&simple(&home, &site, "a"));
    let list = listed(&home.run(&["models", "--json", "--model", "a/a-1"], "").await);
    assert_eq!(ids(&list), ["a/a-1"]);
    assert_eq!(site.asked().len(), requests + 1);
}

#[tokio::test]
async fn table_shows_properties() {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&format!("model = \"a/a-1\"\n{}", simple(&home, &site, "a")));
    let entries = json!({"data": [
        {"id": "a-1", "context_length": 1_048_576, "max_completion_tokens": 64_000, "pricing": {"prompt": "0.00000125", "completion": "0.00001"},
         "supported_parameters": ["tools"]},
        {"id": "b", "context_length": 512},
    ]});
    site.page("/a/models", OK, entries.to_string());
    let ran = home.run(&["models"], "").await;
    let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1], ["*", "a/a-1", "1.05M", "64k", "$1.25/$10", "tools", "-"], "{ran:?}");
    assert_eq!(lines[2][..3], ["a/b", "512", "-"], "{ran:?}");
}
