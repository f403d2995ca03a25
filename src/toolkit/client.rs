//! Client-side files and terminals for the tools of a session. The local disk and local processes
//! are the fallback.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;

use crate::content::{Form, FormAnswer, ToolContent};
use crate::id::ToolCallId;

/// A client's files and terminals. Each call has a timeout. If the client lacks the capability or
/// does not answer in time, the caller uses the local disk or process.
pub trait ClientAccess: Send + Sync {
    /// Returns whether the client can read or write files.
    fn has_files(&self) -> bool;

    /// Returns whether the client's texts have exactly the final newlines of its files. Some
    /// editors drop or add them.
    fn has_exact_texts(&self) -> bool;

    /// Returns the client's text of a file, including unsaved changes. Returns `None` if the client
    /// lacks the capability or the file, or does not answer in time; the caller then reads the file
    /// on disk.
    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Option<String>, ClientRefusal>>;

    /// Asks the client to write `text` as the file's content. Returns true if the client accepted,
    /// and false if the caller has to write the file. A client that does not answer in time may
    /// still write the file later; see `may_write`.
    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<bool, ClientRefusal>>;

    /// Records whether the client's text of a file has unsaved changes: such a file is left to a
    /// client that has disconnected.
    fn note_unsaved(&self, path: &Path, unsaved: bool);

    /// Reports that the client did not keep the content that it was given. The client's files are
    /// no longer used in this session, and the user is notified once.
    fn distrust(&self, path: &Path);

    /// Returns whether a write of the file is pending, which means that the client has neither
    /// confirmed nor refused the write request.
    fn may_write(&self, path: &Path) -> bool;

    /// Marks a pending write as completed, because the file has the requested content although the
    /// client did not answer.
    fn has_written(&self, path: &Path);

    /// Asks the user to fill in a form, during this tool call. Waits without a time limit. Returns
    /// `None` if the client cannot show forms.
    fn fill<'a>(&'a self, form: &'a Form, call: &'a ToolCallId) -> BoxFuture<'a, Option<FormAnswer>>;

    /// Starts a command in a client terminal. Returns `None`, without starting the command, if the
    /// client has no terminals. Returns an error if the client did not answer; in this case the
    /// command may be running.
    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>>;
}

/// The error message of a client that refused a request. A refused request does not fall back to
/// the local disk or process.
#[derive(Clone, Debug)]
pub struct ClientRefusal(pub String);

/// A command for a client's terminal.
pub struct TerminalCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Maximum size of the output that the client keeps, in bytes. Of longer output, the end is
    /// kept.
    pub output_bytes_max: u64,
}

/// A command that runs in a client's terminal. Dropping this value releases the terminal and kills
/// the command.
pub trait ClientTerminal: Send + Sync {
    /// Returns the terminal as content for users; `output` is for clients that cannot show the
    /// terminal.
    fn shown(&self, output: String) -> ToolContent;

    /// Waits for the command to exit. Returns its exit code, or 128 plus the number of the signal
    /// that killed the command; `None` if the client reports neither.
    fn ended(&self) -> BoxFuture<'_, Option<i32>>;

    /// Returns the output so far, and whether the client kept only the end of the output.
    fn output(&self) -> BoxFuture<'_, Option<(String, bool)>>;

    fn kill(&self) -> BoxFuture<'_, ()>;
}
