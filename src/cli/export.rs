//! Export and import of sessions: JSON lines of messages, which can be imported, and a directory
//! with all files of a session, for reading.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sessions::{each_event, line};
use super::{print, print_json};
use crate::api::{Nuncio, timestamp};
use crate::content::{Location, Part, ProviderState, Role, StopReason, ToolContent, ToolKind, ToolStatus};
use crate::error::{Error, Result};
use crate::event::{Body, Event, SessionChange, Severity};
use crate::id::{MessageId, SessionId, ToolCallId, TurnId};
use crate::limits;
use crate::options::{Mode, OptionValue};
use crate::session::{SessionState, Sessions};

/// A line of an export.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Line {
    Session {
        id: SessionId,
        cwd: std::path::PathBuf,
        mode: OptionValue<Mode>,
        #[serde(flatten)]
        change: SessionChange,
        created_at_ms: u64,
    },
    Message {
        id: MessageId,
        turn_id: Option<TurnId>,
        role: Role,
        parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<ProviderState>,
        created_at_ms: u64,
    },
    ToolCall {
        id: ToolCallId,
        turn_id: Option<TurnId>,
        name: String,
        title: String,
        kind: ToolKind,
        input: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Location>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<ProviderState>,
        created_at_ms: u64,
    },
    ToolResult {
        id: ToolCallId,
        turn_id: Option<TurnId>,
        ok: bool,
        parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<ToolContent>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        created_at_ms: u64,
    },
}

/// Prints a session as JSON lines, or writes the directory `layout`.
pub fn export(nuncio: &Nuncio, sessions: &Sessions, id: &str, layout: Option<&Path>) -> Result<()> {
    let id = SessionId::from(id);
    match layout {
        Some(dir) => write_layout(nuncio, sessions, &id, dir),
        None => {
            let mut state = SessionState::default();
            each_event(sessions, &id, |event| {
                state.on(event);
                Ok(())
            })?;
            let row = sessions.row(&id)?;
            write_line(&session_line(&id, &state, row.created_ms))?;
            each_event(sessions, &id, |event| message_line(event).as_ref().map_or(Ok(()), write_line))
        }
    }
}

fn write_line(line: &Line) -> Result<()> {
    let text = serde_json::to_string(line).map_err(|error| Error::internal(format!("writing an export: {error}")))?;
    print_json(text + "\n")
}

fn session_line(id: &SessionId, state: &SessionState, created_at_ms: u64) -> Line {
    let change = SessionChange {
        title: state.title.clone(),
        model: state.model.clone(),
        thinking: state.thinking.clone(),
        system_prompt: state.system_prompt.clone(),
        system_prompt_append: state.system_prompt_append.clone(),
        additional_directories: Some(state.additional_directories.clone()).filter(|list| !list.is_empty()),
        cwd: None,
    };
    Line::Session { id: id.clone(), cwd: state.cwd.clone(), mode: state.mode.clone(), change, created_at_ms }
}

fn message_line(event: &Event) -> Option<Line> {
    let (turn_id, created_at_ms) = (event.turn_id.clone(), event.at_ms);
    match event.body.clone() {
        Body::MessageCompleted { message_id: id, role, parts, discarded: false, provider_state } => {
            Some(Line::Message { id, turn_id, role, parts, provider_state, created_at_ms })
        }
        Body::ToolStarted { tool_call_id: id, name, title, kind, input, locations, provider_state } => {
            Some(Line::ToolCall { id, turn_id, name, title, kind, input, locations, provider_state, created_at_ms })
        }
        Body::ToolCompleted { tool_call_id: id, status, output: parts, content, details, .. } => {
            Some(Line::ToolResult { id, turn_id, ok: status == ToolStatus::Completed, parts, content, details, created_at_ms })
        }
        _ => None,
    }
}

/// Writes `session.json`, `events.ndjson`, `attachments/` and `artifacts/TURN/`.
fn write_layout(nuncio: &Nuncio, sessions: &Sessions, id: &SessionId, dir: &Path) -> Result<()> {
    let failed = |error| Error::io(format_args!("writing {}", dir.display()), error);
    fs::create_dir_all(dir.join("attachments")).map_err(failed)?;
    fs::create_dir_all(dir.join("artifacts")).map_err(failed)?;
    for entry in fs::read_dir(nuncio.places.attachments(id.as_str())).into_iter().flatten().flatten() {
        fs::copy(entry.path(), dir.join("attachments").join(entry.file_name())).map_err(failed)?;
    }
    let (mut state, mut events) = (SessionState::default(), String::new());
    each_event(sessions, id, |event| {
        state.on(event);
        events.push_str(&(line(event)? + "\n"));
        let Body::ToolCompleted { details: Some(details), .. } = &event.body else { return Ok(()) };
        let (Some(artifact), Some(turn)) = (details["artifact"].as_str().map(Path::new), &event.turn_id) else { return Ok(()) };
        let (Some(name), true) = (artifact.file_name(), artifact.starts_with(nuncio.places.artifacts(id.as_str()))) else {
            return Ok(());
        };
        let of_turn = dir.join("artifacts").join(turn.as_str());
        fs::create_dir_all(&of_turn).and_then(|()| fs::copy(artifact, of_turn.join(name))).map(drop).map_err(failed)
    })?;
    let row = sessions.row(id)?;
    let session = json!({
        "id": id, "workspacePath": state.cwd, "title": state.title, "mode": state.mode, "model": state.model,
        "createdAt": timestamp(row.created_ms), "updatedAt": timestamp(row.updated_ms), "events": row.head,
    });
    fs::write(dir.join("events.ndjson"), events).map_err(failed)?;
    fs::write(dir.join("session.json"), format!("{session:#}\n")).map_err(failed)
}

/// Creates a session from an export and prints its new id. The mode is that of this call, and the
/// session works in the directory of this call: the file does not decide what may be done here.
pub async fn import(nuncio: &Nuncio, sessions: &Sessions, file: &Path) -> Result<()> {
    let reader: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(fs::File::open(file).map_err(|error| Error::io(format_args!("opening {}", file.display()), error))?),
    };
    let mut reader = BufReader::new(reader);
    let mut lines = Vec::new();
    for number in 1.. {
        let mut text = Vec::new();
        let bounded = (&mut reader).take(limits::INPUT_LINE_BYTES_MAX as u64).read_until(b'\n', &mut text);
        if bounded.map_err(|error| Error::io(format_args!("reading {}", file.display()), error))? == 0 {
            break;
        }
        let line = serde_json::from_slice(&text)
            .map_err(|error| Error::invalid_params(format!("{}, line {number}: {error}", file.display())))?;
        lines.push(line);
    }
    // The whole file is parsed first, so that a bad line does not leave half a session.
    let mut lines = lines.into_iter();
    let Some(Line::Session { cwd, change, .. }) = lines.next() else {
        return Err(Error::invalid_params(format!("{}, line 1: the metadata of a session is missing", file.display())));
    };
    let (cwd, change, dropped) = confined(nuncio, cwd, change);
    let session = sessions.create(cwd, nuncio.mode, change).await?;
    for description in dropped {
        eprintln!("nuncio: not imported: {description}");
        session.log.emit(None, Body::notice(Severity::Warning, "Not imported", description)).await;
    }
    let mut turn: Option<TurnId> = None;
    for line in lines {
        let Some((of_turn, body)) = event_body(line) else {
            return Err(Error::invalid_params(format!("{}: the metadata is repeated", file.display())));
        };
        if turn != of_turn {
            if let Some(ended) = turn.take() {
                session.log.emit(Some(ended), Body::TurnCompleted { stop_reason: StopReason::EndTurn }).await;
            }
            if of_turn.is_some() {
                session.log.emit(of_turn.clone(), Body::TurnStarted { by: None, retries: None }).await;
            }
            turn = of_turn;
        }
        session.log.emit(turn.clone(), body).await;
    }
    if let Some(ended) = turn {
        session.log.emit(Some(ended), Body::TurnCompleted { stop_reason: StopReason::EndTurn }).await;
    }
    let id = session.log.id.clone();
    sessions.close(&id).await?;
    print(format!("{id}\n"))
}

/// Drops metadata of an imported session that would widen what it can reach: a directory outside
/// the one of this call, additional directories, a scripted model. Also returns descriptions of
/// what was dropped.
fn confined(nuncio: &Nuncio, cwd: PathBuf, mut change: SessionChange) -> (PathBuf, SessionChange, Vec<String>) {
    let mut dropped = Vec::new();
    let here = fs::canonicalize(&nuncio.cwd).unwrap_or_else(|_| nuncio.cwd.clone());
    let cwd = match fs::canonicalize(&cwd) {
        Ok(real) if real.starts_with(&here) => real,
        _ => {
            dropped.push(format!("directory {cwd:?}: the session works in {here:?} (to choose another: --cwd)"));
            here
        }
    };
    if let Some(directories) = change.additional_directories.take().filter(|directories| !directories.is_empty()) {
        dropped.push(format!("additional directories {directories:?}"));
    }
    if let Some(model) = change.model.take_if(|model| model.starts_with("scripted:")) {
        dropped.push(format!("scripted model {model:?}"));
    }
    change.cwd = None;
    (cwd, change, dropped)
}

fn event_body(line: Line) -> Option<(Option<TurnId>, Body)> {
    match line {
        Line::Session { .. } => None,
        Line::Message { id, turn_id, role, parts, provider_state, .. } => {
            Some((turn_id, Body::MessageCompleted { message_id: id, role, parts, discarded: false, provider_state }))
        }
        Line::ToolCall { id, turn_id, name, title, kind, input, locations, provider_state, .. } => {
            Some((turn_id, Body::ToolStarted { tool_call_id: id, name, title, kind, input, locations, provider_state }))
        }
        Line::ToolResult { id, turn_id, ok, parts, content, details, .. } => {
            let status = if ok { ToolStatus::Completed } else { ToolStatus::Failed };
            let body = Body::ToolCompleted {
                tool_call_id: id,
                status,
                output: parts,
                content,
                locations: Vec::new(),
                details,
                effect: None,
            };
            Some((turn_id, body))
        }
    }
}
