//! The messages that wait for the running turn or its end, in the rows below the output.

use crate::event::Delivery;
use crate::id::MessageId;
use crate::terminal_text::output_line;
use crate::transcript::TranscriptBlock;

/// Maximum number of rows.
const ROWS_MAX: usize = 4;

struct WaitingMessage {
    id: MessageId,
    text: String,
    delivery: Delivery,
}

/// The messages that wait, oldest first.
#[derive(Default)]
pub(crate) struct WaitingMessages(Vec<WaitingMessage>);

impl WaitingMessages {
    pub(crate) fn apply(&mut self, block: &TranscriptBlock<'_>) {
        match block {
            TranscriptBlock::Queued { id, text, delivery } => {
                self.0.push(WaitingMessage { id: (*id).clone(), text: text.clone(), delivery: *delivery });
            }
            TranscriptBlock::QueuedChange { id, text, delivery } => {
                let Some(message) = self.0.iter_mut().find(|message| message.id == **id) else { return };
                message.text = text.clone().unwrap_or_else(|| std::mem::take(&mut message.text));
                message.delivery = delivery.unwrap_or(message.delivery);
            }
            TranscriptBlock::Unqueued { id } => self.remove(id),
            _ => {}
        }
    }

    pub(crate) fn remove(&mut self, id: &MessageId) {
        self.0.retain(|message| message.id != *id);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the id and the text of the newest message.
    pub(crate) fn newest(&self) -> Option<(MessageId, String)> {
        self.0.last().map(|message| (message.id.clone(), message.text.clone()))
    }

    /// Removes all messages. Returns their ids and texts, newest first.
    pub(crate) fn take(&mut self) -> Vec<(MessageId, String)> {
        std::mem::take(&mut self.0).into_iter().rev().map(|message| (message.id, message.text)).collect()
    }

    /// Returns a row for each of the newest messages: those for the running turn, and those for the
    /// next one.
    pub(crate) fn rows(&self) -> impl Iterator<Item = String> {
        let hidden = self.0.len().saturating_sub(ROWS_MAX);
        self.0.iter().skip(hidden).map(|message| {
            let when = match message.delivery {
                Delivery::Steer => "now",
                Delivery::Queue => "next",
            };
            format!("→ {when}: {}", output_line(&message.text))
        })
    }
}
