//! Replaces `traces.rs` in a build without the Cargo feature `telemetry`.

use tracing_subscriber::layer::Identity;

use crate::error::{Error, Kind, Result};

/// Replaces `Traces` and sends no spans.
pub(crate) struct NoTraces;

/// The name of the corresponding type in `traces.rs`.
pub(crate) type Traces = NoTraces;

impl NoTraces {
    /// Fails if an endpoint is configured.
    pub(crate) fn start(endpoint: Option<&str>) -> Result<NoTraces> {
        match endpoint {
            None => Ok(NoTraces),
            Some(_) => Err(Error::new(Kind::Unsupported, "telemetry.otlp_endpoint: this build of nuncio cannot send traces")
                .hint("remove the setting, or build nuncio with --features telemetry")),
        }
    }

    /// Returns no tracing layer.
    pub(crate) fn layer(&self) -> Option<Identity> {
        None
    }
}
