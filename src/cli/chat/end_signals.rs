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

    /// Waits for SIGTERM, for SIGHUP, or for SIGINT while Ctrl-C is no key of the chat. When a
    /// program on the terminal, such as an editor, has ended, Ctrl-C is a key again, so that the
    /// SIGINT which this process received with the program has no effect.
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
