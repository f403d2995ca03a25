//! The end of a server's process, and its standard error.

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::time::timeout;

use crate::limits;
use crate::process::ChildExit;
use crate::workspace::one_line;

/// Maximum number of logged lines of stderr for each instance of an MCP server.
const MCP_LOG_LINES_MAX: usize = 1_000;

/// Waits a limited time for the process to exit by itself, because its input is closed, then kills
/// it. Returns the exit status, if known.
pub(super) async fn terminate(mut ending: ChildExit) -> Option<i32> {
    let mut ended = timeout(limits::MCP_SHUTDOWN_GRACE, ending.wait()).await;
    if ended.is_err() {
        ending.cut();
        ended = timeout(limits::END_WAIT, ending.wait()).await;
    }
    ended.ok()?.ok().map(|status| status.code)
}

/// Logs the lines of a server's stderr, within limits, reads the others, and keeps the last line.
/// Returns at the end of stderr, which a server can close and continue.
pub(super) async fn log_stderr(name: &str, errors: impl AsyncRead + Unpin, last_line: &Mutex<String>) {
    let mut reader = BufReader::new(errors);
    let (mut line, mut lines) = (Vec::new(), 0);
    while let Ok(bytes) = reader.fill_buf().await {
        if bytes.is_empty() {
            break;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&part[..part.len().min(limits::MCP_LOG_LINE_BYTES_MAX - line.len())]);
        let used = end.map_or(bytes.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            let text = one_line(String::from_utf8_lossy(&line).trim().to_owned());
            if lines < MCP_LOG_LINES_MAX {
                tracing::info!(server = name, "{text}");
            }
            if !text.is_empty() {
                *last_line.lock() = text;
            }
            lines += 1;
            line.clear();
        }
    }
}
