//! The language of comments, messages and docs: plain terms, and lines within 100 columns.

use super::source::{assert_none, package, sources};

/// README.md and all files in docs.
fn documents() -> Vec<String> {
    let files = std::fs::read_dir(package().join("docs")).unwrap();
    let names = files.map(|file| format!("docs/{}", file.unwrap().file_name().to_str().unwrap()));
    names.chain(["README.md".into()]).collect()
}

/// Longest line of a comment or a document, in characters. Rows of a Markdown table cannot be
/// wrapped and may be longer, as may a line that consists of one link.
const COLUMNS: usize = 100;

/// Words that have a plain equivalent (word, what to write instead). A word ending in `*` matches
/// every word that starts with it.
const REPLACED: &[(&str, &str)] = &[
    ("mend*", "fix"),
    ("anew", "again"),
    ("thereupon", "then"),
    ("hitherto", "until now"),
    ("whoever", "name the caller, the client or the process"),
    ("whomever", "name the caller, the client or the process"),
    ("somebody", "name the caller, the client or the process"),
    ("nobody", "no client, no caller"),
    ("in the midst", "during"),
    ("mourn*", "report the failure"),
    ("for ever", "without a bound"),
    ("its business", "name what it is responsible for"),
    ("is told", "is reported, is returned"),
    ("are told", "are reported, receive"),
    ("was told", "was reported, received"),
    ("were told", "were reported, received"),
    ("comes to its end", "ends"),
    ("come to their ends", "end"),
    ("broke off", "was interrupted"),
    ("beside", "next to, in addition to"),
    ("meanwhile", "concurrently, in the meantime"),
    ("keeps from", "prevents"),
    ("keep from", "prevent"),
    ("gives up", "ends, releases"),
    ("the house", "the application"),
    ("a door", "a transport"),
    ("the door", "the transport"),
    ("doors", "transports"),
    ("the desk", "the environment"),
    ("is no cursor", "invalid cursor"),
    ("is no address", "invalid address"),
    ("is none", "is absent"),
    ("in its stead", "instead"),
    ("as yet", "so far"),
    ("lest", "so that … not"),
];

/// How a comment may not begin: with a relative clause or a fragment in place of a subject.
const BEGINNINGS: &[&str] =
    &["What ", "Whether ", "Whoever ", "Who ", "The same", "None:", "Of one ", "One that ", "Those ", "That which "];

/// A result that clients may look for: its words stay.
const PUBLIC: &str = "not run: nobody answered";

/// The entry of the list that stands in `text` as whole words.
fn replaced(text: &str) -> Option<&'static (&'static str, &'static str)> {
    let text = text.to_lowercase();
    let boundary = |character: Option<char>| !character.is_some_and(|character| character.is_alphanumeric() || character == '_');
    REPLACED.iter().find(|(word, _)| {
        let stem = word.trim_end_matches('*');
        text.match_indices(stem).any(|(at, _)| {
            let after = text[at + stem.len()..].chars().next();
            boundary(text[..at].chars().next_back()) && (word.ends_with('*') || boundary(after))
        })
    })
}

#[test]
fn comments_and_messages_use_plain_terms() {
    let mut findings = Vec::new();
    for source in &sources("src") {
        let mut before = (0, true);
        for (number, comment) in &source.comments {
            let text = comment.trim_start_matches(['/', '!']).trim();
            let starts = before != (number - 1, false);
            if let Some((word, plain)) = replaced(text) {
                findings.push(format!("{}:{number}: \"{word}\": write {plain}", source.path));
            }
            if starts && let Some(beginning) = BEGINNINGS.iter().find(|beginning| text.starts_with(**beginning)) {
                findings.push(format!("{}:{number}: starts with \"{}\": name the subject", source.path, beginning.trim()));
            }
            before = (*number, text.ends_with(['.', ':', '?', '`']) || text.is_empty());
        }
        for (number, text) in source.strings.iter().filter(|(_, text)| text.contains(' ') && !text.contains(PUBLIC)) {
            if let Some((word, plain)) = replaced(text) {
                findings.push(format!("{}:{number}: \"{word}\" in a message: write {plain}", source.path));
            }
        }
    }
    assert_none("plain terms", findings);
}

/// Words in -s at the beginning of a doc comment that are no verbs.
const NO_VERBS: &[&str] = &["This", "Its", "Always", "Arguments", "Events", "Lines", "Options", "Others", "Settings", "Values"];

/// Returns whether a line of code begins a function.
fn begins_function(line: &str) -> bool {
    let modifier =
        |word: &str| ["pub", "const", "async", "unsafe", "extern"].contains(&word) || word.starts_with("pub(") || word == "\"C\"";
    line.split_whitespace().find(|word| !modifier(word)) == Some("fn")
}

#[test]
fn docs_of_functions_begin_with_a_verb() {
    let mut findings = Vec::new();
    for source in &sources("src") {
        let mut lines = source.text.lines().map(str::trim).enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            let Some(text) = line.strip_prefix("/// ") else { continue };
            // The rest of the comment, and attributes.
            let skipped = |line: &str| line.starts_with("///") || line.starts_with("#[") || line.ends_with(")]");
            while lines.next_if(|(_, line)| skipped(line)).is_some() {}
            let first = text.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
            let is_verb = first.ends_with('s') && first.starts_with(char::is_uppercase) && !NO_VERBS.contains(&first);
            if !is_verb && lines.peek().is_some_and(|(_, line)| begins_function(line)) {
                findings.push(format!("{}:{}: {text}", source.path, index + 1));
            }
        }
    }
    assert_none("the docs of functions begin with a verb, such as Returns", findings);
}

#[test]
fn comments_stay_within_their_columns() {
    let mut findings = Vec::new();
    for source in &sources("src") {
        let lines: Vec<&str> = source.text.lines().collect();
        for (number, _) in &source.comments {
            let width = lines[number - 1].chars().count();
            if width > COLUMNS {
                findings.push(format!("{}:{number}: {width} columns", source.path));
            }
        }
    }
    assert_none("comments fit", findings);
}

#[test]
fn documents_use_plain_terms_and_stay_within_their_columns() {
    let mut findings = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(package().join(&document)).unwrap();
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            fenced ^= line.starts_with("```");
            let (number, width) = (index + 1, line.chars().count());
            let link = line.trim().starts_with('[') && !line.trim().contains(' ');
            if width > COLUMNS && !line.starts_with('|') && !link {
                findings.push(format!("{document}:{number}: {width} columns"));
            }
            if let Some((word, plain)) = replaced(line).filter(|_| !fenced) {
                findings.push(format!("{document}:{number}: \"{word}\": write {plain}"));
            }
        }
    }
    assert_none("documents are plain", findings);
}

#[test]
fn words_are_found_as_words() {
    let cases = [
        ("it mends the file", Some("mend*")),
        ("a recommended amendment", None),
        ("told apart from commands", None),
        ("the client is told once", Some("is told")),
        ("besides", None),
        ("Whoever asks", Some("whoever")),
    ];
    for (text, expected) in cases {
        assert_eq!(replaced(text).map(|(word, _)| *word), expected, "{text}");
    }
}
