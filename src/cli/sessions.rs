//! `nuncio sessions`: lists, shows, exports, imports and deletes stored sessions.

use std::path::Path;
use std::sync::Arc;

use super::export;
use super::flags::SessionsCommand;
use super::text::{Look, Out, Text};
use super::{Colours, print, print_exact, print_json};
use crate::api::{Nuncio, timestamp};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::SessionId;
use crate::session::Sessions;
use crate::terminal_text::output_line;

/// Runs `nuncio sessions`.
pub async fn run(nuncio: Arc<Nuncio>, command: SessionsCommand, colours: Colours) -> Result<u8> {
    let sessions = nuncio.sessions().await?.clone();
    let result = match command {
        SessionsCommand::List { here, json } => list(&sessions, here.then_some(nuncio.cwd.as_path()), json),
        SessionsCommand::Show { id, json } => show(&sessions, &id, json, colours),
        SessionsCommand::Export { id, layout } => export::export(&nuncio, &sessions, &id, layout.as_deref()),
        SessionsCommand::Import { file } => export::import(&nuncio, &sessions, &file).await,
        SessionsCommand::Rm { ids } => remove(&sessions, &ids).await,
    };
    nuncio.shut_down().await;
    result.map(|()| 0)
}

fn list(sessions: &Sessions, cwd: Option<&Path>, json: bool) -> Result<()> {
    let mut after = None;
    loop {
        let page = sessions.list(cwd, after)?;
        for row in &page.sessions {
            let title = row.title.as_deref().unwrap_or("");
            let updated = timestamp(row.updated_ms);
            if json {
                let line = serde_json::json!({ "sessionId": row.id, "cwd": row.cwd, "title": row.title, "updatedAt": updated, "events": row.head });
                print_json(format!("{line}\n"))?;
            } else {
                let (cwd, title) = (output_line(&row.cwd.to_string_lossy()), output_line(title));
                print(format!("{}  {}  {cwd}  {title}\n", row.id, &updated[..16].replace('T', " ")))?;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn show(sessions: &Sessions, id: &str, json: bool, colours: Colours) -> Result<()> {
    let id = SessionId::from(id);
    let look = Look { colour: colours.stdout, replay: true, ..Look::default() };
    let mut text = Text::new(look, &sessions.row(&id)?.cwd);
    let put = |out: Vec<Out>| {
        for Out::Answer(shown) | Out::Aside(shown) in out {
            print_exact(shown)?;
        }
        Ok(())
    };
    each_event(sessions, &id, |event| if json { print_json(line(event)? + "\n") } else { put(text.on(event)) })?;
    put(text.incomplete())
}

/// An event as a line of JSON, without the line break.
pub fn line(event: &Event) -> Result<String> {
    serde_json::to_string(event).map_err(|error| Error::internal(format!("writing an event: {error}")))
}

/// Calls `with` for every stored event, in order. Does not take ownership of the session, so a
/// session of another process can be read.
pub fn each_event(sessions: &Sessions, id: &SessionId, mut with: impl FnMut(&Event) -> Result<()>) -> Result<()> {
    let mut after = 0;
    loop {
        let events = sessions.events(id, after)?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.seq;
        for event in &events {
            with(event)?;
        }
    }
}

async fn remove(sessions: &Sessions, ids: &[String]) -> Result<()> {
    for id in ids {
        let id = SessionId::from(id.as_str());
        sessions.row(&id)?;
        sessions.delete(&id).await?;
    }
    Ok(())
}
