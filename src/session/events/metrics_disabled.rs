//! A program without the HTTP server, which would export metrics, counts nothing.

use crate::event::Event;
use crate::session::folds::state::SessionState;

/// Stands for the metrics.
#[derive(Default)]
pub(crate) struct SessionMetrics;

impl SessionMetrics {
    /// Does nothing.
    pub(crate) fn record(&self, _: &Event, _: &SessionState) {}

    /// Does nothing.
    pub(crate) fn record_split_batch(&self) {}
}
