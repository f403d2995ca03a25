//! Documents and audio in requests. Parts that a model does not read are replaced by text before
//! the request is encoded for the provider.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::message::{Message, Messages};
use crate::config::Ability;
use crate::content::{PDF, Part};

/// The kinds of parts, besides text and images, that a model reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// PDF documents.
    pub pdf: bool,
    /// Audio.
    pub audio: bool,
}

impl Media {
    /// Creates the media that a model with these abilities reads.
    pub(crate) fn new(abilities: &[Ability]) -> Media {
        Media { pdf: abilities.contains(&Ability::Pdf), audio: abilities.contains(&Ability::Audio) }
    }

    /// Returns the media that are in both.
    pub(crate) fn and(self, other: Media) -> Media {
        Media { pdf: self.pdf && other.pdf, audio: self.audio && other.audio }
    }

    /// Returns whether the model reads this part itself.
    pub(crate) fn reads(self, part: &Part) -> bool {
        match part {
            Part::Document { mime_type, .. } => self.pdf && mime_type == PDF,
            Part::Audio { .. } => self.audio,
            Part::Text { .. } | Part::Note { .. } | Part::Image { .. } | Part::Resource { .. } | Part::ResourceLink { .. } => true,
        }
    }

    /// Replaces the parts of messages that the model does not read by text.
    pub(crate) fn fit(self, messages: &mut Messages) {
        for index in 0..messages.len() {
            if let Some(fitted) = self.fitted(&messages[index]) {
                Arc::make_mut(messages)[index] = Arc::new(fitted);
            }
        }
    }

    /// Returns the message that is sent instead of `message`, if it differs.
    fn fitted(self, message: &Message) -> Option<Message> {
        let unread = |parts: &Vec<Part>| parts.iter().any(|part| !self.reads(part));
        let replace = |part: &mut Part| {
            if !self.reads(part) {
                *part = Part::text(part.as_text());
            }
        };
        match message {
            Message::User(parts) if unread(parts) => {
                let mut parts = parts.clone();
                parts.iter_mut().for_each(replace);
                Some(Message::User(parts))
            }
            Message::ToolResults(results) if results.iter().any(|result| unread(&result.output)) => {
                let mut results = results.clone();
                results.iter_mut().flat_map(|result| &mut result.output).for_each(replace);
                Some(Message::ToolResults(results))
            }
            Message::User(_) | Message::Assistant(_) | Message::ToolResults(_) => None,
        }
    }
}

/// Returns the name of an audio format in the requests of OpenAI: `wav` or `mp3`. Other formats
/// keep the name in their media type.
pub(crate) fn audio_format(mime_type: &str) -> &str {
    match mime_type.strip_prefix("audio/").unwrap_or(mime_type) {
        "mpeg" | "mp3" | "x-mp3" => "mp3",
        "wav" | "x-wav" | "wave" | "vnd.wave" => "wav",
        other => other,
    }
}
