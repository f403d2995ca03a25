//! Captures a command's output and shows it while the command runs.

use super::capture::Capture;
use super::follow::OutputSink;
use super::output::Progress;
use crate::content::ToolContent;

/// The output of a running command.
pub(crate) struct LiveOutput<'a> {
    pub capture: Capture,
    /// Text that is shown before the output.
    pub head: String,
    pub progress: &'a Progress,
}

impl OutputSink for LiveOutput<'_> {
    async fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes).await;
    }

    fn has_new_output(&self) -> bool {
        self.capture.has_new_output()
    }

    fn show(&mut self) {
        (self.progress)(vec![ToolContent::text(format!("{}{}", self.head, self.capture.live()))]);
    }
}
