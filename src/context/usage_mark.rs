//! Estimates the tokens of the next request from the last usage that the provider reported.

use crate::content::StepOutcome;

/// Bytes per token before a provider reported usage, and the bounds of the ratio that is derived
/// from reports.
const BYTES_PER_TOKEN: f64 = 4.0;
const BYTES_PER_TOKEN_RANGE: (f64, f64) = (1.5, 6.0);

/// The last usage that the provider reported, and the size of the conversation at that time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsageMark {
    /// The usage of the running request.
    reported: Option<u64>,
    /// The tokens of the last complete request and its answer, and the size of the messages after
    /// the answer.
    measured: Option<Measurement>,
    /// True while a summary is requested, whose usage does not count.
    pub compacting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Measurement {
    tokens: u64,
    bytes: usize,
}

impl UsageMark {
    pub(super) fn set_reported(&mut self, tokens: u64) {
        self.reported = Some(tokens).filter(|tokens| *tokens > 0 && !self.compacting);
    }

    /// Ends a request. `bytes` is the size of the messages, including the answer.
    pub(super) fn end_step(&mut self, outcome: StepOutcome, bytes: usize) {
        let complete = matches!(outcome, StepOutcome::EndTurn | StepOutcome::ToolCalls | StepOutcome::MaxTokens);
        if let Some(tokens) = self.reported.take().filter(|_| complete) {
            self.measured = Some(Measurement { tokens, bytes });
        }
    }

    /// Returns whether a provider reported the tokens of an earlier request.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

    /// Returns the bytes per token, if the requests contain `overhead` bytes in addition to the
    /// messages: instructions and tools. An estimate, if no provider reported the tokens of a
    /// request.
    pub(crate) fn bytes_per_token(&self, overhead: usize) -> f64 {
        let (least, most) = BYTES_PER_TOKEN_RANGE;
        self.measured
            .map_or(BYTES_PER_TOKEN, |Measurement { tokens, bytes }| ((overhead + bytes) as f64 / tokens as f64).clamp(least, most))
    }

    /// Estimates the tokens of a request with messages of this size: the last reported number plus
    /// the estimate for what changed since, or an estimate for everything.
    pub(crate) fn tokens(&self, overhead: usize, bytes: usize) -> u64 {
        let ratio = self.bytes_per_token(overhead);
        match self.measured {
            Some(measured) => {
                let changed = (bytes as f64 - measured.bytes as f64) / ratio;
                (measured.tokens as f64 + changed).max(0.0) as u64
            }
            None => ((overhead + bytes) as f64 / ratio) as u64,
        }
    }
}
