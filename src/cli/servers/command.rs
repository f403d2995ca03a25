//! `nuncio mcp`: lists, checks, adds and removes MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};

use super::login::{login, logout, unknown_server};
use crate::api::App;
use crate::app::{self, Bootstrap};
use crate::cli::flags::server_flags::{McpAddOptions, McpCommand};
use crate::cli::mcp_serve;
use crate::cli::terminal::output::{print, print_json};
use crate::config::server_file::{add_server, remove_server};
use crate::config::{McpServer, SecretText, mask_urls};
use crate::error::{Error, Result};
use crate::limits;
use crate::mcp::{Offer, State, describe_omitted};
use crate::runtime::{SessionEnvironment, start_server};
use crate::terminal_text::output_line;

/// Runs `nuncio mcp`. Returns the exit code.
pub(crate) async fn run(bootstrap: Bootstrap, command: McpCommand) -> Result<u8> {
    match command {
        McpCommand::Serve => mcp_serve::serve(bootstrap).await,
        McpCommand::List { json } => list(&*app::build(bootstrap)?, json),
        McpCommand::Check { names, json } => check(app::build(bootstrap)?, names, json).await,
        McpCommand::Login { name } => login(&*app::build(bootstrap)?, &name).await,
        McpCommand::Logout { name } => logout(&*app::build(bootstrap)?, &name).await,
        McpCommand::Add(options) => {
            let (name, server) = (options.name.clone(), server(options)?);
            server.check().map_err(|why| Error::invalid_params(format!("{name}: {why}")))?;
            add_server(&bootstrap.places.file, &name, &server)?;
            print(format!("added {name} to {}; to test it: nuncio mcp check {name}\n", bootstrap.places.file.display())).map(|()| 0)
        }
        McpCommand::Rm { name } => {
            remove_server(&bootstrap.places.file, &name)?;
            print(format!("removed {name} from {}\n", bootstrap.places.file.display())).map(|()| 0)
        }
    }
}

/// Creates the settings of a server from the command line. Fails if an environment variable or a
/// header is not `NAME=VALUE`.
fn server(options: McpAddOptions) -> Result<McpServer> {
    let pairs = |texts: Vec<String>| -> Result<BTreeMap<String, SecretText>> {
        let pair = |text: String| match text.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), SecretText(value.to_owned()))),
            None => Err(Error::invalid_params(format!("{text}: expected NAME=VALUE"))),
        };
        texts.into_iter().map(pair).collect()
    };
    Ok(McpServer {
        command: options.command,
        env: pairs(options.env)?,
        url: options.url,
        headers: pairs(options.headers)?,
        bearer_token_env: options.bearer_token_env,
        ..McpServer::default()
    })
}

/// Returns the URL of a server without its secrets, or the command of a server without a URL.
fn target(server: &McpServer) -> String {
    server.url.as_deref().map_or_else(|| server.command.join(" "), mask_urls)
}

fn list(app: &App, as_json: bool) -> Result<u8> {
    let loaded = app.services.settings(&app.cwd)?;
    for (name, server) in &loaded.settings.mcp {
        if as_json {
            let settings =
                serde_json::to_value(server).map_err(|error| Error::internal(format!("serializing settings: {error}")))?;
            print_json(format!("{}\n", json!({ "name": name, "settings": settings })))?;
        } else {
            let state = if server.enabled { "" } else { " (not enabled)" };
            print(output_line(&format!("{name:16} {}{state}", target(server))) + "\n")?;
        }
    }
    Ok(0)
}

/// Connects to servers concurrently and prints each result when it is there. Returns exit code 1 if
/// a server failed.
async fn check(app: Arc<App>, names: Vec<String>, as_json: bool) -> Result<u8> {
    let environment = Arc::new(SessionEnvironment::new(app.services.clone(), None, None, app.cwd.clone(), Vec::new(), None)?);
    let mut servers = app.services.settings(&app.cwd)?.settings.mcp;
    if let Some(unknown) = names.iter().find(|name| !servers.contains_key(*name)) {
        return Err(unknown_server(unknown, &servers));
    }
    servers.retain(|name, server| if names.is_empty() { server.enabled } else { names.contains(name) });
    let checks = servers.iter().map(|(name, server)| {
        let environment = environment.clone();
        async move {
            let started = Instant::now();
            (name, connect(name, server, &environment).await, started.elapsed().as_millis() as u64)
        }
    });
    let (mut checks, mut failed) = (checks.collect::<FuturesUnordered<_>>(), false);
    while let Some((name, result, ms)) = checks.next().await {
        failed |= result.is_err();
        if as_json {
            print_json(format!("{}\n", json_line(name, &result, ms)))?;
        } else {
            print(output_line(&text_line(name, &result, ms)) + "\n")?;
        }
    }
    drop(checks);
    app.shut_down().await;
    Ok(u8::from(failed))
}

/// Starts a server and returns its offer. The error is a message.
pub(in crate::cli) async fn connect(
    name: &str,
    server: &McpServer,
    environment: &SessionEnvironment,
) -> std::result::Result<Arc<Offer>, String> {
    let server = start_server(name, server, environment)?;
    let _ = tokio::time::timeout(limits::MCP_START, server.started()).await;
    match server.state() {
        State::Ready(connection) => Ok(connection.offer.clone()),
        State::Failed { why, .. } => Err(why),
        State::Starting { fault } => {
            Err(fault.unwrap_or_else(|| format!("it did not start within {} s", limits::MCP_START.as_secs())))
        }
    }
}

fn text_line(name: &str, result: &std::result::Result<Arc<Offer>, String>, ms: u64) -> String {
    match result {
        Ok(offer) => {
            let resources = if offer.resources { ", resources" } else { "" };
            let (tools, prompts) = (offer.tools.len(), offer.prompts.len());
            let omitted = if offer.omitted.is_empty() { String::new() } else { format!("; {}", describe_omitted(&offer.omitted)) };
            format!(
                "ok   {name:16} {tools} tools, {prompts} prompts{resources}; {} (protocol {}), {ms} ms{omitted}",
                offer.server, offer.protocol
            )
        }
        Err(why) => format!("FAIL {name:16} {why}"),
    }
}

fn json_line(name: &str, result: &std::result::Result<Arc<Offer>, String>, ms: u64) -> Value {
    match result {
        Ok(offer) => json!({
            "name": name,
            "ok": true,
            "server": offer.server,
            "protocol": offer.protocol,
            "tools": offer.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(),
            "prompts": offer.prompts.iter().map(|prompt| &*prompt.name).collect::<Vec<_>>(),
            "omitted": offer.omitted,
            "resources": offer.resources,
            "ms": ms,
        }),
        Err(why) => json!({ "name": name, "ok": false, "error": why, "ms": ms }),
    }
}
