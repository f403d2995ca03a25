//! Hostile documents: each ends at most the call that reads it.

mod cancel;
mod files;
mod hostile_pages;
mod pages;
mod together;

use serde_json::{Value, json};

use harness::steps::calls_one;
use harness::{Agent, Home, Site};

/// The type of a page.
const PAGE: &str = "200 OK\ncontent-type: text/html";

/// Returns a home in which `fetch` may use the site.
async fn home() -> (Home, Site) {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&format!("tools.fetch_allowed_hosts = [\"{}\"]\n", site.host));
    (home, site)
}

/// A step that fetches a page.
fn fetch(site: &Site, path: &str) -> Value {
    calls_one("fetch", json!({"url": site.url(path)}))
}

/// Sends a prompt whose turn has one call. Returns the status and the text of its result.
async fn result(agent: &mut Agent, session: &str) -> (String, String) {
    let (_, updates) = agent.turn(session, "go").await;
    let call = harness::tool(&updates, 0);
    (call["status"].as_str().unwrap_or_default().into(), call["content"].to_string())
}
