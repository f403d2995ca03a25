//! `nuncio sessions import`: creates a session from an export. No API method appends events, so
//! this command writes directly to the new session's log.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::export_line::{EventLine, ExportLine, is_exported};
use crate::api::App;
use crate::cli::terminal::output::{print, print_stderr};
use crate::content::{Part, StopReason, shortened};
use crate::context::notes;
use crate::error::{Error, Result};
use crate::event::{Body, SessionChange, Severity, ToolEnd};
use crate::id::TurnId;
use crate::json;
use crate::limits;
use crate::session::{Session, SessionState, Sessions};
use crate::workspace::{one_line, real_path};

/// Creates a session from an export and prints its new id. The session gets the permission mode of
/// this command and works in this command's directory or below it: the file must not decide what is
/// permitted here.
pub(crate) async fn import(app: &App, sessions: &Arc<Sessions>, file: &Path) -> Result<()> {
    // Parse the whole file first, so that an invalid line does not leave an incomplete session.
    let mut lines = read(file)?.into_iter();
    let Some(ExportLine::Session(first)) = lines.next() else {
        return Err(Error::invalid_params(format!("{}, line 1: the metadata of a session is missing", file.display())));
    };
    let (cwd, change, dropped) = confined(app, first.cwd, first.change);
    let session = sessions.create(cwd, app.mode, change).await?;
    for description in dropped {
        print_stderr(format!("nuncio: not imported: {description}\n"));
        session.log.emit(None, Body::notice(Severity::Warning, "Not imported", description)).await;
    }
    let mut turn: Option<TurnId> = None;
    for line in lines {
        let ExportLine::Event(event) = line else {
            return Err(Error::invalid_params(format!("{}: the metadata is repeated", file.display())));
        };
        let EventLine { turn_id: of_turn, mut body } = *event;
        // Other events could widen what the session may do, such as the rule of an answer.
        if !is_exported(&body) {
            continue;
        }
        remove_notes(&mut body);
        if turn != of_turn {
            end_turn(&session, turn.take()).await;
            if of_turn.is_some() {
                session.log.emit(of_turn.clone(), Body::TurnStarted { by: None, retries: None, budget: None }).await;
            }
            turn = of_turn;
        }
        session.log.emit(turn.clone(), body).await;
    }
    end_turn(&session, turn).await;
    // The words of the file's user ask for nothing here.
    session.log.emit(None, session.log.state(SessionState::granted)).await;
    let id = session.log.id.clone();
    sessions.close(&id).await?;
    print(format!("{id}\n"))
}

/// Turns the notes of an event into text, and removes the key of notes from its context: the file
/// must not speak in nuncio's name.
fn remove_notes(body: &mut Body) {
    let remove = |parts: &mut Vec<Part>| *parts = parts.drain(..).map(Part::untagged).map(notes::without_key).collect();
    match body {
        Body::MessageCompleted { parts, extra, .. } => {
            remove(parts);
            remove(&mut extra.context);
        }
        Body::ToolCompleted(ToolEnd { output, .. }) => remove(output),
        _ => {}
    }
}

async fn end_turn(session: &Session, turn: Option<TurnId>) {
    if turn.is_some() {
        session.log.emit(turn, Body::TurnCompleted { stop_reason: StopReason::EndTurn }).await;
    }
}

/// Reads the lines of a file; `-` is standard input.
fn read(file: &Path) -> Result<Vec<ExportLine>> {
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
        let line = json::from_slice(&text)
            .and_then(ExportLine::parse)
            .map_err(|error| Error::invalid_params(format!("{}, line {number}: {error}", file.display())))?;
        lines.push(line);
    }
    Ok(lines)
}

/// Drops metadata that would widen the access of an imported session, or instruct its model: a
/// directory outside this command's directory, additional directories, a scripted model, a hosted
/// agent, a system prompt. Also returns descriptions of what was dropped.
fn confined(app: &App, cwd: PathBuf, mut change: SessionChange) -> (PathBuf, SessionChange, Vec<String>) {
    let mut dropped = Vec::new();
    let here = real_path(&app.cwd);
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
    if let Some(agent) = change.agent.take() {
        dropped.push(format!("hosted agent {agent:?}: nuncio's own agent works in the session"));
    }
    for (name, prompt) in
        [("system prompt", &mut change.system_prompt), ("end of the system prompt", &mut change.system_prompt_append)]
    {
        if let Some(text) = prompt.take() {
            let shown = one_line(shortened(text, limits::TITLE_CHARS_MAX));
            dropped.push(format!("{name} {shown:?} (to use one: --system-prompt)"));
        }
    }
    (change.agent_session, change.agent_options) = (None, Default::default());
    change.cwd = None;
    (cwd, change, dropped)
}
