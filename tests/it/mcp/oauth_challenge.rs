//! Signing in with what the server's refusal names: the address of the metadata, and the scope.

use serde_json::json;

use super::oauth::{Login, OauthServer, get};
use super::{calls, text};
use harness::Home;
use harness::steps::calls_one;

/// Signs in. Returns the scopes for which the browser asked, in order.
async fn sign_in(home: &Home) -> Vec<String> {
    let login = Login::start(home).await;
    let query = login.address.split_once('?').unwrap().1.to_owned();
    let scope = query.split('&').find_map(|pair| pair.strip_prefix("scope=")).unwrap_or_default();
    let scopes = scope.split(['+', ' ']).flat_map(|part| part.split("%20")).map(String::from).collect();
    assert_eq!(get(&login.browse().await).await.status, 200);
    let (code, output) = login.end().await;
    assert_eq!((code, output.contains("signed in to docs")), (0, true), "{output}");
    scopes
}

#[tokio::test]
async fn login_uses_the_metadata_and_the_scope_of_the_refusal() {
    let home = Home::new();
    let guarded = OauthServer::start_with(&home, &["600", "challenge"], "").await;
    assert_eq!(sign_in(&home).await, ["tools", "files"]);
    let checked = home.run(&["mcp", "check"], "").await;
    assert_eq!(checked.code, 0, "{checked:?}");
    assert_eq!(guarded.log(), ["authorization_code ok"]);
}

#[tokio::test]
async fn call_without_the_scope_names_the_login_which_asks_for_it() {
    let home = Home::new();
    let _guarded = OauthServer::start_with(&home, &["600", "challenge"], "").await;
    sign_in(&home).await;
    let steps = [calls_one("mcp__docs__admin", json!({})), calls_one("mcp__docs__whoami", json!({}))];
    let finished = calls(&home, &steps).await;
    let refused = text(&finished[0]);
    assert!(refused.contains("the MCP server docs: it requires the scope \"admin\""), "{refused}");
    assert!(refused.contains("nuncio mcp login docs"), "{refused}");
    // The server still serves what the tokens allow.
    assert_eq!(text(&finished[1]), "the owner");
    assert_eq!(sign_in(&home).await, ["tools", "files", "admin"]);
    assert_eq!(text(&calls(&home, &steps[..1]).await[0]), "the owner");
    // The wider scope is also asked for at the next sign-in, but not after `logout`.
    assert_eq!(home.run(&["mcp", "logout", "docs"], "").await.code, 0);
    assert_eq!(sign_in(&home).await, ["tools", "files"]);
}
