//! Logs to standard error: JSON lines of servers, and readable lines of commands and on a terminal.
//! Sends traces to the collector configured in the settings, if any.

use std::io::IsTerminal;

use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use super::log_lines::LogLines;
use super::traces::Traces;
use crate::config::{Environment, Telemetry};
use crate::error::Result;

/// The reader of the log determines its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogStyle {
    /// An HTTP server: JSON lines, one for each request.
    Server,
    /// A server on standard input and output: JSON lines.
    Protocol,
    /// A command, whose messages to the user are on the same stream: readable lines.
    Command,
    /// The chat, which draws on the terminal: readable lines, unless they would be on a terminal.
    Chat,
}

/// Starts logging and tracing. `NUNCIO_LOG` is a level or a list of `module=level`. On a terminal,
/// all lines are readable. Libraries log at `info` and above only, whatever `NUNCIO_LOG` asks for:
/// below that they print request headers and message contents; rmcp does so at `info`.
pub(crate) fn start(environment: &Environment, style: LogStyle, telemetry: &Telemetry) -> Result<Traces> {
    let usual = if style == LogStyle::Server { LevelFilter::INFO } else { LevelFilter::WARN };
    let wanted = environment.get("NUNCIO_LOG").and_then(|wanted| wanted.parse::<Targets>().ok());
    // nuncio reports the failures of MCP servers itself.
    let rmcp = if wanted.is_some() { LevelFilter::WARN } else { LevelFilter::OFF };
    let targets = wanted.unwrap_or_else(|| Targets::new().with_default(usual));
    let ours = Targets::new().with_default(LevelFilter::INFO).with_target("nuncio", LevelFilter::TRACE).with_target("rmcp", rmcp);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let is_terminal = std::io::stderr().is_terminal();
    let targets = if is_terminal && style == LogStyle::Chat { Targets::new() } else { targets };
    let lines = match is_terminal || matches!(style, LogStyle::Command | LogStyle::Chat) {
        true => lines.event_format(LogLines).boxed(),
        false => lines.json().boxed(),
    };
    let lines = lines.with_filter(targets.and(ours));
    let traces = Traces::start(telemetry.otlp_endpoint.as_deref())?;
    let spans = traces.layer().map(|layer| layer.with_filter(Targets::new().with_target("nuncio", LevelFilter::INFO)));
    // Fails if a subscriber is installed already, as in tests; the existing subscriber stays.
    let _ = tracing_subscriber::registry().with(lines).with(spans).try_init();
    Ok(traces)
}
