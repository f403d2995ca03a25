//! Logs to standard error: JSON lines, or readable lines on a terminal. Sends traces to the
//! collector configured in the settings, if any.

use std::io::IsTerminal;

use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use super::log_lines::LogLines;
use super::traces::Traces;
use crate::config::{Environment, Telemetry};
use crate::error::Result;

/// Starts logging and tracing. `NUNCIO_LOG` is a level or a list of `module=level`. A server logs
/// every request. Libraries log at `info` and above only, whatever `NUNCIO_LOG` asks for: below
/// that they print request headers and message contents; rmcp does so at `info`.
pub(crate) fn start(environment: &Environment, serves: bool, telemetry: &Telemetry) -> Result<Traces> {
    let usual = if serves { LevelFilter::INFO } else { LevelFilter::WARN };
    let wanted = environment.get("NUNCIO_LOG").and_then(|wanted| wanted.parse::<Targets>().ok());
    // nuncio reports the failures of MCP servers itself.
    let rmcp = if wanted.is_some() { LevelFilter::WARN } else { LevelFilter::OFF };
    let targets = wanted.unwrap_or_else(|| Targets::new().with_default(usual));
    let ours = Targets::new().with_default(LevelFilter::INFO).with_target("nuncio", LevelFilter::TRACE).with_target("rmcp", rmcp);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match std::io::stderr().is_terminal() {
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
