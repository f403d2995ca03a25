//! `read`: returns a file as numbered lines, or an image. Files are streamed, so their size is not
//! limited.

use std::fs::File;
use std::io::{self, Read as _, Seek};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::content::{Location, Part, ToolContent, ToolKind};
use crate::limits;
use crate::permission::Access;
use crate::toolkit::client_copy::ClientCopy;
use crate::toolkit::text::{Encoding, TextLines};
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::{self, ResolvedPath, Workspace};

/// Maximum number of lines per `read` call.
const READ_LINES_MAX: u64 = 5_000;
/// Number of lines that `read` returns by default.
const READ_LINES: u64 = 2_000;
/// Maximum size of a result, in bytes.
const RESULT_BYTES_MAX: usize = 64 << 10;
/// A file of at most so many lines and bytes is returned whole: models that ask for a part of it
/// invent the rest.
const SMALL_LINES_MAX: usize = 200;
const SMALL_BYTES_MAX: usize = 16 << 10;
/// Maximum number of bytes that `read` returns of one line.
const READ_LINE_BYTES_MAX: usize = 8 << 10;
/// Maximum number of bytes that `read` returns of a line that it continues (`skip_bytes`).
const READ_PART_BYTES_MAX: usize = 32 << 10;

pub(super) struct Read;

/// Reads a text file with line numbers, or an image. A file of at most 200 lines is returned whole.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct ReadInput {
    /// Absolute, or relative to the session's directory (not bash's).
    #[serde(alias = "path", alias = "filePath", alias = "file")]
    file_path: String,
    /// First line, from 1.
    offset: Option<u64>,
    /// Lines to read, default 2000, at most 5000.
    limit: Option<u64>,
    /// Bytes to skip in the first line.
    skip_bytes: Option<usize>,
}

impl ReadInput {
    /// Returns the input of a call that reads the whole file. One that continues a line stays.
    fn whole(&self) -> ReadInput {
        let whole = ReadInput { offset: None, limit: None, ..self.clone() };
        if self.skip_bytes.is_some() { self.clone() } else { whole }
    }
}

/// The details of the result of a `read` call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum ReadDetails {
    Text {
        file_path: PathBuf,
        /// Lines of the file.
        total_lines: u64,
        /// Lines in the result.
        lines_read: u64,
        /// Number of the first line in the result, from 1.
        offset: u64,
        /// Lines are missing after the last one, or some are not complete.
        truncated: bool,
    },
    Image {
        file_path: PathBuf,
        mime_type: String,
        /// Bytes.
        size: usize,
    },
}

impl Tool for Read {
    type Input = ReadInput;
    type Details = ReadDetails;
    const NAME: &'static str = "read";
    const LABEL: &'static str = "Read file";
    const ALIASES: &'static [&'static str] = &["fs_read", "read_file"];
    const KIND: ToolKind = ToolKind::Read;

    fn title(&self, input: &ReadInput, workspace: &Workspace) -> String {
        let shown = workspace.show(&workspace.resolve(&input.file_path).path);
        match (input.offset, input.limit) {
            (None, None) => format!("Read {shown}"),
            (offset, None) => format!("Read {shown} from line {}", offset.unwrap_or(1)),
            (offset, Some(limit)) => {
                let first = offset.unwrap_or(1).max(1);
                format!("Read {shown} lines {first}-{}", first.saturating_add(limit).saturating_sub(1))
            }
        }
    }

    fn locations(&self, input: &ReadInput, workspace: &Workspace) -> Vec<Location> {
        let line = input.offset.and_then(|line| u32::try_from(line).ok());
        vec![Location { path: workspace.resolve(&input.file_path).path, line }]
    }

    fn access(&self, input: &ReadInput) -> Access {
        Access::read(&input.file_path)
    }

    async fn run(&self, input: ReadInput, context: &ToolContext) -> Result<ToolOutput<ReadDetails>, ToolError> {
        let resolved = context.workspace.resolve(&input.file_path);
        let inner = context.clone();
        context.read_blocking(move || read(&resolved, &input, &inner)).await
    }
}

fn read(resolved: &ResolvedPath, input: &ReadInput, context: &ToolContext) -> Result<ToolOutput<ReadDetails>, ToolError> {
    let shown = context.workspace.show(&resolved.path);
    let fail = |error: io::Error| match error.kind() {
        io::ErrorKind::IsADirectory => ToolError(format!("{shown} is a directory; use list to see what is in it")),
        io::ErrorKind::NotFound => ToolError(format!("{shown} does not exist{}", similar_name(resolved))),
        _ => context.failed("reading", &resolved.path, error),
    };
    let mut file = match workspace::open(&resolved.real) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match context.client_copy(resolved, None)?.unsaved() {
            Some(text) => {
                context.files.note(&resolved.real, Some(text));
                return read_unsaved(text, resolved, input, context);
            }
            None => return Err(fail(error)),
        },
        opened => opened.map_err(fail)?,
    };
    let mut head = Vec::new();
    (&mut file).take(limits::BINARY_PROBE_BYTES as u64).read_to_end(&mut head).map_err(fail)?;
    file.rewind().map_err(fail)?;
    if let Some(mime_type) = workspace::image_type(&head) {
        return image(file, mime_type, resolved, &shown).map_err(fail)?;
    }
    let encoding = Encoding::detect(&head);
    if encoding == Encoding::Utf8 && head.contains(&0) {
        return Err(ToolError(format!("{shown} is a binary file; use bash to look into it (file, xxd, strings)")));
    }
    let client_copy = client_copy(&mut file, encoding, resolved, context).map_err(fail)??;
    context.files.note(&resolved.real, client_copy.unsaved());
    match client_copy.unsaved() {
        Some(text) => read_unsaved(text, resolved, input, context),
        None => {
            let size = file.metadata().map_err(fail)?.len();
            let input = &whole_if_small(&mut file, size, input).map_err(fail)?;
            let page = Page::read(TextLines::new(file, encoding, size), input, &context.cancel).map_err(fail)?;
            page.output(&resolved.path, &shown)
        }
    }
}

/// Reads the client's copy of a file that exists on disk.
fn client_copy(
    file: &mut File,
    encoding: Encoding,
    resolved: &ResolvedPath,
    context: &ToolContext,
) -> io::Result<Result<ClientCopy, ToolError>> {
    if context.client_of(resolved).is_none() || !matches!(encoding, Encoding::Utf8 | Encoding::Utf8Marked) {
        return Ok(Ok(ClientCopy::Unknown));
    }
    let mut disk = Vec::new();
    file.read_to_end(&mut disk)?;
    file.rewind()?;
    Ok(context.client_copy(resolved, Some(&disk)))
}

fn read_unsaved(
    text: &str,
    resolved: &ResolvedPath,
    input: &ReadInput,
    context: &ToolContext,
) -> Result<ToolOutput<ReadDetails>, ToolError> {
    let lines = TextLines::new(text.as_bytes(), Encoding::detect(text.as_bytes()), text.len() as u64);
    let input = &if is_small(text.as_bytes()) { input.whole() } else { input.clone() };
    let page = Page::read(lines, input, &context.cancel).map_err(|error| context.failed("reading", &resolved.path, error))?;
    let mut output = page.output(&resolved.path, &context.workspace.show(&resolved.path))?;
    output.parts.push(Part::note("content of the editor, including unsaved changes"));
    Ok(output)
}

fn whole_if_small(file: &mut File, size: u64, input: &ReadInput) -> io::Result<ReadInput> {
    if size > SMALL_BYTES_MAX as u64 {
        return Ok(input.clone());
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    (&mut *file).take(SMALL_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    file.rewind()?;
    Ok(if is_small(&bytes) { input.whole() } else { input.clone() })
}

fn is_small(content: &[u8]) -> bool {
    content.len() <= SMALL_BYTES_MAX && content.split_inclusive(|byte| *byte == b'\n').count() <= SMALL_LINES_MAX
}

fn image(
    file: File,
    mime_type: &str,
    resolved: &ResolvedPath,
    shown: &str,
) -> io::Result<Result<ToolOutput<ReadDetails>, ToolError>> {
    let mut bytes = Vec::new();
    file.take(limits::IMAGE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limits::IMAGE_BYTES_MAX {
        let most = limits::IMAGE_BYTES_MAX >> 20;
        return Ok(Err(ToolError(format!(
            "{shown} is an image of more than {most} MiB; use bash to make a smaller copy and read that"
        ))));
    }
    let image = Part::Image { mime_type: mime_type.into(), data: STANDARD.encode(&bytes) };
    let details = ReadDetails::Image { file_path: resolved.path.clone(), mime_type: mime_type.into(), size: bytes.len() };
    Ok(Ok(ToolOutput {
        parts: vec![Part::text(format!("{shown} ({mime_type}, {} bytes)", bytes.len())), image.clone()],
        content: vec![ToolContent::Content { content: image }],
        ..ToolOutput::text("", details)
    }))
}

/// Returns ` (did you mean …)` if the directory contains a name that differs only in case or
/// extension, else an empty string.
pub(super) fn similar_name(resolved: &ResolvedPath) -> String {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let entries = resolved.real.parent().and_then(|parent| std::fs::read_dir(parent).ok());
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| stem(&entry.path()) == stem(&resolved.real))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.first().map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

/// The requested lines of a file.
struct Page {
    text: String,
    /// Number of the first line, from 1.
    first: u64,
    /// Number of lines in `text`.
    lines: u64,
    /// Lines of the file.
    total: u64,
    /// True if some lines are truncated.
    cut: bool,
    /// True if some bytes are not valid text.
    lossy: bool,
}

impl Page {
    fn read(mut lines: TextLines<impl io::Read>, input: &ReadInput, cancel: &CancellationToken) -> io::Result<Page> {
        let first = input.offset.unwrap_or(1).max(1);
        let wanted = input.limit.unwrap_or(READ_LINES).clamp(1, READ_LINES_MAX);
        let go_on = || !cancel.is_cancelled();
        let mut page = Page { text: String::new(), first, lines: 0, total: 0, cut: false, lossy: false };
        page.total = lines.skip(first - 1, go_on)?;
        while page.lines < wanted && go_on() {
            let (skip, most) = match input.skip_bytes {
                Some(skip) if page.lines == 0 => (skip, READ_PART_BYTES_MAX),
                _ => (0, READ_LINE_BYTES_MAX),
            };
            let Some(line) = lines.next(skip, most)? else { return Ok(page) };
            page.total += 1;
            if page.lines > 0 && page.text.len() + line.text.len() > RESULT_BYTES_MAX {
                break;
            }
            page.lines += 1;
            page.lossy |= line.lossy;
            page.text.push_str(&format!("{:>6}\t{}", page.total, line.text));
            if line.bytes_left > 0 {
                page.cut = true;
                let (number, next) = (page.total, line.bytes_end);
                page.text.push_str(&format!(
                    " [{} more bytes in this line; read on with offset {number} and skip_bytes {next}]",
                    line.bytes_left
                ));
            }
            page.text.push('\n');
        }
        page.total += lines.skip(u64::MAX, go_on)?;
        Ok(page)
    }

    fn output(self, path: &Path, shown: &str) -> Result<ToolOutput<ReadDetails>, ToolError> {
        if self.first > self.total.max(1) {
            return Err(ToolError(format!("{shown} has {} lines: there is no line {}", self.total, self.first)));
        }
        let next = self.first + self.lines;
        let truncated = next <= self.total;
        let (first, last, total) = (self.first, next - 1, self.total);
        let notes = [
            (total == 0).then(|| "the file is empty".to_owned()),
            truncated.then(|| format!("truncated: lines {first} to {last} of {total}; read on with offset {next}")),
            self.lossy.then(|| "not valid UTF-8: invalid bytes are shown as \u{fffd}".to_owned()),
        ];
        let details = ReadDetails::Text {
            file_path: path.to_owned(),
            total_lines: self.total,
            lines_read: self.lines,
            offset: self.first,
            truncated: truncated || self.cut,
        };
        Ok(ToolOutput::text(self.text, details).notes(notes.into_iter().flatten()))
    }
}
