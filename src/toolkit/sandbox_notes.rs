//! Notes on the sandbox in the results of commands.

use crate::process::{ExitStatus, Sandbox};

/// Returns notes on the sandbox for the model, one per line: protections that this system does not
/// support and, if the command failed, what the sandbox permits.
pub(crate) fn sandbox_notes(sandbox: &Sandbox, status: &ExitStatus) -> String {
    let mut notes = String::new();
    if let Some(unsupported) = &status.unsupported {
        notes = format!("[sandbox: not blocked on this system: {unsupported}]\n");
    }
    if status.code != 0 {
        let mode = if sandbox.writable.is_empty() { "read-only" } else { "workspace-write" };
        let writable: String = sandbox.writable.iter().map(|path| format!("{}, ", path.display())).collect();
        let network = if sandbox.network { "network, but no unix sockets" } else { "no network, no sockets" };
        let private = if sandbox.private.is_empty() {
            ""
        } else {
            "; nuncio's own directories cannot be read, and those above them cannot be listed"
        };
        notes += &format!("[sandbox {mode}: writes only below {writable}$TMPDIR; {network}{private}]\n");
    }
    notes
}
