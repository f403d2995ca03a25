//! A command whose pipes stay open and whose output is one event per line: `nuncio run --json` or
//! `nuncio sessions show --follow --json`.

use std::process::Stdio;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::{Home, bounded, gone};
use crate::marker::marker;

pub struct RunningCommand {
    child: Child,
    pub pid: u32,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    /// Marker in the environment of all processes that the command starts.
    marker: String,
    /// All events received so far.
    pub events: Vec<Value>,
}

impl RunningCommand {
    pub fn start(home: &Home, arguments: &[&str]) -> RunningCommand {
        let marker = marker();
        let mut command = home.command(arguments);
        command.env("NUNCIO_TEST", &marker).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        RunningCommand { pid: child.id().unwrap(), stdin: child.stdin.take(), child, lines, marker, events: Vec::new() }
    }

    /// Writes a line to standard input. Fails if the command has ended.
    pub async fn try_say(&mut self, line: Value) -> std::io::Result<()> {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).await
    }

    pub async fn say(&mut self, line: Value) {
        self.try_say(line).await.unwrap();
    }

    pub fn end_input(&mut self) {
        drop(self.stdin.take());
    }

    /// The next event; none at the end of the output.
    pub async fn next(&mut self) -> Option<Value> {
        let line = bounded("an event", self.lines.next_line()).await.unwrap()?;
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.events.push(event.clone());
        Some(event)
    }

    /// Reads the events that have arrived, without waiting. False at the end of the output.
    pub fn drain(&mut self) -> bool {
        while let Some(line) = self.lines.next_line().now_or_never() {
            let Some(line) = line.unwrap() else { return false };
            self.events.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")));
        }
        true
    }

    /// Waits for the next event of a type.
    pub async fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("ended before {kind}: {:#?}", self.events));
            if event["body"]["type"] == kind {
                return event;
            }
        }
    }

    /// Closes standard input, reads the rest of the output and returns the exit code. Asserts that
    /// no process is left.
    pub async fn end(self) -> i32 {
        self.end_with_events().await.0
    }

    /// Ends the command, as [`Running::end`] does. Also returns all received events.
    pub async fn end_with_events(mut self) -> (i32, Vec<Value>) {
        self.end_input();
        while self.next().await.is_some() {}
        let code = bounded("the exit", self.child.wait()).await.unwrap().code().unwrap_or(-1);
        gone(&self.marker).await;
        (code, self.events)
    }

    /// Kills the command with SIGKILL and asserts that no process is left. Returns all events that
    /// were received as complete lines.
    pub async fn kill(mut self) -> Vec<Value> {
        self.child.start_kill().unwrap();
        bounded("the end of a killed command", self.child.wait()).await.unwrap();
        while let Ok(Some(line)) = self.lines.next_line().await {
            self.events.extend(serde_json::from_str::<Value>(&line));
        }
        gone(&self.marker).await;
        self.events
    }
}
