//! `grep`: searches file contents with ripgrep's crates.

mod sink;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::types::{Types, TypesBuilder};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::sink::{FileHits, GrepMode, Hits};
use crate::content::ToolKind;
use crate::limits;
use crate::permission::Access;
use crate::toolkit::ignored_files::{IgnoredFiles, UntilDeadline};
use crate::toolkit::path_patterns::PathPatterns;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::workspace::{self, Walk, Workspace};

/// Maximum memory that `grep` uses for one line (with `multiline`: for one file), in bytes. Longer
/// lines or larger files are skipped.
const GREP_HEAP_BYTES_MAX: usize = 64 << 20;

pub(super) struct Grep;

/// Searches file contents with a regular expression (Rust syntax), or literally if the pattern is
/// none. Skips hidden, git-ignored and binary files.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct GrepInput {
    #[serde(alias = "query", alias = "regex")]
    pattern: String,
    /// File or directory, default the working directory.
    #[serde(default, alias = "directory", alias = "dir")]
    path: Option<String>,
    /// Only files with this name, such as `*.rs`; `.*` for hidden ones.
    #[serde(default, alias = "include")]
    glob: Option<String>,
    /// Only files of a type, such as `rust`.
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    /// Default content.
    output_mode: Option<GrepMode>,
    /// Lines after each match.
    #[serde(default, rename = "-A")]
    after: Option<usize>,
    /// Lines before.
    #[serde(default, rename = "-B")]
    before: Option<usize>,
    /// Lines around.
    #[serde(default, rename = "-C", alias = "context")]
    around: Option<usize>,
    #[serde(default, rename = "-i", alias = "case_insensitive")]
    ignore_case: Option<bool>,
    /// Accepted and always on.
    #[serde(default, rename = "-n")]
    #[schemars(skip)]
    _line_numbers: Option<bool>,
    /// Matches may span lines.
    multiline: Option<bool>,
    /// Number of results, default and at most 250.
    head_limit: Option<usize>,
}

impl GrepInput {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }

    /// Returns whether matches may span lines. They must if the pattern has a line break, which
    /// cannot match otherwise.
    fn multiline(&self) -> bool {
        self.multiline.unwrap_or(false) || self.pattern.contains('\n') || self.pattern.contains("\\n")
    }

    /// Returns the matcher, and whether it searches the text of a pattern that is no regular
    /// expression.
    fn matcher(&self) -> Result<(RegexMatcher, bool), ToolError> {
        match self.matcher_of(&with_any_endings(&self.pattern)) {
            Ok(matcher) => Ok((matcher, false)),
            Err(_) => self.matcher_of(&regex::escape(&self.pattern)).map(|matcher| (matcher, true)),
        }
    }

    fn matcher_of(&self, pattern: &str) -> Result<RegexMatcher, ToolError> {
        let multiline = self.multiline();
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(self.ignore_case.unwrap_or(false))
            .multi_line(true)
            .dot_matches_new_line(self.multiline.unwrap_or(false));
        if !multiline {
            builder.line_terminator(Some(b'\n'));
        }
        builder.build(pattern).map_err(|error| ToolError(format!("pattern: {error}")))
    }

    fn searcher(&self, mode: GrepMode) -> Searcher {
        let content = mode == GrepMode::Content;
        let around = self.around.unwrap_or(0);
        let context = |own: Option<usize>| if content { own.unwrap_or(around) } else { 0 };
        SearcherBuilder::new()
            .line_number(true)
            .multi_line(self.multiline())
            .heap_limit(Some(GREP_HEAP_BYTES_MAX))
            .before_context(context(self.before))
            .after_context(context(self.after))
            .binary_detection(BinaryDetection::quit(0))
            .build()
    }

    fn types(&self) -> Result<Option<Types>, ToolError> {
        let Some(name) = &self.file_type else { return Ok(None) };
        let mut builder = TypesBuilder::new();
        builder.add_defaults().select(name);
        builder.build().map(Some).map_err(|_| ToolError(format!("type: there is no file type {name}; use glob, such as *.{name}")))
    }
}

/// Returns the pattern with line breaks that also match `\r\n`.
fn with_any_endings(pattern: &str) -> Cow<'_, str> {
    // In verbose mode, a line break in the pattern is no text.
    if !(pattern.contains('\n') || pattern.contains("\\n")) || pattern.contains("(?x") {
        return Cow::Borrowed(pattern);
    }
    let (mut any, mut in_class, mut rest) = (String::with_capacity(pattern.len() + 16), false, pattern.chars());
    while let Some(character) = rest.next() {
        match (character, rest.as_str().chars().next()) {
            ('\n', _) if !in_class => any.push_str("(?:\r?\n)"),
            ('\\', Some('n')) if !in_class => {
                rest.next();
                any.push_str("(?:\r?\n)");
            }
            ('\\', _) => {
                any.push(character);
                any.extend(rest.next());
            }
            _ => {
                in_class = character == '[' || in_class && character != ']';
                any.push(character);
            }
        }
    }
    Cow::Owned(any)
}

/// The details of the result of a `grep` call. Both counts include only the files that are shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GrepDetails {
    files: usize,
    /// Matching lines; with `multiline`, matches.
    matches: u64,
    truncated: bool,
}

impl Tool for Grep {
    type Input = GrepInput;
    type Details = GrepDetails;
    const NAME: &'static str = "grep";
    const LABEL: &'static str = "Search files";
    const ALIASES: &'static [&'static str] = &["fs_grep", "search"];
    const KIND: ToolKind = ToolKind::Search;
    const PROPERTIES: ToolProperties = ToolProperties { lists_files: true, ..ToolProperties::NONE };

    fn title(&self, input: &GrepInput, workspace: &Workspace) -> String {
        let place = match workspace.show(&workspace.resolve(input.path()).path).as_str() {
            "." => String::new(),
            shown => format!(" in {shown}"),
        };
        let files = input.glob.as_ref().map(|glob| format!(" ({glob})")).unwrap_or_default();
        format!("Search \"{}\"{place}{files}", input.pattern)
    }

    fn access(&self, input: &GrepInput) -> Access {
        Access::read(input.path())
    }

    async fn run(&self, input: GrepInput, context: &ToolContext) -> Result<ToolOutput<GrepDetails>, ToolError> {
        let inner = context.clone();
        context.search(move || grep(&input, &inner)).await
    }
}

fn grep(input: &GrepInput, context: &ToolContext) -> Result<ToolOutput<GrepDetails>, ToolError> {
    let resolved = context.workspace.resolve(input.path());
    std::fs::metadata(&resolved.real).map_err(|error| context.failed("searching", &resolved.path, error))?;
    let names = input.glob.as_deref().map(PathPatterns::new).transpose()?;
    let walk = context.walk(&resolved.real).hidden(names.as_ref().is_some_and(|names| names.hidden));
    let mode = input.output_mode.unwrap_or(GrepMode::Content);
    let limit = input.head_limit.filter(|limit| *limit > 0).unwrap_or(limits::GREP_LINES_MAX).min(limits::GREP_LINES_MAX);
    let (matcher, is_literal) = input.matcher()?;
    let search = Search { input, context, root: &resolved.real, matcher, names, types: input.types()? };
    let literal = is_literal.then(|| "the pattern is no regular expression: its text was searched".to_owned());
    let show = |real: &Path| {
        let path = real.strip_prefix(&resolved.real).map_or_else(|_| real.to_owned(), |rest| resolved.path.join(rest));
        context.workspace.show(path.components().as_path())
    };
    let found = search.run(&walk, mode, SearchResults::new(limit), None);
    if !found.files.is_empty() {
        return Ok(found.output(mode, show, "").notes(literal));
    }
    let deadline = IgnoredFiles::deadline();
    let (walk, mode) = (walk.only_ignored(deadline), GrepMode::FilesWithMatches);
    let ignored = search.run(&walk, mode, SearchResults::new(usize::MAX), Some(deadline));
    let note = IgnoredFiles::new(ignored.files.keys().map(|path| show(path)), deadline).note("contain it");
    Ok(found.output(mode, show, &note.unwrap_or_default()).notes(literal))
}

/// A search of files.
struct Search<'c> {
    input: &'c GrepInput,
    context: &'c ToolContext,
    /// The searched directory or file.
    root: &'c Path,
    matcher: RegexMatcher,
    names: Option<PathPatterns>,
    types: Option<Types>,
}

impl Search<'_> {
    fn wants(&self, path: &Path) -> bool {
        let relative = path.strip_prefix(self.root).ok().filter(|path| !path.as_os_str().is_empty()).unwrap_or(path);
        self.names.as_ref().is_none_or(|names| names.fit(relative))
            && self.types.as_ref().is_none_or(|types| types.matched(path, false).is_whitelist())
    }

    /// Searches the files of `walk` and adds their matches to `results`. With a `deadline`, files
    /// end at that time.
    fn run(&self, walk: &Walk, mode: GrepMode, results: SearchResults, deadline: Option<Instant>) -> SearchResults {
        let found = Mutex::new(results);
        walk.parallel(|| {
            // Each thread has its own matcher, because threads would contend for a shared matcher.
            let (mut searcher, matcher) = (self.input.searcher(mode), self.matcher.clone());
            let found = &found;
            move |entry| {
                if !self.wants(&entry.path) || found.lock().is_beyond(&entry.path) {
                    return true;
                }
                let mut hits = Hits::new(mode, &matcher, &self.context.cancel);
                let searched = workspace::open(&entry.path).and_then(|file| match deadline {
                    Some(deadline) => searcher.search_reader(&matcher, UntilDeadline { reader: file, deadline }, &mut hits),
                    None => searcher.search_file(&matcher, &file, &mut hits),
                });
                // A file that cannot be read is treated as a file without matches.
                if let (Ok(()), Some(hits)) = (searched, hits.found()) {
                    found.lock().insert(entry.path, hits);
                }
                true
            }
        });
        found.into_inner()
    }
}

/// Collects the first results in path order, independent of the timing of the search threads.
/// Memory is bounded.
struct SearchResults {
    files: BTreeMap<PathBuf, FileHits>,
    /// Number of results in `files`: lines, or files without lines.
    results: usize,
    limit: usize,
    /// True if more results exist than are kept.
    more: bool,
}

fn results(hits: &FileHits) -> usize {
    hits.lines.len().max(1)
}

impl SearchResults {
    fn new(limit: usize) -> SearchResults {
        SearchResults { files: BTreeMap::new(), results: 0, limit, more: false }
    }

    /// Returns true if this file need not be searched, because none of its results can be among the
    /// first results. Always false until the results are known to be truncated.
    fn is_beyond(&self, path: &Path) -> bool {
        self.more && self.results >= self.limit && self.files.last_key_value().is_some_and(|(last, _)| path > last.as_path())
    }

    fn insert(&mut self, path: PathBuf, hits: FileHits) {
        self.results += results(&hits);
        self.files.insert(path, hits);
        while let Some(last) = self.files.last_entry()
            && self.results - results(last.get()) >= self.limit
        {
            self.results -= results(last.get());
            self.more = true;
            last.remove();
        }
    }

    /// Formats the results for the model. `ignored` says which ignored files would have matched.
    fn output(self, mode: GrepMode, show: impl Fn(&Path) -> String, ignored: &str) -> ToolOutput<GrepDetails> {
        let mut text = String::new();
        let mut left = self.limit;
        let mut matches = 0;
        let mut truncated = self.more;
        for (path, hits) in &self.files {
            let path = show(path);
            matches += hits.matches;
            match mode {
                GrepMode::FilesWithMatches => text.push_str(&format!("{path}\n")),
                GrepMode::Count => text.push_str(&format!("{path}:{}\n", hits.matches)),
                GrepMode::Content => {
                    truncated |= hits.more || hits.lines.len() > left;
                    for line in hits.lines.iter().take(left) {
                        line.write(&path, &mut text);
                    }
                    left -= hits.lines.len().min(left);
                }
            }
        }
        if self.files.is_empty() {
            text.push_str(&format!("no matches found\n{ignored}"));
        }
        let cut = truncated && !self.files.is_empty();
        let note = cut.then(|| format!("the first {} results; use a narrower pattern, path or glob", self.limit));
        ToolOutput::text(text, GrepDetails { files: self.files.len(), matches, truncated }).notes(note)
    }
}
