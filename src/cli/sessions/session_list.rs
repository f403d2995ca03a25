//! `nuncio sessions list`.

use serde::Deserialize;
use serde_json::Value;

use crate::api::ListSessions;
use crate::cli::terminal::amounts::local_time;
use crate::cli::terminal::output::{print, print_json, print_stderr};
use crate::content::Cost;
use crate::error::Result;
use crate::id::SessionId;
use crate::local::LocalClient;
use crate::protocol::acp;
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
    client: &LocalClient,
    sessions: &Sessions,
    mut request: acp::ListSessionsRequest,
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

async fn json_line(sessions: &Sessions, session: acp::SessionInfo) -> Result<String> {
    let id = SessionId::from(&*session.session_id.0);
    // Read the number of events from the store, because the API method does not return it.
    let events = sessions.row(&id).await?.head;
    let mut line = serde_json::json!({
        "sessionId": id, "cwd": session.cwd, "title": session.title, "updatedAt": session.updated_at, "events": events,
    });
    let activity = session.meta.unwrap_or_default().shift_remove("nuncio").unwrap_or_default();
    if let (Some(line), Value::Object(activity)) = (line.as_object_mut(), activity) {
        line.extend(activity);
    }
    Ok(format!("{line}\n"))
}

fn line(session: acp::SessionInfo) -> String {
    let activity = session.meta.unwrap_or_default().shift_remove("nuncio").unwrap_or_default();
    let title = output_line(session.title.as_deref().unwrap_or_default());
    let updated = session.updated_at.unwrap_or_default();
    let (cwd, updated) = (output_line(&session.cwd.to_string_lossy()), local_time(&updated));
    let state = match (activity["waiting"].as_bool(), activity["status"].as_str()) {
        (Some(true), _) => "[waiting] ",
        (_, Some("busy")) => "[busy] ",
        (_, Some("idle")) => "[idle] ",
        _ => "",
    };
    let cost = Cost::deserialize(&activity["cost"]).map(|cost| format!("  {cost}")).unwrap_or_default();
    let agent = activity["agent"].as_str().map(|agent| format!("  {}", output_line(agent))).unwrap_or_default();
    format!("{}  {updated}  {cwd}  {state}{title}{agent}{cost}\n", session.session_id)
}
