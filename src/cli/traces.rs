//! Sends traces to an OpenTelemetry collector.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

use crate::error::{Error, Result};
use crate::limits;

/// Sends spans to a collector, if there is one. Sends the remaining spans when dropped.
#[derive(Default)]
pub(crate) struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Starts sending spans to the collector at `endpoint`. Without an endpoint, no spans are sent.
    pub(crate) fn start(endpoint: Option<&str>) -> Result<Traces> {
        endpoint.map(provider).transpose().map(Traces)
    }

    /// Creates the layer that records spans for the collector. Returns `None` without a collector.
    pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> Option<OpenTelemetryLayer<S, Tracer>> {
        self.0.as_ref().map(|provider| tracing_opentelemetry::layer().with_tracer(provider.tracer("nuncio")))
    }
}

/// Creates a provider that sends spans in batches from its own thread. Spans that the collector
/// does not accept are dropped.
fn provider(endpoint: &str) -> Result<SdkTracerProvider> {
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
