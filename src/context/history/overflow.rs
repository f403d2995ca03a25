//! Makes room in a conversation that exceeded the context window.

use super::{History, Position};
use crate::context::conversation::LinkedMessage;
use crate::context::notes::{OVERFLOW, OVERFLOW_OLDEST};
use crate::context::size::message_bytes;
use crate::model::Message;

/// The part of a conversation that is omitted to make room: one of this number.
const OVERFLOW_SHARE: usize = 4;

impl History {
    /// Ends a turn that exceeded the model's context window: leaves out the turn, so that the next
    /// request has the size of an earlier one. If the turn is short, or needs at most half of the
    /// window according to the provider's numbers, the conversation before it fills the window;
    /// then the oldest messages are also omitted. `reported` has the size of the request and of the
    /// window.
    pub(super) fn leave_out_overflow(&mut self, reported: Option<(u64, u64)>) {
        self.close();
        self.running = false;
        let whole = self.all.bytes(self.end.last);
        self.end = self.turn_start;
        let before: Vec<LinkedMessage> = self.all.backwards(self.end.last).cloned().collect();
        let kept = self.all.bytes(self.end.last);
        let turn = whole.saturating_sub(kept);
        self.end.note = Some(OVERFLOW);
        let fits_in_half = reported.is_some_and(|(request, window)| {
            // The request also contains the instructions and the tools.
            request.saturating_mul(turn as u64) <= (window / 2).saturating_mul(whole as u64)
        });
        if turn < kept / OVERFLOW_SHARE || fits_in_half {
            // A message of the user starts the rest, so that every tool result has its call.
            let mut rest: Vec<LinkedMessage> = Vec::new();
            let mut rest_start = 0;
            let mut bytes = 0;
            for (count, linked) in before.into_iter().enumerate() {
                bytes += message_bytes(&linked.message);
                if matches!(*linked.message, Message::User(_)) && kept.saturating_sub(bytes) >= kept / OVERFLOW_SHARE {
                    rest_start = count + 1;
                }
                rest.push(linked);
            }
            rest.truncate(rest_start);
            let mode = rest.iter().find_map(|linked| self.told_mode(&linked.message));
            self.end = Position { last: None, note: Some(OVERFLOW_OLDEST), mode, context: false };
            for linked in rest.into_iter().rev() {
                self.end.last = Some(self.all.add(self.end.last, linked.message, linked.origin, linked.turn));
            }
        }
    }
}
