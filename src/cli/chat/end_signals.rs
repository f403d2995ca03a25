//! Signals that end the chat.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::keys;
use crate::app::on_termination;
use crate::task;

/// Listens for the signals that end the chat.
pub(super) struct EndSignals {
    terminated: CancellationToken,
    /// `None` if this process cannot listen for SIGINT.
    interrupt: Option<Signal>,
}

impl EndSignals {
    pub(super) fn listen() -> EndSignals {
        let terminated = CancellationToken::new();
        task::spawn(on_termination(terminated.clone()));
        EndSignals { terminated, interrupt: signal(SignalKind::interrupt()).ok() }
    }

    /// Waits for SIGTERM or SIGHUP, or for SIGINT while Ctrl-C sends it. In the mode of the chat,
    /// Ctrl-C is a key. A SIGINT that ended a program on the terminal, such as an editor, reaches
    /// this process too; it is ignored, because the terminal is in the mode of the chat again.
    pub(super) async fn end(&mut self) {
        let interrupted = async {
            match &mut self.interrupt {
                Some(interrupt) => while interrupt.recv().await.is_some() && !keys::has_interrupt_character() {},
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.terminated.cancelled() => {}
            () = interrupted => {}
        }
    }
}
