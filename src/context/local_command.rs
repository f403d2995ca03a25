//! Slash commands that nuncio runs itself, without sending the user's message to the model.

use crate::content::Part;

/// The names, descriptions and input hints of the local commands.
pub(super) const LOCAL_COMMANDS: &[(&str, &str, &str)] = &[
    ("compact", "Replace the conversation by a summary", "what to emphasize"),
    ("context", "Show the tokens of the conversation by source", ""),
];

/// A prompt that is a local command. The prompt and its answer are not part of the conversation
/// that models see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LocalCommand {
    /// Compacts the conversation; the summary emphasizes `focus`.
    Compact { focus: Option<String> },
    /// Shows the tokens of the conversation by source.
    Context,
}

impl LocalCommand {
    /// Returns the command that a prompt consists of.
    pub(crate) fn of(parts: &[Part]) -> Option<LocalCommand> {
        let [Part::Text { text }] = parts else { return None };
        let (name, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        match name {
            "/compact" => Some(LocalCommand::Compact { focus: Some(rest.trim().to_string()).filter(|focus| !focus.is_empty()) }),
            "/context" if rest.trim().is_empty() => Some(LocalCommand::Context),
            _ => None,
        }
    }
}
