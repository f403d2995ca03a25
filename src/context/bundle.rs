//! The description of a git repository in the first model request of a session. Pure.

use crate::limits;

/// The start of the description.
pub(crate) const START: &str = "<repository>";
const END: &str = "</repository>";
const NOTE: &str = "The state of the repository when the session started; parts may be omitted.";

/// Facts about a repository, each as lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RepositoryFacts {
    /// The branch, then the changed files.
    pub git: Vec<String>,
    /// Languages, each with its number of files.
    pub languages: Vec<String>,
    /// Entries of the top directory.
    pub top: Vec<String>,
    /// Entry points, each with its manifest.
    pub entry_points: Vec<String>,
    /// Files that fit the prompt, best first, each with some definitions.
    pub files: Vec<String>,
}

/// Returns the description, in at most `tokens` tokens; `None` without facts.
pub(crate) fn text(facts: &RepositoryFacts, tokens: usize) -> Option<String> {
    let room = (tokens * limits::BYTES_PER_TOKEN).checked_sub(START.len() + NOTE.len() + END.len() + 4)?;
    // The files get what the other sections leave.
    let sections: [(&str, &[String], usize); 5] = [
        ("Git:", &facts.git, room / 5),
        ("Files by language:", &facts.languages, room / 10),
        ("Top directory:", &facts.top, room / 5),
        ("Entry points:", &facts.entry_points, room / 5),
        ("Files that may matter, with definitions:", &facts.files, room),
    ];
    let mut body = String::new();
    for (title, lines, share) in sections {
        body.push_str(&section(title, lines, share.min(room - body.len())));
    }
    (!body.is_empty()).then(|| format!("{START}\n{NOTE}\n{body}{END}"))
}

/// A title and as many lines as fit into `room` bytes; empty if there is no room for a line.
fn section(title: &str, lines: &[String], room: usize) -> String {
    let mut text = format!("{title}\n");
    for (index, line) in lines.iter().enumerate() {
        let rest = format!("  [{} more]\n", lines.len() - index);
        let after = if index + 1 < lines.len() { rest.len() } else { 0 };
        if text.len() + line.len() + 3 + after > room {
            if index > 0 && text.len() + rest.len() <= room {
                text.push_str(&rest);
            }
            return if index == 0 { String::new() } else { text };
        }
        text.push_str(&format!("  {line}\n"));
    }
    if lines.is_empty() { String::new() } else { text }
}

/// Joins names to lines of at most 100 characters.
pub(crate) fn wrapped(names: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + 2 + name.len() <= 100 => line.extend(["  ", name]),
            _ => lines.push(name.clone()),
        }
    }
    lines
}
