//! Metrics of this process, computed from the events it writes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::event::{Body, Event, ToolEnd, UsageUpdate, ignored};
use crate::session::folds::state::SessionState;

/// Labels of the counter of ended turns.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TurnLabels {
    outcome: &'static str,
}

/// Labels of the token counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TokenLabels {
    kind: &'static str,
}

/// Labels of the histogram of tool calls. The tool name is not a label, because a model may invent
/// names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ToolLabels {
    kind: String,
    status: &'static str,
}

/// Counters and histograms, exported by the `/metrics` route.
pub(crate) struct SessionMetrics {
    pub events: Counter,
    /// Batches whose sessions were written one by one, because the store refused them together.
    pub split_batches: Counter,
    pub turns: Family<TurnLabels, Counter>,
    pub tokens: Family<TokenLabels, Counter>,
    /// Seconds from the start of a tool call's execution to its result.
    pub tools: Family<ToolLabels, Histogram, fn() -> Histogram>,
}

impl Default for SessionMetrics {
    fn default() -> Self {
        let seconds = || Histogram::new([0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0]);
        SessionMetrics {
            events: Counter::default(),
            split_batches: Counter::default(),
            turns: Family::default(),
            tokens: Family::default(),
            tools: Family::new_with_constructor(seconds as fn() -> Histogram),
        }
    }
}

impl SessionMetrics {
    /// Counts a batch whose sessions are written one by one.
    pub(crate) fn record_split_batch(&self) {
        self.split_batches.inc();
    }

    /// Counts an event. `state` is the session state before the event.
    pub(crate) fn record(&self, event: &Event, state: &SessionState) {
        self.events.inc();
        let ended = |outcome| {
            self.turns.get_or_create(&TurnLabels { outcome }).inc();
        };
        match &event.body {
            Body::TurnCompleted { .. } => ended("completed"),
            Body::TurnFailed { .. } => ended("failed"),
            Body::TurnCancelled { .. } => ended("cancelled"),
            Body::TurnInterrupted {} => ended("interrupted"),
            Body::UsageUpdated(UsageUpdate { usage, .. }) => {
                for (kind, tokens) in [
                    ("input", usage.input_tokens),
                    ("output", usage.output_tokens),
                    ("cache_read", usage.cache_read_tokens),
                    ("cache_write", usage.cache_write_tokens),
                ] {
                    self.tokens.get_or_create(&TokenLabels { kind }).inc_by(tokens);
                }
            }
            Body::ToolCompleted(ToolEnd { tool_call_id, status, .. }) => {
                let ran = state.open_tools.iter().find(|open| open.has_id(tool_call_id));
                let Some((open, since_ms)) = ran.and_then(|open| Some((open, open.running_ms?))) else { return };
                let kind = format!("{:?}", open.call.kind).to_lowercase();
                let status = if *status == crate::content::ToolStatus::Failed { "failed" } else { "completed" };
                let seconds = event.at_ms.saturating_sub(since_ms) as f64 / 1000.0;
                self.tools.get_or_create(&ToolLabels { kind, status }).observe(seconds);
            }
            Body::TurnStarted { .. }
            | Body::ToolStarted { .. }
            | Body::ToolInput { .. }
            | Body::ToolUpdated { .. }
            | Body::Unknown(_) => {}
            ignored!(Session | Step | Message | Replacement | Queue | Permission | Verify | Plan | Pruning) => {}
            ignored!(Compaction | Child | Agent | Hook | Budget | Mode | Notice) => {}
        }
    }
}
