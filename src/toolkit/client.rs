//! Client-side files and terminals for the tools of a session. The local disk and local processes
//! are the fallback.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;

use crate::content::ToolContent;

/// A client's files and terminals. Each call has a timeout. If the client lacks the capability or
/// does not answer in time, the caller uses the local disk or process.
pub trait ClientAccess: Send + Sync {
    /// Returns whether the client can read or write files.
    fn has_files(&self) -> bool;

    /// Returns the client's text of a file, unsaved changes included; `None` if the client has no
    /// such method or file, or does not answer in time: the caller uses the disk.
    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Option<String>, ClientRefusal>>;

    /// Returns true if the client accepted `text` as the file's content, false if the caller has to
    /// write it. A client that does not answer in time may still write it: see `may_write`.
    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<bool, ClientRefusal>>;

    /// Reports that the client did not keep the content it was given. Its files are no longer used
    /// in this session, and the user is notified once.
    fn distrust(&self, path: &Path);

    /// Returns whether a write of the file is pending: requested, and neither confirmed nor
    /// refused.
    fn may_write(&self, path: &Path) -> bool;

    /// Ends a pending write, because the file has the requested content although the client did not
    /// answer.
    fn has_written(&self, path: &Path);

    /// Starts a command in a terminal of the client. `None` if the client has no terminal; nothing
    /// runs then. An error if the client did not answer; the command may be running then.
    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>>;
}

/// The message of an error with which a client refused a request. There is no fallback then.
#[derive(Clone, Debug)]
pub struct ClientRefusal(pub String);

/// A command for a client's terminal.
pub struct TerminalCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Bytes at the end of the output that the client keeps.
    pub output_bytes_max: u64,
}

/// A command that runs in a client's terminal. Dropping it releases the terminal and ends the
/// command.
pub trait ClientTerminal: Send + Sync {
    /// The terminal as content for users; `output` is for clients that cannot show it.
    fn shown(&self, output: String) -> ToolContent;

    /// Waits for the command to end. Returns its exit status, or 128 plus the number of the signal
    /// that ended it; `None` if the client does not report it.
    fn ended(&self) -> BoxFuture<'_, Option<i32>>;

    /// The output so far, and whether it is truncated to its end.
    fn output(&self) -> BoxFuture<'_, Option<(String, bool)>>;

    /// Ends the command.
    fn kill(&self) -> BoxFuture<'_, ()>;
}
