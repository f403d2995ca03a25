//! `nuncio sessions`: lists, shows, cancels, answers, exports, imports and deletes sessions.

use std::io::IsTerminal;
use std::sync::Arc;

use super::export;
use super::import;
use super::session_id::resolve;
use super::session_list::{ListFormat, list};
use super::session_requests::print_request;
use super::session_show;
use crate::api::{App, CancelTurn, CloseSession, DeleteSession, ListSessionsParams, SessionParams};
use crate::cli::flags::SessionsCommand;
use crate::cli::terminal::answer;
use crate::cli::terminal::lines::TerminalLines;
use crate::cli::terminal::output::{Colours, print, print_stderr};
use crate::client::SessionClient;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::session::Sessions;
use crate::terminal_text::output_line;

/// Runs `nuncio sessions`. Returns the exit code.
pub(crate) async fn run(app: Arc<App>, command: SessionsCommand, colours: Colours) -> Result<u8> {
    let sessions = app.sessions().await?.clone();
    let client = SessionClient::new(app.clone(), "terminal");
    let result = dispatch(&app, &client, &sessions, command, colours).await;
    app.shut_down().await;
    result.map(|()| 0)
}

async fn dispatch(
    app: &App,
    client: &SessionClient,
    sessions: &Arc<Sessions>,
    command: SessionsCommand,
    colours: Colours,
) -> Result<()> {
    match command {
        SessionsCommand::List { here, text, all, json } => {
            let request = ListSessionsParams { cwd: here.then(|| app.cwd.clone()), text, ..ListSessionsParams::default() };
            let format = match (json, all) {
                (true, _) => ListFormat::Json,
                (false, true) => ListFormat::All,
                (false, false) => ListFormat::Newest,
            };
            list(client, sessions, request, format).await
        }
        SessionsCommand::Show { id, json, follow: false } => {
            session_show::show(client, sessions, &resolve(sessions, &id).await?, json, colours).await
        }
        SessionsCommand::Show { id, json, follow: true } => {
            session_show::follow(client, sessions, &resolve(sessions, &id).await?, json, colours).await
        }
        SessionsCommand::Requests { id, turn, step } => {
            print_request(app, sessions, &resolve(sessions, &id).await?, turn.as_deref(), step).await
        }
        SessionsCommand::Cancel { id } => {
            client.call::<CancelTurn>(SessionParams { session_id: resolve(sessions, &id).await? }).await
        }
        SessionsCommand::Answer { id, option } => answer::run(client, &id, option).await,
        SessionsCommand::Export { id, layout, .. } => {
            export::export(app, sessions, &resolve(sessions, &id).await?, layout.as_deref()).await
        }
        SessionsCommand::Import { file } => import::import(app, sessions, &file).await,
        SessionsCommand::Rm { ids, yes } => remove(client, sessions, &ids, yes).await,
    }
}

/// Deletes sessions and prints their ids and titles. At a terminal, the user confirms first, unless
/// `yes` is true.
async fn remove(client: &SessionClient, sessions: &Sessions, given: &[String], yes: bool) -> Result<()> {
    let mut found: Vec<(SessionId, String)> = Vec::new();
    for given in given {
        let row = sessions.row(&resolve(sessions, given).await?).await?;
        let title = row.title.map(|title| format!("  {}", output_line(&title))).unwrap_or_default();
        found.push((row.id, title));
    }
    if !yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        found.iter().for_each(|(id, title)| print_stderr(format!("{id}{title}\n")));
        let lines = TerminalLines::default();
        let what = if found.len() == 1 { "this session".into() } else { format!("these {} sessions", found.len()) };
        if !lines.lock().await.confirm(&format!("Delete {what}?")).await {
            return Err(Error::new(Kind::Cancelled, "nothing was deleted"));
        }
    }
    for (id, title) in found {
        let session = SessionParams { session_id: id.clone() };
        // Deleting an unknown session succeeds, but closing one is an error.
        client.call::<CloseSession>(session.clone()).await?;
        client.call::<DeleteSession>(session).await?;
        print(format!("deleted {id}{title}\n"))?;
    }
    Ok(())
}
