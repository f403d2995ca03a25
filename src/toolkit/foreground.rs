//! The commands that calls wait for, which a user can move to the background.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::id::ToolCallId;

/// The commands of a session that are not in the background: a call waits for each.
#[derive(Debug, Default)]
pub(crate) struct ForegroundCommands(Mutex<Vec<(ToolCallId, CancellationToken)>>);

/// RAII guard: the command of a call is not in the background.
pub(crate) struct ForegroundCommand {
    commands: Arc<ForegroundCommands>,
    call: ToolCallId,
    /// Cancelled when the call should leave the command to the background.
    pub moved: CancellationToken,
}

impl ForegroundCommands {
    /// Registers a command that `call` waits for.
    pub(crate) fn add(self: &Arc<Self>, call: &ToolCallId) -> ForegroundCommand {
        let moved = CancellationToken::new();
        self.0.lock().push((call.clone(), moved.clone()));
        ForegroundCommand { commands: self.clone(), call: call.clone(), moved }
    }

    /// Moves the command of `call`, or all commands, to the background. Returns their calls.
    pub(crate) fn move_to_background(&self, call: Option<&ToolCallId>) -> Vec<ToolCallId> {
        let commands = self.0.lock();
        let chosen = commands.iter().filter(|(id, moved)| call.is_none_or(|call| call == id) && !moved.is_cancelled());
        chosen.map(|(id, moved)| (moved.cancel(), id.clone()).1).collect()
    }
}

impl Drop for ForegroundCommand {
    fn drop(&mut self) {
        self.commands.0.lock().retain(|(id, _)| *id != self.call);
    }
}
