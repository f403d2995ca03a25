//! `nuncio mcp login` and `nuncio mcp logout`.

use std::collections::BTreeMap;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;

use crate::api::App;
use crate::cli::terminal::output::{print, print_stderr};
use crate::config::McpServer;
use crate::error::{Error, Result};
use crate::mcp::{LoginRequest, McpLogin, McpTokens};
use crate::runtime::oauth_client;
use crate::terminal_text::output_line;

/// Signs in to a server. Returns the exit code.
pub(in crate::cli) async fn login(app: &App, name: &str) -> Result<u8> {
    let (server, url) = server(app, name)?;
    let own = server.headers.keys().any(|header| header.eq_ignore_ascii_case("authorization"));
    if own || server.bearer_token_env.is_some() || server.bearer_token_command.is_some() {
        return Err(Error::invalid_params(format!("MCP server {name} has a token in the settings, which replaces the sign-in")));
    }
    let failed = |error: Error| Error { message: format!("signing in to {name} failed: {}", error.message), ..error };
    let oauth = server.oauth.clone().unwrap_or_default();
    let client = oauth_client(&server, &app.services).map_err(|why| failed(Error::invalid_params(why)))?;
    let request = LoginRequest { url, client, scopes: oauth.scopes, port: oauth.port.unwrap_or(0) };
    let tokens = McpTokens::new(&app.services.places.mcp_tokens());
    let login = McpLogin::start(request, &app.services.models.clients, &tokens).await.map_err(failed)?;
    let address = output_line(login.address());
    print(format!(
        "To sign in to {name}, open this address in a browser:\n\n{address}\n\n\
         If the browser runs on another machine, paste the address that it shows at the end.\n"
    ))?;
    let (sender, pasted) = mpsc::channel(1);
    let reading = crate::task::spawn(async move {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if sender.send(line).await.is_err() {
                return;
            }
        }
    });
    let finished = login.finish(pasted, |text| print_stderr(format!("{text}\n"))).await;
    reading.abort();
    finished.map_err(failed)?;
    print(format!("signed in to {name}; to test it: nuncio mcp check {name}\n")).map(|()| 0)
}

/// Removes the tokens of a server. Returns the exit code.
pub(in crate::cli) async fn logout(app: &App, name: &str) -> Result<u8> {
    let (_, url) = server(app, name)?;
    let tokens = McpTokens::new(&app.services.places.mcp_tokens()).for_url(&url);
    // A process that refreshes the tokens writes them first.
    let _locked = tokens.lock().await.map_err(|why| Error::internal(format!("locking the tokens of {name}: {why}")))?;
    let removed = tokens.remove();
    match removed.map_err(|error| Error::io(format_args!("removing the tokens of {name}"), error))? {
        true => print(format!("removed the tokens of {name}\n")).map(|()| 0),
        false => print(format!("there are no tokens of {name}\n")).map(|()| 0),
    }
}

/// Finds a server in the settings, and returns it with its URL. Fails if the server is a program.
fn server(app: &App, name: &str) -> Result<(McpServer, String)> {
    let mut servers = app.services.settings(&app.cwd)?.settings.mcp;
    let server = servers.remove(name).ok_or_else(|| unknown_server(name, &servers))?;
    let url = server.url.clone().ok_or_else(|| Error::invalid_params(format!("MCP server {name} is a program, not a URL")))?;
    Ok((server, url))
}

/// Creates the error for a server name that the settings do not contain.
pub(in crate::cli) fn unknown_server(name: &str, servers: &BTreeMap<String, McpServer>) -> Error {
    let known: Vec<&str> = servers.keys().map(String::as_str).collect();
    let hint = match known.is_empty() {
        true => "the settings have no MCP servers; to add one: nuncio mcp add".into(),
        false => format!("the settings have: {}", known.join(", ")),
    };
    Error::invalid_params(format!("MCP server \"{name}\" is unknown")).hint(hint)
}
