//! Ctrl-R: a search in the texts that the user sent.

use super::commands::CompletionCandidate;
use super::completion::{Completion, ComposerWord, WordKind};
use super::state::Chat;

impl Chat {
    /// Lists the earlier texts that contain the present one, newest first.
    pub(super) fn search_history(&mut self) {
        let (text, cursor) = self.view.composer.text();
        let wanted = text[..cursor].trim().to_lowercase();
        let mut found: Vec<&String> = Vec::new();
        for earlier in self.view.composer.history().iter().rev() {
            if earlier.to_lowercase().contains(&wanted) && !found.contains(&earlier) {
                found.push(earlier);
            }
        }
        let candidates = found.into_iter().map(|text| CompletionCandidate { value: text.clone(), about: String::new() });
        let word = ComposerWord { kind: WordKind::History, start: 0, text: text.into() };
        self.view.completion = Completion::new(word, candidates.collect());
    }

    /// Returns whether the earlier texts are searched.
    pub(super) fn searches_history(&self) -> bool {
        self.view.completion.as_ref().is_some_and(|completion| completion.word.kind == WordKind::History)
    }
}
