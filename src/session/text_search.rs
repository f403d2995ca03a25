//! Search in the texts of a session: its title, its directory and its messages.

use super::sessions::Sessions;
use crate::content::Part;
use crate::error::{Error, Result};
use crate::event::{Body, Event};
use crate::limits;
use crate::store::SessionRow;

/// Number of characters of an excerpt in front of the first word that was found, and in all.
const EXCERPT_BEFORE: usize = 40;
const EXCERPT_CHARS: usize = 160;

/// Words that a text must contain, in any order and without regard to case.
pub(crate) struct TextSearch {
    words: Vec<String>,
    /// For each word, a pattern of LIKE that the JSON of each text with the word matches.
    patterns: Vec<String>,
}

impl TextSearch {
    /// Reads the words of a query. Fails if it has none, or more than the limits allow.
    pub(crate) fn new(query: &str) -> Result<TextSearch> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() || query.len() > limits::SEARCH_BYTES_MAX {
            return Err(Error::invalid_params(format!("text: must have a word, and at most {} bytes", limits::SEARCH_BYTES_MAX)));
        }
        let patterns = words.iter().map(|word| pattern(word)).collect();
        Ok(TextSearch { words, patterns })
    }

    fn is_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.words.iter().all(|word| text.contains(word))
    }

    /// Returns the part of a text around the first word of the query that it has, on one line.
    fn excerpt(&self, text: &str) -> String {
        let at = self.words.iter().filter_map(|word| position(text, word)).min().unwrap_or(0);
        let from = text[..at].char_indices().rev().nth(EXCERPT_BEFORE - 1).map_or(0, |(from, _)| from);
        let to = text[from..].char_indices().nth(EXCERPT_CHARS).map_or(text.len(), |(to, _)| from + to);
        let words: Vec<&str> = text[from..to].split_whitespace().collect();
        let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
        format!("{before}{}{after}", words.join(" "))
    }
}

/// Returns the pattern of LIKE for a word. Only ASCII letters and digits are the same in the JSON
/// of a text, and only their case is ignored by each database.
fn pattern(word: &str) -> String {
    let plain: String = word.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '%' }).collect();
    format!("%{plain}%")
}

/// Returns the place of a word in lower case, in bytes.
fn position(text: &str, word: &str) -> Option<usize> {
    let at = text.to_lowercase().find(word)?;
    let mut lower = 0;
    let place = text.char_indices().find(|(_, character)| {
        lower += character.to_lowercase().map(char::len_utf8).sum::<usize>();
        lower > at
    });
    place.map(|(place, _)| place)
}

/// Where the words of a search were found.
pub(crate) enum Occurrence {
    /// In the title and the directory.
    Place,
    /// The part of the message around the first word.
    Message(String),
}

impl Sessions {
    /// Returns where all words of a search are: in the title and the directory of a session, or in
    /// its first message that has them.
    pub(crate) async fn find_text(&self, row: &SessionRow, search: &TextSearch) -> Result<Option<Occurrence>> {
        if search.is_in(&format!("{}\n{}", row.title.as_deref().unwrap_or_default(), row.cwd.display())) {
            return Ok(Some(Occurrence::Place));
        }
        let mut after = 0;
        loop {
            let page = self.store.messages_like(&row.id, row.key, &search.patterns, after, limits::PAGE_EVENTS).await?;
            let Some(last) = page.last() else { return Ok(None) };
            after = last.seq;
            if let Some(text) = page.iter().flat_map(texts).find(|text| search.is_in(text)) {
                return Ok(Some(Occurrence::Message(search.excerpt(text))));
            }
        }
    }
}

fn texts(event: &Event) -> impl Iterator<Item = &str> {
    let parts = match &event.body {
        Body::MessageCompleted { parts, discarded: false, .. } => parts.as_slice(),
        _ => &[],
    };
    parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    })
}
