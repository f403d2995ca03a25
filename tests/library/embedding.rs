//! The Rust library, used as a program that embeds it does. Its store is SQLite also with
//! `NUNCIO_TEST_STORE`, which only processes of nuncio receive.

mod examples;
mod parts;
mod programs;
mod requests;
mod sessions;

use std::path::PathBuf;
use std::sync::Arc;

use nuncio::event::{Body, Event, ToolEnd};
use nuncio::{Agent, AgentBuilder, Turn};
use serde_json::Value;

use harness::{Home, bounded};

/// A builder of an agent in the home's project with a scripted model. Tests run in a program that
/// is not its own helper.
fn builder(home: &Home, steps: Value) -> AgentBuilder {
    Agent::builder(home.work())
        .helper(harness::program())
        .environment([("TMPDIR".to_owned(), home.data().display().to_string())])
        .model(home.script(steps))
}

/// Reads a turn to its end.
async fn events(turn: &mut Turn) -> nuncio::Result<Vec<Arc<Event>>> {
    let mut all = Vec::new();
    while let Some(event) = bounded("the turn", turn.next()).await {
        all.push(event?);
    }
    Ok(all)
}

/// Names of events, without repetitions in a row.
fn types(events: &[Arc<Event>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for event in events {
        let name = serde_json::to_value(&event.body).unwrap()["type"].as_str().unwrap().to_owned();
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    names
}

/// The outputs of tool calls for the model, in order.
fn outputs(events: &[Arc<Event>]) -> Vec<String> {
    let output = |event: &Arc<Event>| match &event.body {
        Body::ToolCompleted(ToolEnd { output, .. }) => Some(nuncio::content::plain_text(output)),
        _ => None,
    };
    events.iter().filter_map(output).collect()
}

/// The directories of agents whose store is in memory.
fn temporary(home: &Home) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.data()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("nuncio-")).collect()
}
