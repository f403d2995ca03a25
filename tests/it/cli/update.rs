//! `nuncio update --check` requests the address of the settings, and nothing without it.

use super::check;
use harness::{Home, Site};

const JSON: &str = "200 OK\ncontent-type: application/json";

#[tokio::test]
async fn newer_version_is_reported_from_the_configured_address() {
    let home = Home::new();
    let site = Site::start().await;
    let this = env!("CARGO_PKG_VERSION");
    let same = format!(r#"{{"version": "{this}", "name": "nuncio"}}"#);
    let cases = [
        (r#"{"version": "999.0.1"}"#, 0, "nuncio 999.0.1 is available"),
        (same.as_str(), 0, "no newer version"),
        (r#"{"version": "0.0.9"}"#, 0, "no newer version"),
        (r#"{"version": "latest"}"#, 1, "invalid version"),
        ("{}", 1, "version"),
        ("<html>", 1, "update.url"),
    ];
    home.config(&format!("[update]\nurl = \"{}\"\n", site.url("/newest.json")));
    for (document, code, word) in cases {
        site.page("/newest.json", JSON, document);
        check(&home.run(&["update", "--check"], "").await, code, &[word]);
    }
    site.page("/newest.json", "404 Not Found", "");
    check(&home.run(&["update", "--check"], "").await, 1, &["404 Not Found"]);
    site.redirect("/newest.json", "/moved.json");
    site.page("/moved.json", JSON, r#"{"version": "999.0.1"}"#);
    check(&home.run(&["update", "--check"], "").await, 0, &["999.0.1"]);
    let requests = site.asked().len();
    assert_eq!(requests, cases.len() + 3, "{:?}", site.asked());
    // Other commands do not request it.
    home.run(&["config", "check"], "").await;
    home.run(&["run", "--model", "scripted:none", "go"], "").await;
    assert_eq!(site.asked().len(), requests);
}

#[tokio::test]
async fn without_the_setting_the_check_fails_with_a_hint() {
    let home = Home::new();
    check(&home.run(&["update", "--check"], "").await, 2, &["update.url is not set", "[update]"]);
    check(&home.run(&["update"], "").await, 2, &["--check"]);
    home.config("[update]\nurl = \"ftp://example.com/newest.json\"\n");
    check(&home.run(&["update", "--check"], "").await, 2, &["update.url", "http"]);
}

#[tokio::test]
async fn project_cannot_set_the_address() {
    let home = Home::new();
    let site = Site::start().await;
    home.put(".nuncio/config.toml", &format!("[update]\nurl = \"{}\"\n", site.url("/newest.json")));
    check(&home.run(&["update", "--check"], "").await, 2, &["update.url is not set"]);
    assert_eq!(site.asked(), Vec::<String>::new());
}
