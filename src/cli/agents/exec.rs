//! `nuncio agents exec`: an agent's own terminal client in place of this process.

use std::ffi::OsString;

use crate::api::App;
use crate::error::{Error, Result};
use crate::http::{Tokens, running_server};
use crate::hub::{self, HookServer};

/// Replaces this process by the terminal client of the agent that the first word names, with the
/// other words as its arguments. Returns only on failure.
pub(in crate::cli) async fn run(app: &App, words: Vec<OsString>) -> Result<u8> {
    let mut words = words.into_iter();
    let name = words.next().and_then(|name| name.into_string().ok());
    let name = name.ok_or_else(|| Error::invalid_params("the name of the agent is missing"))?;
    let command = hub::terminal_command(&app.services, &name, &app.cwd, words.collect(), hook_server(app)).await?;
    Err(app.services.launcher.replace_process(&command))
}

/// Finds the server that the agent's hooks call: the server of `NUNCIO_HTTP`, else a server of this
/// data directory on this machine. Only `http://` URLs are supported.
fn hook_server(app: &App) -> Option<HookServer> {
    let environment = &app.services.environment;
    let data = &app.services.places.data;
    let given = environment.get("NUNCIO_HTTP").map(str::to_owned);
    // Skip `https://`: the agent does not trust a certificate that the user created.
    let url = given.or_else(|| running_server(data)).filter(|url| url.starts_with("http://"))?;
    let token = match environment.get("NUNCIO_HOOK_TOKEN") {
        Some(token) => token.to_owned(),
        None => Tokens::new(data).hook_token().ok()?,
    };
    Some(HookServer { url, token })
}
