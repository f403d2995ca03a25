//! Source files as the checks read them: code, comments and string literals told apart by a small
//! lexer, so that a brace in a string or a word in a path is not mistaken for the other.

use std::path::{Path, PathBuf};

/// One Rust file of the package.
pub struct Source {
    /// Relative to the package, with `/`.
    pub path: String,
    pub text: String,
    /// `text` with comments and the contents of literals replaced by spaces.
    pub code: String,
    /// Each comment line with its number, starting at its `//`.
    pub comments: Vec<(usize, String)>,
    /// Each string literal with the number of the line on which it starts.
    pub strings: Vec<(usize, String)>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        let mut source =
            Source { path: path.into(), text: text.into(), code: String::new(), comments: Vec::new(), strings: Vec::new() };
        Lexer { rest: text, line: 1, source: &mut source }.run();
        source
    }

    /// The module below `src` that the file belongs to.
    pub fn module(&self) -> &str {
        let inner = self.path.trim_start_matches("src/");
        inner.split('/').next().unwrap().trim_end_matches(".rs")
    }

    /// Lines of code with their numbers.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    source: &'a mut Source,
}

impl Lexer<'_> {
    fn run(mut self) {
        while let Some(first) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.source.comments.push((self.line, self.rest[..end].into()));
                self.blank(end);
            } else if let Some((open, close)) = self.string() {
                let body = open + self.rest[open..].find(&close).map_or(self.rest.len() - open, |at| at);
                let (line, text) = (self.line, self.rest[open..body].to_string());
                self.source.strings.push((line, text));
                self.keep(open);
                self.blank(body - open);
                self.keep(close.len().min(self.rest.len()));
            } else if first == '"' {
                let end = closing_quote(self.rest);
                self.source.strings.push((self.line, self.rest[1..end].into()));
                self.keep(1);
                self.blank(end - 1);
                self.keep(1.min(self.rest.len()));
            } else if let Some(length) = character_literal(self.rest) {
                self.blank(length);
            } else {
                self.keep(first.len_utf8());
            }
        }
    }

    /// A raw string at this place: the length of its opening and its closing delimiter.
    fn string(&self) -> Option<(usize, String)> {
        let after = self.rest.strip_prefix("br").or_else(|| self.rest.strip_prefix('r'))?;
        let begins = !self.source.code.ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let hashes = after.len() - after.trim_start_matches('#').len();
        let open = self.rest.len() - after.len() + hashes + 1;
        (begins && after[hashes..].starts_with('"')).then(|| (open, format!("\"{}", "#".repeat(hashes))))
    }

    fn keep(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.line += text.matches('\n').count();
        self.source.code.push_str(text);
        self.rest = rest;
    }

    fn blank(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.line += text.matches('\n').count();
        self.source.code.extend(text.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

/// Where the literal that starts `text` has its closing quote.
fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal at this place; a lifetime is none.
fn character_literal(text: &str) -> Option<usize> {
    let mut characters = text.strip_prefix('\'')?.char_indices();
    let (_, first) = characters.next()?;
    if first == '\\' {
        let end = text[3..].find('\'')? + 4;
        return Some(end);
    }
    let (at, second) = characters.next()?;
    (second == '\'').then_some(at + 2)
}

/// The package's root directory.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the package is in tests/it")
}

/// All Rust files below a directory of the package, sorted by path, without installed packages.
pub fn sources(dir: &str) -> Vec<Source> {
    fn gather(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("node_modules") {
                    gather(&path, found);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    gather(&package().join(dir), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        Source::new(path.strip_prefix(package()).unwrap().to_str().unwrap(), &text)
    };
    let sources: Vec<Source> = paths.into_iter().map(read).collect();
    assert!(!sources.is_empty(), "no sources in {dir}");
    sources
}

/// Fails with all findings at once.
pub fn assert_none(rule: &str, findings: Vec<String>) {
    assert!(findings.is_empty(), "{rule}:\n{}", findings.join("\n"));
}

#[test]
fn code_comments_and_strings_are_told_apart() {
    let text = "fn a<'x>() { // one {\n let s = \"}\\\"\"; let r = r#\"{\"}\"#; let c = '{'; let d = '\\n'; }\n/// two\n";
    let source = Source::new("src/a.rs", text);
    assert_eq!(source.code.lines().count(), text.lines().count());
    assert_eq!(source.code.matches('{').count(), 1);
    assert_eq!(source.code.matches('}').count(), 1);
    assert_eq!(source.comments, [(1, "// one {".to_string()), (3, "/// two".to_string())]);
    assert_eq!(source.strings, [(2, "}\\\"".to_string()), (2, "{\"}".to_string())]);
}
