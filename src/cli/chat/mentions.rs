//! Files and directories that a message names with `@`. Their content is sent with the message.

use std::path::Path;

use super::state::Chat;
use crate::api::{FileView, ReadFile, ReadFileParams, SearchFiles, SearchFilesParams};
use crate::cli::run::attached_files::file_uri;
use crate::content::Part;
use crate::error::{Error, Kind, Result};

/// Maximum number of files and directories of a message.
const MENTIONS_MAX: usize = 20;
/// Maximum size of the text of a file that is sent, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Maximum number of paths in the list of a directory.
const PATHS_MAX: usize = 200;
/// Characters that end a sentence and may follow a path.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\''];

/// The path of a file or directory in a text, and the first and the last of its lines that are
/// meant.
#[derive(Debug, PartialEq, Eq)]
struct Mention<'a> {
    path: &'a str,
    lines: Option<(usize, usize)>,
}

impl Mention<'_> {
    /// Returns the mentions of a text: `@path`, `@path#L3`, `@path#L3-9` and `@"path with blanks"`.
    /// A mention begins a word.
    fn all(text: &str) -> Vec<Mention<'_>> {
        let starts = text.match_indices('@').map(|(at, _)| at);
        let begins_word = |at: &usize| text[..*at].chars().next_back().is_none_or(|before| before.is_whitespace() || before == '(');
        starts.filter(begins_word).filter_map(|at| Mention::parse(&text[at + 1..])).collect()
    }

    fn parse(text: &str) -> Option<Mention<'_>> {
        let (path, lines) = match text.strip_prefix('"') {
            Some(quoted) => {
                let (path, after) = quoted.split_once('"')?;
                (path, after.split_whitespace().next().filter(|_| after.starts_with('#')).and_then(line_range))
            }
            None => {
                let word = text.split_whitespace().next().filter(|_| !text.starts_with(char::is_whitespace))?;
                let range = word.rfind("#L").and_then(|at| Some((&word[..at], line_range(&word[at..])?)));
                range.map_or((word, None), |(path, lines)| (path, Some(lines)))
            }
        };
        (!path.is_empty() && !path.contains('\n')).then_some(Mention { path, lines })
    }

    /// Returns the paths that the mention may mean: as it is written, and without what ends a
    /// sentence.
    fn paths(&self) -> impl Iterator<Item = &str> {
        let trimmed = self.path.trim_end_matches(PUNCTUATION);
        std::iter::once(self.path).chain((trimmed != self.path && !trimmed.is_empty()).then_some(trimmed))
    }
}

/// Reads `#L3` or `#L3-9`, also with what ends a sentence.
fn line_range(text: &str) -> Option<(usize, usize)> {
    let (first, last) =
        text.trim_end_matches(PUNCTUATION).strip_prefix("#L").map(|range| range.split_once('-').unwrap_or((range, range)))?;
    let (first, last) = (first.parse().ok()?, last.trim_start_matches('L').parse().ok()?);
    (1 <= first && first <= last).then_some((first, last))
}

impl Chat {
    /// Reads the files and lists the directories that a text names. Prints why a file, or a part of
    /// it, is not sent. A word that names no file is only text.
    pub(super) async fn mentioned(&mut self, text: &str) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mentions = Mention::all(text);
        for mention in mentions.iter().take(MENTIONS_MAX) {
            match self.read_mention(mention).await {
                Ok(Some((part, remark))) => {
                    self.view.print(&remark);
                    if !parts.contains(&part) {
                        parts.push(part);
                    }
                }
                Ok(None) => {}
                Err(error) => self.view.print(&format!("@{} is not sent: {}\n", mention.path, error.message)),
            }
        }
        if mentions.len() > MENTIONS_MAX {
            self.view.print(&format!("only the first {MENTIONS_MAX} files are sent\n"));
        }
        parts
    }

    /// Returns the content of a file or directory, and a remark for the user. `None` if it does not
    /// exist.
    async fn read_mention(&self, mention: &Mention<'_>) -> Result<Option<(Part, String)>> {
        for path in mention.paths() {
            let listed = if path.ends_with('/') { self.list(path).await? } else { None };
            if let Some(part) = listed {
                return Ok(Some((part, String::new())));
            }
            let params = ReadFileParams { session_id: self.session.id.clone(), path: path.into() };
            match self.session.client.call::<ReadFile>(params).await {
                Ok(file) => return part(file, path, mention.lines).map(Some),
                Err(error) if error.kind == Kind::NotFound => {}
                Err(error) => {
                    let listed = self.list(&format!("{path}/")).await?;
                    return listed.map(|part| Some((part, String::new()))).ok_or(error);
                }
            }
        }
        Ok(None)
    }

    /// Lists a directory, whose path ends with `/`. `None` if no path is below it.
    async fn list(&self, directory: &str) -> Result<Option<Part>> {
        let params = SearchFilesParams::in_session(&self.session.id, directory, PATHS_MAX);
        let found = self.session.client.call::<SearchFiles>(params).await?;
        let mut paths: Vec<&str> =
            found.paths.iter().filter_map(|path| path.strip_prefix(directory.trim_start_matches("./"))).collect();
        paths.retain(|path| !path.is_empty());
        paths.sort_unstable();
        if paths.is_empty() {
            return Ok(None);
        }
        let more = if found.paths.len() == PATHS_MAX { "\n[there may be more]" } else { "" };
        let uri = file_uri(&self.view.info.cwd.join(directory));
        Ok(Some(Part::Resource { uri, mime_type: Some("text/plain".into()), text: paths.join("\n") + more }))
    }
}

/// Converts a file to a part of the message. Returns a remark on what was left out, too.
fn part(file: FileView, path: &str, lines: Option<(usize, usize)>) -> Result<(Part, String)> {
    let FileView { name, mime_type, data, text, .. } = file;
    let Some(text) = text else { return Ok((Part::Image { mime_type, data }, String::new())) };
    let mut uri = file_uri(Path::new(&name));
    let mut chosen = text.as_str();
    if let Some((first, last)) = lines {
        let mut ends = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).chain([text.len()]);
        let start = ends.nth(first - 1).filter(|start| *start < text.len());
        let start = start.ok_or_else(|| Error::invalid_params(format!("it has {} lines", text.lines().count())))?;
        let end = ends.nth(last - first).unwrap_or(text.len());
        chosen = &text[start..end];
        uri += &format!("#L{first}-{last}");
    }
    let mime_type = Some(if mime_type.starts_with("text/") { mime_type } else { "text/plain".into() });
    let whole = chosen.len();
    if whole <= TEXT_BYTES_MAX {
        let is_replaced = chosen.contains(char::REPLACEMENT_CHARACTER);
        let remark = if is_replaced { format!("@{path} is not UTF-8: characters of it are replaced\n") } else { String::new() };
        return Ok((Part::Resource { uri, mime_type, text: chosen.into() }, remark));
    }
    let end = chosen.floor_char_boundary(TEXT_BYTES_MAX);
    let end = chosen[..end].rfind('\n').map_or(end, |newline| newline + 1);
    let (cut, kib) = (&chosen[..end], |bytes: usize| bytes.div_ceil(1024));
    let remark = format!("@{path}: the first {} of {} KiB are sent\n", kib(end), kib(whole));
    let text = format!("{cut}[cut: the first {} lines of {}]", cut.lines().count(), chosen.lines().count());
    Ok((Part::Resource { uri, mime_type, text }, remark))
}
