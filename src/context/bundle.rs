//! The description of a git repository in the first model request of a session. Pure.

use crate::limits;

/// The start of the description.
pub(crate) const START: &str = "<repository>";
const END: &str = "</repository>";
const NOTE: &str = "The state of the directory when the session started; parts may be omitted.";

/// Facts about a repository, each as lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RepositoryFacts {
    /// The branch, then the changed files.
    pub git: Vec<String>,
    /// Languages, each with its number of files.
    pub languages: Vec<String>,
    /// Names of the entries of the top directory.
    pub top: Vec<String>,
    /// Entry points, each with its manifest.
    pub entry_points: Vec<String>,
    /// Files that fit the prompt, best first, each with some definitions.
    pub files: Vec<String>,
}

/// Returns the description, in at most `tokens` tokens; `None` without facts.
pub(crate) fn text(facts: &RepositoryFacts, tokens: usize) -> Option<String> {
    let room = (tokens * limits::BYTES_PER_TOKEN).checked_sub(START.len() + NOTE.len() + END.len() + 4)?;
    // The list of files uses the room that the other sections leave.
    let sections: [(&str, Vec<Line>, usize); 5] = [
        ("Git:", lines(&facts.git), room / 5),
        ("Files by language:", lines(&facts.languages), room / 10),
        ("Top directory:", wrap(&facts.top), room / 5),
        ("Entry points:", lines(&facts.entry_points), room / 5),
        ("Files that may matter, with definitions:", lines(&facts.files), room),
    ];
    let mut body = String::new();
    for (title, lines, share) in sections {
        body.push_str(&section(title, &lines, share.min(room - body.len())));
    }
    (!body.is_empty()).then(|| format!("{START}\n{NOTE}\n{body}{END}"))
}

/// A line of a section, and the number of its entries.
struct Line {
    text: String,
    entries: usize,
}

fn lines(texts: &[String]) -> Vec<Line> {
    texts.iter().map(|text| Line { text: text.clone(), entries: 1 }).collect()
}

/// Returns a title and as many lines as fit into `room` bytes; empty if there is no room for one.
/// The last line counts the entries that are omitted.
fn section(title: &str, lines: &[Line], room: usize) -> String {
    let mut text = format!("{title}\n");
    let mut left: usize = lines.iter().map(|line| line.entries).sum();
    for (index, Line { text: line, entries }) in lines.iter().enumerate() {
        let rest = format!("  [{left} more]\n");
        let after = if index + 1 < lines.len() { rest.len() } else { 0 };
        if text.len() + line.len() + 3 + after > room {
            if index > 0 && text.len() + rest.len() <= room {
                text.push_str(&rest);
            }
            return if index == 0 { String::new() } else { text };
        }
        text.push_str(&format!("  {line}\n"));
        left -= entries;
    }
    if lines.is_empty() { String::new() } else { text }
}

/// Joins names to lines of at most 100 bytes.
fn wrap(names: &[String]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.text.len() + 2 + name.len() <= 100 => {
                line.text.extend(["  ", name]);
                line.entries += 1;
            }
            _ => lines.push(Line { text: name.clone(), entries: 1 }),
        }
    }
    lines
}
