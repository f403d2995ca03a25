//! Permission for `fetch`: rules match URLs, including redirect targets.

use serde_json::json;

use harness::verdict::Verdict::{Allow, Ask, Deny};
use harness::verdict::verdict;
use harness::{Home, Reply, Site, tool};

#[tokio::test]
async fn fetch_patterns_match_urls() {
    let home = Home::new();
    let site = Site::start().await;
    site.page("/open/a", "200 OK\ncontent-type: text/plain", "a");
    site.page("/secret", "200 OK\ncontent-type: text/plain", "s");
    site.page("/else", "200 OK\ncontent-type: text/plain", "e");
    let open = format!(r#"{{ tool = "fetch", pattern = "{}", policy = "allow" }}"#, site.url("/open/*"));
    let secret = format!(r#"{{ pattern = "{}", policy = "deny" }}"#, site.url("/secret*"));
    home.config(&format!("[tools]\nfetch_allowed_hosts = [\"{}\"]\n[permissions]\nrules = [ {open}, {secret} ]\n", site.host));
    let rows = [
        ("ask", site.url("/open/a"), Allow),
        ("ask", site.url("/open/../open/a"), Allow),
        ("ask", site.url("/open/../secret"), Deny),
        ("ask", site.url("/else"), Ask),
        ("ask", site.url("/open").replace("http://", "http://user@"), Ask),
        ("plan", site.url("/else"), Deny),
        ("accept-edits", site.url("/else"), Ask),
        ("auto", site.url("/else"), Allow),
        ("auto", site.url("/secret"), Deny),
        ("auto", site.url("/secret").to_uppercase().replace("/SECRET", "/secret"), Deny),
    ];
    for (mode, url, expected) in rows {
        assert_eq!(verdict(&home, mode, "fetch", &json!({"url": url})).await, expected, "{mode} {url}");
    }
}

#[tokio::test]
async fn host_names_are_normalized_before_matching() {
    let home = Home::new();
    home.config("[permissions]\nrules = [ { pattern = \"http://evil.example/*\", policy = \"deny\" } ]\n");
    for (url, expected) in [
        ("http://evil.example/x", Deny),
        ("http://evil.example./x", Deny),
        ("http://EVIL.example.:80/x", Deny),
        ("http://evil.example.org/x", Ask),
    ] {
        assert_eq!(verdict(&home, "ask", "fetch", &json!({"url": url})).await, expected, "{url}");
    }
}

#[tokio::test]
async fn redirect_targets_require_their_own_permission() {
    let home = Home::new();
    let (site, other) = (Site::start().await, Site::start().await);
    other.page("/", "200 OK\ncontent-type: text/plain", "other");
    site.page("/secret", "200 OK\ncontent-type: text/plain", "secret");
    site.page("/else", "200 OK\ncontent-type: text/plain", "else");
    for (path, to) in [("/open/secret", "/secret"), ("/open/else", "/else"), ("/open/name", "http://localhost:9/")] {
        site.redirect(path, to);
    }
    let open = format!(r#"{{ tool = "fetch", pattern = "{}", policy = "allow" }}"#, site.url("/open/*"));
    let secret = format!(r#"{{ pattern = "{}", policy = "deny" }}"#, site.url("/secret*"));
    let hosts = format!("\"{}\", \"{}\"", site.host, other.host);
    home.config(&format!("[tools]\nfetch_allowed_hosts = [ {hosts} ]\n[permissions]\nrules = [ {open}, {secret} ]\n"));
    let refused = |from: &str, to: &str| format!("{from} redirects to {to}, which needs its own permission: fetch that URL");
    let rows = [
        ("/open/secret", 1, refused(&site.url("/open/secret"), &site.url("/secret"))),
        ("/open/else", 0, "else\n".to_owned()),
        ("/open/name", 1, refused(&site.url("/open/name"), "http://localhost:9/")),
    ];
    for (path, code, told) in rows {
        let ran = home.run(&["tool", "fetch", &json!({"url": site.url(path)}).to_string()], "").await;
        assert_eq!((ran.code, ran.lines()[0]["output"].as_str().unwrap()), (code, told.as_str()), "{path}");
    }
    assert!(site.asked().iter().all(|head| !head.starts_with("GET /secret")));
}

#[tokio::test]
async fn always_applies_to_one_url_and_projects_cannot_allow_hosts() {
    let home = Home::new();
    let site = Site::start().await;
    site.page("/a?b=*", "200 OK\ncontent-type: text/plain", "a");
    let calls: Vec<_> =
        ["/a?b=*", "/a?b=*", "/a?b=x"].map(|path| json!({"name": "fetch", "input": {"url": site.url(path)}})).into();
    let model =
        home.script(json!([{"tool_calls": [calls[0]]}, {"tool_calls": [calls[1]]}, {"tool_calls": [calls[2]]}, {"text": "done"}]));
    home.put(".nuncio/config.toml", &format!("[tools]\nfetch_allowed_hosts = [ \"{}\" ]\n", site.host));
    let mut agent = home.start(&["--model", &model]).await;
    let session = agent.new_session(&home).await;
    agent.replies = [Reply::Pick("allow_always"), Reply::Pick("reject_once")].into();
    let (_, updates) = agent.turn(&session, "go").await;
    // The second call needs no permission request, the third call does. The project's
    // `fetch_allowed_hosts` setting has no effect.
    for (index, said) in ["not on the public web", "not on the public web", "denied by the user"].into_iter().enumerate() {
        let call = tool(&updates, index).to_string();
        assert!(call.contains(said), "{index}: {call}");
    }
    assert!(agent.replies.is_empty() && site.asked().is_empty());
    agent.finish().await;
}
