//! `nuncio sessions export`: JSON lines of events, which can be imported, or a directory with all
//! files of a session, for reading.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::json;

use super::export_line::{SessionLine, is_exported};
use super::stored::each_event;
use crate::api::App;
use crate::cli::terminal::output::{event_line, print_json};
use crate::error::{Error, Result};
use crate::event::{Body, ToolEnd, timestamp};
use crate::id::SessionId;
use crate::session::files::check_name;
use crate::session::{SessionState, Sessions};

/// Prints a session as JSON lines, or writes the directory `layout`.
pub(crate) async fn export(app: &App, sessions: &Sessions, id: &SessionId, layout: Option<&Path>) -> Result<()> {
    if let Some(dir) = layout {
        return write_layout(app, sessions, id, dir).await;
    }
    let mut state = SessionState::default();
    each_event(sessions, id, |event| {
        state.apply(event);
        Ok(())
    })
    .await?;
    let row = sessions.row(id).await?;
    let line = serde_json::to_string(&SessionLine::new(id, &state, row.created_ms));
    print_json(line.map_err(|error| Error::internal(format!("writing an export: {error}")))? + "\n")?;
    each_event(sessions, id, |event| if is_exported(&event.body) { print_json(event_line(event)?) } else { Ok(()) }).await
}

/// Writes `session.json`, `events.ndjson`, `attachments/` and `artifacts/TURN/`.
async fn write_layout(app: &App, sessions: &Sessions, id: &SessionId, dir: &Path) -> Result<()> {
    let failed = |error| Error::io(format_args!("writing {}", dir.display()), error);
    fs::create_dir_all(dir.join("attachments")).map_err(failed)?;
    fs::create_dir_all(dir.join("artifacts")).map_err(failed)?;
    sessions.shared_files().fetch(id, None).await?;
    for entry in fs::read_dir(app.places.attachments(id.as_str())).into_iter().flatten().flatten() {
        // Hidden are the texts of the attachments.
        if !entry.file_name().as_bytes().starts_with(b".") {
            fs::copy(entry.path(), dir.join("attachments").join(entry.file_name())).map_err(failed)?;
        }
    }
    let (mut state, mut events) = (SessionState::default(), String::new());
    each_event(sessions, id, |event| {
        state.apply(event);
        events.push_str(&event_line(event)?);
        let Body::ToolCompleted(ToolEnd { details: Some(details), .. }) = &event.body else { return Ok(()) };
        let (Some(artifact), Some(turn)) = (details["artifact"].as_str().map(Path::new), &event.turn_id) else { return Ok(()) };
        let in_artifacts = artifact.parent() == Some(&app.places.artifacts(id.as_str()));
        let (Some(name), true) = (artifact.file_name(), in_artifacts && check_name(turn.as_str()).is_ok()) else {
            return Ok(());
        };
        let of_turn = dir.join("artifacts").join(turn.as_str());
        fs::create_dir_all(&of_turn).and_then(|()| fs::copy(artifact, of_turn.join(name))).map(drop).map_err(failed)
    })
    .await?;
    let row = sessions.row(id).await?;
    // Without a model of its own, the session worked with that of the settings or of a flag.
    let model = state.settings.model.as_deref().or_else(|| state.turns.last()?.model.as_deref());
    let mut session = json!(SessionLine::new(id, &state, row.created_ms).change);
    let named = json!({
        "id": id, "workspacePath": state.cwd, "title": state.settings.title, "mode": state.mode, "model": model,
        "createdAt": timestamp(row.created_ms), "updatedAt": timestamp(row.updated_ms), "events": row.head,
    });
    for (name, value) in named.as_object().into_iter().flatten() {
        session[name] = value.clone();
    }
    fs::write(dir.join("events.ndjson"), events).map_err(failed)?;
    fs::write(dir.join("session.json"), format!("{session:#}\n")).map_err(failed)
}
