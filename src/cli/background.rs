//! `nuncio run --bg` and `nuncio ps`: sessions whose process outlives the terminal.

use std::ffi::OsString;
use std::sync::Arc;

use serde_json::json;

use super::terminal::amounts::age;
use super::terminal::output::{print, print_json};
use crate::api::{App, ListSessions, ListSessionsParams, ListedSession, SessionStatus};
use crate::client::SessionClient;
use crate::error::{Error, Result};
use crate::event::BACKGROUND;
use crate::id::SessionId;
use crate::process::{DetachedStart, detach_output, leave_terminal, start_detached};
use crate::session::folds::turns::TurnStatus;
use crate::terminal_text::output_line;

/// Maximum number of sessions that are shown, and of pages that are read.
const SESSIONS_MAX: usize = 50;
const PAGES_MAX: usize = 20;

/// Starts this command again in a process of its own, and prints the id of its session. Returns the
/// exit code.
pub(super) fn start() -> Result<u8> {
    let program = std::env::current_exe().map_err(|error| Error::io("finding the program", error))?;
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    arguments.iter_mut().find(|argument| *argument == "--bg").into_iter().for_each(|bg| *bg = "--detached".into());
    match start_detached(&program, &arguments).map_err(|error| Error::io("starting a process in the background", error))? {
        DetachedStart::Started(id) => print(format!("{}\n", output_line(&id))).map(|()| 0),
        DetachedStart::Ended(code) => Ok(code),
    }
}

/// Leaves the terminal, if this process is the one that `start` began.
pub(super) fn begin(is_detached: bool) {
    if is_detached {
        leave_terminal();
    }
}

/// Reports the session of this process to the command that started it, which then ends.
pub(super) fn report(session: &SessionId) -> Result<()> {
    detach_output(&format!("{session}\n")).map_err(|error| Error::io("leaving the terminal", error))
}

/// Prints the sessions that work or wait, and those of `run --bg` that have ended.
pub(super) async fn list(app: Arc<App>, as_json: bool) -> Result<u8> {
    let client = SessionClient::new(app.clone(), "terminal");
    let (mut params, mut shown) = (ListSessionsParams::default(), 0);
    for _ in 0..PAGES_MAX {
        let page = client.call::<ListSessions>(params.clone()).await?;
        for session in page.sessions {
            let Some(state) = state(&session).filter(|_| shown < SESSIONS_MAX) else { continue };
            shown += 1;
            match as_json {
                true => print_json(format!(
                    "{}\n",
                    json!({
                        "sessionId": session.session_id, "cwd": session.cwd, "title": session.title, "updatedAt": session.updated_at, "state": state,
                    })
                ))?,
                false => print(line(&session, state))?,
            }
        }
        params.cursor = page.next_cursor;
        if params.cursor.is_none() || shown == SESSIONS_MAX {
            break;
        }
    }
    app.shut_down().await;
    Ok(0)
}

/// Returns the state of a session that is shown.
fn state(session: &ListedSession) -> Option<&'static str> {
    let activity = &session.activity;
    let is_background = activity.origin() == Some(BACKGROUND);
    match (activity.waiting(), activity.status()) {
        (true, _) => Some("waits for you"),
        (false, SessionStatus::Busy) => Some("working"),
        (false, SessionStatus::Idle | SessionStatus::None) if is_background => match activity.last_turn().map(|turn| turn.status) {
            Some(TurnStatus::Completed) => Some("done"),
            Some(TurnStatus::Running) => Some("working"),
            Some(TurnStatus::Cancelled) => Some("cancelled"),
            _ => Some("failed"),
        },
        (false, SessionStatus::Idle | SessionStatus::None) => None,
    }
}

fn line(session: &ListedSession, state: &str) -> String {
    let title = output_line(session.title.as_deref().unwrap_or_default());
    let cwd = output_line(&session.cwd.to_string_lossy());
    let failure = session.activity.last_turn().and_then(|turn| turn.error.as_ref());
    let why = failure.map(|failure| format!("  {}", output_line(&failure.message))).unwrap_or_default();
    format!("{}  {state:<13}  {:>6}  {title}  {cwd}{why}\n", session.session_id, age(&session.updated_at))
}
