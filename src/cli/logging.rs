//! Logs to standard error: JSON lines, or readable lines on a terminal. Sends traces to the
//! collector of the settings, if any.

use std::io::IsTerminal;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use super::log_lines::LogLines;
use crate::config::{Environment, Telemetry};
use crate::error::{Error, Result};
use crate::limits;

/// Sends the remaining spans when dropped.
#[derive(Default)]
pub struct Traces(Option<SdkTracerProvider>);

/// Starts logging and tracing. `NUNCIO_LOG` is a level or a list of `module=level`. A server logs
/// every request. Libraries log at `info` and above only, whatever `NUNCIO_LOG` asks for: below
/// that they print request headers and message contents.
pub fn start(environment: &Environment, serves: bool, telemetry: &Telemetry) -> Result<Traces> {
    let usual = if serves { LevelFilter::INFO } else { LevelFilter::WARN };
    let wanted = environment.get("NUNCIO_LOG").and_then(|wanted| wanted.parse::<Targets>().ok());
    let targets = wanted.unwrap_or_else(|| Targets::new().with_default(usual));
    let ours = Targets::new().with_default(LevelFilter::INFO).with_target("nuncio", LevelFilter::TRACE);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match std::io::stderr().is_terminal() {
        true => lines.event_format(LogLines).boxed(),
        false => lines.json().boxed(),
    };
    let lines = lines.with_filter(targets.and(ours));
    let provider = telemetry.otlp_endpoint.as_deref().map(provider).transpose()?;
    let traces = provider.as_ref().map(|provider| {
        let spans = Targets::new().with_target("nuncio", LevelFilter::INFO);
        tracing_opentelemetry::layer().with_tracer(provider.tracer("nuncio")).with_filter(spans)
    });
    // Fails if a subscriber is installed already, as in tests; that one stays.
    let _ = tracing_subscriber::registry().with(lines).with(traces).try_init();
    Ok(Traces(provider))
}

/// Sends spans in batches from its own thread. Spans that the collector does not accept are
/// dropped.
fn provider(endpoint: &str) -> Result<SdkTracerProvider> {
    // The exporter's HTTP client needs a default provider. Fails if one is installed; that one
    // stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_timeout(limits::TRACES_SENT)
        .build()
        .map_err(|error| Error::invalid_params(format!("telemetry.otlp_endpoint: {error}")))?;
    let resource = Resource::builder().with_service_name("nuncio").build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Some(provider) = &self.0 {
            let _ = provider.shutdown_with_timeout(limits::TRACES_SENT);
        }
    }
}
