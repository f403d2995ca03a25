//! Metrics: counters and gauges in Prometheus' text format (OpenMetrics 1.0).

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::api::StatusSnapshot;
use crate::content::AgentStatus;
use crate::error::{Error, Result};
use crate::session::Sessions;

/// Metrics of the HTTP server.
pub(crate) struct RequestMetrics {
    count: Family<RequestLabels, Counter>,
    seconds: Histogram,
    pub connections: Gauge,
    pub streams: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        RequestMetrics {
            count: Family::default(),
            seconds: Histogram::new([0.0005, 0.001, 0.005, 0.02, 0.1, 1.0, 10.0]),
            connections: Gauge::default(),
            streams: Gauge::default(),
        }
    }
}

impl RequestMetrics {
    /// Counts a request. `route` is a route pattern; `None` stands for all unknown paths, so that
    /// clients cannot create new labels.
    pub(crate) fn count(&self, method: &str, route: Option<&str>, status: u16, took: Duration) {
        let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
        let method = if known.contains(&method) { method } else { "other" };
        let request = RequestLabels { method: method.into(), route: route.unwrap_or("none").into(), status };
        self.count.get_or_create(&request).inc();
        self.seconds.observe(took.as_secs_f64());
    }
}

/// RAII guard: increments the gauge, decrements it on drop.
pub(crate) struct GaugeGuard(Gauge);

impl GaugeGuard {
    /// Increments `gauge`.
    pub(crate) fn new(gauge: &Gauge) -> GaugeGuard {
        gauge.inc();
        GaugeGuard(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    status: &'static str,
}

/// Encodes all metrics in Prometheus' text format. `sessions` is absent while the store is closed.
pub(crate) fn text(requests: &RequestMetrics, sessions: Option<&Sessions>, status: &StatusSnapshot) -> Result<String> {
    let mut registry = Registry::with_prefix("nuncio");
    registry.register("http_requests", "Requests, by method, route and status", requests.count.clone());
    registry.register_with_unit("http_request", "Time until the response headers", Unit::Seconds, requests.seconds.clone());
    registry.register("http_connections", "Open connections", requests.connections.clone());
    registry.register("http_streams", "Open event streams", requests.streams.clone());
    let agents: Family<StatusLabels, Gauge> = Family::default();
    for one in [AgentStatus::Idle, AgentStatus::Busy, AgentStatus::Waiting] {
        agents.get_or_create(&StatusLabels { status: one.as_str() }).set(status.count(one) as i64);
    }
    registry.register("agents", "Sessions with a live process, and terminal clients of agents, by status", agents);
    if let Some(sessions) = sessions {
        of_sessions(&mut registry, sessions);
    }
    if let Some(bytes) = crate::process::resident_bytes(std::process::id()) {
        registry.register_with_unit("resident_memory", "Resident memory of this process", Unit::Bytes, gauge(bytes as i64));
    }
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| Error::internal(format!("writing the metrics: {error}")))?;
    Ok(text)
}

fn of_sessions(registry: &mut Registry, sessions: &Sessions) {
    let metrics = sessions.metrics();
    registry.register("events", "Events written", metrics.events.clone());
    registry.register("split_batches", "Batches of events whose sessions were written one by one", metrics.split_batches.clone());
    registry.register("turns", "Ended turns, by outcome", metrics.turns.clone());
    registry.register("tokens", "Model tokens, by kind", metrics.tokens.clone());
    registry.register_with_unit("tool", "Run time of tools, by kind and result", Unit::Seconds, metrics.tools.clone());
    registry.register("turns_running", "Running turns", gauge(sessions.turns_running() as i64));
    registry.register("sessions_open", "Open sessions", gauge(sessions.sessions_open() as i64));
    registry.register("log_queue", "Events queued for the log writer", gauge(sessions.log_queue() as i64));
}

fn gauge(value: i64) -> Gauge {
    let gauge: Gauge = Gauge::default();
    gauge.set(value);
    gauge
}
