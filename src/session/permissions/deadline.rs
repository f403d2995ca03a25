//! The deadline of a permission request. A request has no deadline while a person's client is
//! attached to one of the sessions in which it appears.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use tokio::time::Instant;

use super::broker::{Broker, Responder};
use crate::session::clock::now_ms;
use crate::task;

/// The deadline of an open request.
pub(crate) struct AnswerDeadline {
    /// The brokers of the sessions in which the request appears.
    brokers: Vec<Arc<Broker>>,
    timeout: Duration,
    /// The kind of user that can answer.
    responder: Option<Responder>,
    /// A person could answer at some time.
    was_attended: bool,
    until: Option<Instant>,
}

/// A change of an [`AnswerDeadline`].
pub(in crate::session) enum DeadlineChange {
    /// The time in milliseconds since the Unix epoch; `None` if the request waits.
    Moved(Option<u64>),
    Passed,
    /// No client is left, and no person was one of them.
    Disconnected,
}

impl AnswerDeadline {
    /// Creates the deadline of a request that is opened now; its clients are those of `brokers`.
    pub(in crate::session) fn new(brokers: Vec<Arc<Broker>>, timeout: Duration) -> AnswerDeadline {
        let mut deadline = AnswerDeadline { brokers, timeout, responder: None, was_attended: false, until: None };
        deadline.look();
        deadline
    }

    /// Returns whether a client can answer.
    pub(in crate::session) fn has_responder(&self) -> bool {
        self.responder.is_some()
    }

    /// Returns the time of the deadline in milliseconds since the Unix epoch.
    pub(in crate::session) fn at_ms(&self) -> Option<u64> {
        let left = self.until?.saturating_duration_since(Instant::now());
        Some(now_ms() + left.as_millis() as u64)
    }

    /// Looks who can answer. Returns whether the deadline was set or removed.
    fn look(&mut self) -> bool {
        self.responder = self.brokers.iter().filter_map(|broker| broker.responder()).max();
        self.was_attended |= self.responder == Some(Responder::Person);
        self.was_attended &= !self.brokers.iter().any(|broker| broker.has_ended());
        let had = self.until.is_some();
        match self.responder {
            Some(Responder::Person) => self.until = None,
            // Times that cannot be represented are never reached.
            _ if !had => self.until = Instant::now().checked_add(self.timeout),
            _ => {}
        }
        self.until.is_some() != had
    }

    /// Waits for the next change. Cancel safe.
    pub(in crate::session) async fn change(&mut self) -> DeadlineChange {
        loop {
            let known: Vec<_> = self.brokers.iter().map(|broker| (broker, broker.responder())).collect();
            if known.iter().filter_map(|(_, responder)| *responder).max() == self.responder {
                let changed = select_all(known.into_iter().map(|(broker, known)| Box::pin(broker.responder_changed(known))));
                tokio::select! {
                    biased;
                    _ = changed => {}
                    () = task::passed(self.until) => return DeadlineChange::Passed,
                }
            }
            let moved = self.look();
            if self.responder.is_none() && !self.was_attended {
                return DeadlineChange::Disconnected;
            }
            if moved {
                return DeadlineChange::Moved(self.at_ms());
            }
        }
    }

    /// Waits until the deadline has passed.
    pub(crate) async fn passed(mut self) {
        while !matches!(self.change().await, DeadlineChange::Passed) {}
    }
}
