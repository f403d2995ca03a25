//! The activity of a session that shows no output: a model request, or running tool calls.

use std::time::Instant;

use crate::content::{Part, ToolContent};
use crate::event::ChildLabel;
use crate::id::ToolCallId;
use crate::transcript::TranscriptBlock;

use super::amounts::tokens;

/// Number of last lines that are kept of the output of a running call.
const LAST_LINES: usize = 3;

/// The activity of a running turn, from the blocks of its transcript.
#[derive(Default)]
pub(crate) struct TurnActivity {
    /// The running tool calls, in the order of their starts.
    calls: Vec<RunningCall>,
    /// The operation between tool calls.
    waiting: Option<CurrentWork>,
    /// `PROVIDER/MODEL` of the last request.
    model: String,
    /// Input and output tokens of the turn so far.
    tokens: u64,
    /// The running subagents of the session, in the order of their starts.
    pub subagents: Vec<ChildLabel>,
}

/// An operation that takes time.
#[derive(Clone, Debug)]
pub(crate) struct CurrentWork {
    pub title: String,
    pub since: Instant,
    /// The amount that it has used or written.
    pub detail: String,
    /// The last lines of its output, at most [`LAST_LINES`].
    pub output: Vec<String>,
}

impl CurrentWork {
    pub(crate) fn new(title: String) -> CurrentWork {
        CurrentWork { title, since: Instant::now(), detail: String::new(), output: Vec::new() }
    }

    /// Returns the last line of the output, or else the detail.
    pub(crate) fn last(&self) -> &str {
        self.output.last().unwrap_or(&self.detail)
    }
}

struct RunningCall {
    id: ToolCallId,
    work: CurrentWork,
}

impl TurnActivity {
    pub(crate) fn apply(&mut self, block: &TranscriptBlock<'_>) {
        match block {
            TranscriptBlock::TurnStart => (self.tokens, self.waiting) = (0, None),
            TranscriptBlock::Request { model } => {
                self.model = (*model).into();
                self.wait_for(format!("waiting for {model}"));
            }
            // The input of tool calls may follow the text.
            TranscriptBlock::MessageText { .. } => self.wait_for(format!("{} writes", self.model)),
            TranscriptBlock::ToolInput { name, bytes, path } => {
                let file = path.map(|path| format!(" {path}")).unwrap_or_default();
                self.wait_for(format!("{} writes: {name}{file}", self.model));
                if let Some(waiting) = &mut self.waiting {
                    waiting.detail = format!("{:.1} kB", *bytes as f64 / 1000.0);
                }
            }
            TranscriptBlock::CompactionStart => self.wait_for("compacting the conversation".into()),
            TranscriptBlock::CompactionEnd { .. } => self.waiting = None,
            TranscriptBlock::Usage { turn, .. } => self.tokens = turn.input_tokens + turn.output_tokens,
            TranscriptBlock::ToolStart { id, title, .. } => {
                self.calls.push(RunningCall { id: (*id).clone(), work: CurrentWork::new((*title).into()) });
            }
            TranscriptBlock::ToolProgress { id, title, content } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == **id) {
                    call.work.title.clone_from(title);
                    call.work.output = content.iter().rev().find_map(last_lines).unwrap_or_default();
                }
            }
            TranscriptBlock::ToolEnd(end) => self.calls.retain(|call| call.id != *end.id),
            TranscriptBlock::SubagentStart(child) => self.subagents.push((*child).clone()),
            TranscriptBlock::SubagentEnd(child, _) => {
                self.subagents.retain(|running| running.child_session_id != child.child_session_id);
            }
            TranscriptBlock::TurnEnd { .. } => (self.calls, self.waiting) = (Vec::new(), None),
            _ => {}
        }
    }

    fn wait_for(&mut self, title: String) {
        if self.waiting.as_ref().is_none_or(|waiting| waiting.title != title) {
            self.waiting = Some(CurrentWork::new(title));
        }
    }

    /// Returns the running calls, in the order of their starts.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&ToolCallId, &CurrentWork)> {
        self.calls.iter().map(|call| (&call.id, &call.work))
    }

    /// Returns the operation to show: the newest running call, else the wait for the model.
    pub(crate) fn current(&self) -> Option<CurrentWork> {
        match (self.calls.as_slice(), &self.waiting) {
            ([], waiting) => {
                let detail = if self.tokens > 0 { format!("{} tokens so far", tokens(self.tokens)) } else { String::new() };
                waiting.clone().map(|waiting| if waiting.detail.is_empty() { CurrentWork { detail, ..waiting } } else { waiting })
            }
            ([call], _) => Some(call.work.clone()),
            ([.., call], _) => {
                let title = format!("{} calls, {}", self.calls.len(), call.work.title);
                Some(CurrentWork { title, ..call.work.clone() })
            }
        }
    }
}

/// Returns the last lines of the text of a call's content.
fn last_lines(content: &ToolContent) -> Option<Vec<String>> {
    let text = match content {
        ToolContent::Content { content: Part::Text { text } } => text,
        ToolContent::Terminal { output, .. } => output,
        ToolContent::Content { .. } | ToolContent::Diff { .. } => return None,
    };
    let lines = text.lines().rev().map(str::trim_end).filter(|line| !line.trim().is_empty()).take(LAST_LINES);
    let mut lines: Vec<String> = lines.map(String::from).collect();
    lines.reverse();
    Some(lines).filter(|lines| !lines.is_empty())
}
