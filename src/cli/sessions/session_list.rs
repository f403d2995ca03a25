//! `nuncio sessions list`.

use serde_json::{Value, json};

use crate::api::{ListSessions, ListSessionsParams, ListedSession, SessionStatus};
use crate::cli::terminal::amounts::local_time;
use crate::cli::terminal::output::{print, print_json, print_stderr};
use crate::client::SessionClient;
use crate::error::Result;
use crate::session::Sessions;
use crate::terminal_text::output_line;

/// Number of sessions that `nuncio sessions list` shows.
const SESSIONS_SHOWN: usize = 20;

#[derive(Clone, Copy, Debug)]
pub(crate) enum ListFormat {
    /// A JSON line for each session.
    Json,
    /// A line for each session.
    All,
    /// A line for each of the first sessions, and the number of the others.
    Newest,
}

/// Prints the selected sessions.
pub(crate) async fn list(
    client: &SessionClient,
    sessions: &Sessions,
    mut request: ListSessionsParams,
    format: ListFormat,
) -> Result<()> {
    let mut count = 0;
    loop {
        let page = client.call::<ListSessions>(request.clone()).await?;
        for session in page.sessions {
            count += 1;
            match format {
                ListFormat::Json => print_json(json_line(sessions, session).await?)?,
                ListFormat::Newest if count > SESSIONS_SHOWN => {}
                ListFormat::All | ListFormat::Newest => print(line(session))?,
            }
        }
        if page.next_cursor.is_none() {
            break;
        }
        request.cursor = page.next_cursor;
    }
    if matches!(format, ListFormat::Newest) && count > SESSIONS_SHOWN {
        print_stderr(format!("{} older sessions: nuncio sessions list --all\n", count - SESSIONS_SHOWN));
    }
    Ok(())
}

async fn json_line(sessions: &Sessions, session: ListedSession) -> Result<String> {
    let id = session.session_id;
    // Read the number of events from the store, because the API method does not return it.
    let events = sessions.row(&id).await?.head;
    let mut line = json!({
        "sessionId": id, "cwd": session.cwd, "title": session.title, "updatedAt": session.updated_at, "events": events,
    });
    if let (Some(line), Value::Object(activity)) = (line.as_object_mut(), json!(session.activity)) {
        line.extend(activity);
        line.extend(session.excerpt.map(|excerpt| ("excerpt".to_owned(), json!(excerpt))));
        line.extend(session.parent_session_id.map(|parent| ("parentSessionId".to_owned(), json!(parent))));
    }
    Ok(format!("{line}\n"))
}

fn line(session: ListedSession) -> String {
    let activity = &session.activity;
    let title = output_line(session.title.as_deref().unwrap_or_default());
    let (cwd, updated) = (output_line(&session.cwd.to_string_lossy()), local_time(&session.updated_at));
    let state = match (activity.waiting(), activity.status()) {
        (true, _) => "[waiting] ",
        (false, SessionStatus::Busy) => "[busy] ",
        (false, SessionStatus::Idle) => "[idle] ",
        (false, SessionStatus::None) => "",
    };
    let cost = activity.cost().map(|cost| format!("  {cost}")).unwrap_or_default();
    let agent = activity.agent().map(|agent| format!("  {}", output_line(agent))).unwrap_or_default();
    let excerpt = session.excerpt.map(|excerpt| format!("    {}\n", output_line(&excerpt))).unwrap_or_default();
    format!("{}  {updated}  {cwd}  {state}{title}{agent}{cost}\n{excerpt}", session.session_id)
}
