//! The state of the chat that is shown, from the events of its session.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::commands::CompletionCandidate;
use super::completion::Completion;
use super::composer::Composer;
use super::forms::ChatForm;
use super::hunks::HunkReview;
use super::info::SessionInfo;
use super::key_table::KeyTable;
use super::output_queue::OutputQueue;
use super::pager::Pager;
use super::picker::SessionPicker;
use super::pinned_plan::PinnedPlan;
use super::question::ChatQuestion;
use super::rows::wrapped_words;
use super::vim::VimState;
use super::waiting_messages::WaitingMessages;
use crate::cli::terminal::activity::{CurrentWork, TurnActivity};
use crate::cli::terminal::lines::QUIET;
use crate::cli::terminal::notify::Notifier;
use crate::cli::terminal::renderer::{RenderedText, TerminalRenderer};
use crate::cli::terminal::status_line::columns;
use crate::content::Cost;
use crate::error::Error;
use crate::event::{Body, Event, PermissionDecision, ToolEnd};
use crate::id::PermissionId;
use crate::terminal_text::{output, output_line};
use crate::transcript::{Transcript, TranscriptBlock, TurnEndReason};

/// The time within which a key counts as pressed twice.
pub(super) const PRESSED_AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of lines of earlier turns that are printed when a session is opened.
const EARLIER_LINES: usize = 400;

/// A list on the alternate screen.
pub(crate) enum Overlay {
    Sessions(SessionPicker),
    Text(Pager),
    Hunks(HunkReview),
}

/// The rejection of a request whose reason the user writes.
pub(crate) struct RejectReason {
    pub id: PermissionId,
    pub option: String,
}

/// The state of the chat that is shown.
pub(crate) struct ChatView {
    transcript: Transcript,
    pub renderer: TerminalRenderer,
    pub activity: TurnActivity,
    pub composer: Composer,
    pub completion: Option<Completion>,
    /// The commands of the chat and of the agent.
    pub commands: Vec<CompletionCandidate>,
    pub overlay: Option<Overlay>,
    pub questions: Vec<ChatQuestion>,
    pub reason: Option<RejectReason>,
    pub form: Option<ChatForm>,
    pub queue: WaitingMessages,
    pub plan: PinnedPlan,
    /// The names of the files for the next message.
    pub attached: Vec<String>,
    /// Rendered output that is not printed yet.
    pub output: OutputQueue,
    /// Control sequences for the next frame.
    pub control: String,
    /// The sequence that set the title of the terminal.
    title: String,
    /// The commands of the user that run or wait, oldest first.
    pub shell: VecDeque<(CurrentWork, CancellationToken)>,
    /// The numbers of the background jobs that run.
    pub jobs: Vec<String>,
    /// A job was started or read since the jobs were listed.
    pub starts_job: bool,
    /// Messages with the output of commands of the user, which was printed.
    pub notes: Vec<String>,
    pub busy: bool,
    pub info: SessionInfo,
    pub branch: Option<String>,
    /// Tokens in use, and of the context window.
    pub context: (u64, u64),
    pub cost: Option<Cost>,
    pub colour: bool,
    pub plain: bool,
    pub last_key: Instant,
    /// When the terminal sent something last.
    pub last_input: Instant,
    /// When Ctrl-C was pressed last.
    pub interrupted: Option<Instant>,
    /// The last frame said that a key may answer, and that a second Ctrl-C quits.
    pub drawn_for: (bool, bool),
    pub last_answer: String,
    pub notifier: Notifier,
    pub history_file: PathBuf,
    pub keys: KeyTable,
    pub vim: VimState,
    /// The text above the status row.
    pub status_text: String,
    pub status_columns_max: usize,
    /// The newest turn that ended since the session is shown has failed.
    pub failed: Option<bool>,
}

impl ChatView {
    pub(crate) fn new(
        renderer: TerminalRenderer,
        colour: bool,
        notifier: Notifier,
        history_file: PathBuf,
        keys: KeyTable,
    ) -> ChatView {
        ChatView {
            transcript: Transcript::default(),
            renderer,
            activity: TurnActivity::default(),
            composer: Composer::new(super::history::load(&history_file)),
            completion: None,
            commands: super::completion::own_commands(),
            overlay: None,
            questions: Vec::new(),
            reason: None,
            form: None,
            queue: WaitingMessages::default(),
            plan: PinnedPlan::default(),
            attached: Vec::new(),
            output: OutputQueue::default(),
            control: String::new(),
            title: String::new(),
            shell: VecDeque::new(),
            jobs: Vec::new(),
            starts_job: false,
            notes: Vec::new(),
            busy: false,
            info: SessionInfo::default(),
            branch: None,
            context: (0, 0),
            cost: None,
            colour,
            plain: false,
            last_key: Instant::now(),
            last_input: Instant::now(),
            interrupted: None,
            drawn_for: (false, false),
            last_answer: String::new(),
            notifier,
            history_file,
            keys,
            vim: VimState::default(),
            status_text: String::new(),
            status_columns_max: usize::MAX,
            failed: None,
        }
    }

    /// Forgets the session, because another one follows. The text of the composer is unchanged.
    pub(crate) fn leave_session(&mut self, renderer: TerminalRenderer) {
        let rest = self.output.take();
        self.output.insert(&rest);
        (self.transcript, self.renderer, self.activity) = (Transcript::default(), renderer, TurnActivity::default());
        (self.completion, self.overlay, self.reason) = (None, None, None);
        (self.questions, self.queue, self.plan) = (Vec::new(), WaitingMessages::default(), PinnedPlan::default());
        (self.busy, self.context, self.cost) = (false, (0, 0), None);
        (self.jobs, self.starts_job, self.failed) = (Vec::new(), false, None);
        self.info = SessionInfo { cwd: std::mem::take(&mut self.info.cwd), ..SessionInfo::default() };
        self.commands = super::completion::own_commands();
        self.last_answer.clear();
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match &event.body {
            Body::PermissionResolved(PermissionDecision { permission_id: Some(id), .. }) => self.close_question(id),
            Body::MessageCompleted { message_id, .. } => self.queue.remove(message_id),
            Body::ToolCompleted(ToolEnd { details: Some(details), .. }) if details["job"].is_string() => {
                self.starts_job = true;
                // A job that was just started can end before the jobs are listed.
                self.jobs.extend(details["job"].as_str().filter(|_| details["running"].is_null()).map(String::from));
            }
            Body::SessionUpdated { change } => {
                if let Some(title) = &change.title {
                    self.info.title = Some(title.clone());
                    self.set_title();
                }
            }
            _ => {}
        }
        let mut transcript = std::mem::take(&mut self.transcript);
        for block in transcript.apply(event) {
            self.activity.apply(&block);
            if let TranscriptBlock::UserMessage { text, .. } = &block
                && let Some(at) = self.notes.iter().position(|note| note == text)
            {
                self.notes.remove(at);
                continue;
            }
            self.block(&block);
            self.queue.apply(&block);
            self.renderer.mode = self.info.mode.parse().ok();
            match &block {
                TranscriptBlock::Plan(entries) if self.busy && !self.plain => {
                    if let Some(ended) = self.plan.update(entries) {
                        self.render(&TranscriptBlock::Plan(&ended));
                    }
                    continue;
                }
                TranscriptBlock::TurnEnd { .. } => {
                    let plan = self.plan.take();
                    self.render(&TranscriptBlock::Plan(&plan));
                }
                _ => {}
            }
            self.render(&block);
        }
        self.transcript = transcript;
    }

    fn render(&mut self, block: &TranscriptBlock<'_>) {
        for piece in self.renderer.render(block) {
            self.output.push(piece);
        }
    }

    /// Closes a request, and shows the next one.
    pub(crate) fn close_question(&mut self, id: &PermissionId) {
        self.reason = self.reason.take().filter(|reason| reason.id != *id);
        self.overlay = self.overlay.take().filter(|overlay| !matches!(overlay, Overlay::Hunks(review) if review.id == *id));
        let Some(at) = self.questions.iter().position(|question| question.id == *id) else { return };
        self.questions.remove(at);
        if at == 0 {
            self.show_question();
        }
    }

    /// Shows the first request, which input answers from now on.
    fn show_question(&mut self) {
        let Some(question) = self.questions.first_mut() else { return };
        question.appear();
        if self.plain {
            let shown = format!("{}Answer with /1, /2, …\n", question.text());
            self.insert(&output(&shown));
        }
    }

    fn block(&mut self, block: &TranscriptBlock<'_>) {
        match block {
            TranscriptBlock::TurnStart => {
                self.busy = true;
                self.set_title();
            }
            TranscriptBlock::TurnEnd { cost, duration, reason, .. } => {
                self.failed = Some(matches!(reason, TurnEndReason::Failed { .. }));
                self.busy = false;
                self.questions.clear();
                self.cost = Cost::sum(self.cost, *cost);
                self.control.extend(self.notifier.ended(*duration));
                self.set_title();
            }
            TranscriptBlock::Request { model } => self.info.model = Some((*model).into()),
            TranscriptBlock::Usage { context_tokens, context_window, .. } => self.context = (*context_tokens, *context_window),
            TranscriptBlock::ModeChange(mode) => self.info.mode = mode.to_string(),
            TranscriptBlock::MessageEnd { thought: false, text, discarded: false, .. } => self.last_answer.clone_from(text),
            TranscriptBlock::Question(question) => {
                let title = question.title.as_deref().unwrap_or("the tool call");
                let content = self.renderer.question(title, question.content);
                let content: String = content.into_iter().map(RenderedText::into_text).collect();
                let question = ChatQuestion::new(question, content.lines().map(String::from).collect());
                self.control.extend(self.notifier.waits(&question.title));
                self.questions.push(question);
                if self.questions.len() == 1 {
                    self.show_question();
                }
                self.set_title();
            }
            _ => {}
        }
    }

    /// Sets the title of the terminal to that of the session and its state.
    pub(crate) fn set_title(&mut self) {
        let state = match (self.questions.is_empty(), self.busy) {
            (false, _) => "? ",
            (true, true) => "… ",
            (true, false) => "",
        };
        let directory = self.info.cwd.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let title = self.info.title.as_ref().unwrap_or(&directory);
        let title = crate::cli::terminal::notify::title(&format!("{state}nuncio: {title}"));
        if title != self.title {
            self.control += &title;
            self.title = title;
        }
    }

    /// Keeps only the last lines of earlier turns. `hidden` further turns precede them.
    pub(crate) fn shorten_earlier(&mut self, hidden: usize) {
        let output = self.output.take();
        let cut = output.lines().count().saturating_sub(EARLIER_LINES);
        let shown: String = output.split_inclusive('\n').skip(cut).collect();
        self.output.insert(&shown);
        if hidden > 0 || cut > 0 {
            let what = if cut > 0 { format!("{cut} earlier lines") } else { String::new() };
            let turns = if hidden > 0 { format!("{hidden} earlier turns") } else { String::new() };
            let separator = if cut > 0 && hidden > 0 { " and " } else { "" };
            let id = &self.info.session_id;
            let line = format!("… {turns}{separator}{what}: nuncio sessions show {id}\n");
            self.output.insert_first(&line);
        }
    }

    /// Prints lines of the chat itself, before the line that is being written.
    pub(crate) fn print(&mut self, text: &str) {
        self.insert(&output(text));
    }

    /// Inserts lines, escaped for a terminal, before the line that is being written.
    fn insert(&mut self, lines: &str) {
        self.output.insert(lines);
    }

    /// Prints a command of the user, with its output and how it ended.
    pub(crate) fn print_command(&mut self, line: &str, text: &str) {
        let rows = self.renderer.own_command(&output_line(line), text);
        self.insert(&rows);
    }

    /// Prints a diff in the unified format.
    pub(crate) fn print_diff(&mut self, diff: &str) {
        let text = output(diff);
        let lines = self.renderer.short_diff(text.trim_end());
        self.insert(&lines);
    }

    /// Prints the first rows of a new session. `home` is the home directory.
    pub(crate) fn print_first_rows(&mut self, home: Option<&str>, is_local: bool) {
        let cwd = &self.info.cwd;
        let in_home = home.and_then(|home| cwd.strip_prefix(home).ok()).map(|below| Path::new("~").join(below));
        let branch = self.branch.as_ref().map(|branch| format!(" ({branch})")).unwrap_or_default();
        let place = format!("{}{branch}", in_home.unwrap_or_else(|| cwd.clone()).display());
        let instructions = (is_local && cwd.join("AGENTS.md").is_file()).then_some("AGENTS.md");
        let rows = self.info.first_rows(&place, instructions);
        let columns = if self.plain { usize::MAX } else { columns() - 1 };
        for row in rows.lines() {
            let row = wrapped_words(&output_line(row), columns, 2).join("\n");
            self.insert(&(row + "\n"));
        }
    }

    /// Prints an error.
    pub(crate) fn error(&mut self, error: &Error) {
        self.print(&crate::cli::errors::text(&error.message, error.hint.as_deref()));
    }

    /// Returns whether a key may answer now: no key was pressed just before.
    pub(crate) fn is_quiet(&self) -> bool {
        self.last_input.elapsed() >= QUIET
    }

    /// Returns the rest of the time in which a second Ctrl-C quits.
    pub(crate) fn quits_within(&self) -> Option<Duration> {
        let waits = self.composer.is_empty() && !self.busy && self.shell.is_empty();
        self.interrupted.filter(|_| waits).and_then(|interrupted| PRESSED_AGAIN.checked_sub(interrupted.elapsed()))
    }

    /// Returns when the shown seconds change, or when a key may answer or no longer quits.
    pub(crate) fn next_tick(&self) -> Option<Duration> {
        let is_focused = self.questions.first().is_some_and(|question| question.focused) || self.mark() == "?";
        let is_chosen = is_focused || self.overlay.is_some();
        let quiet = QUIET.checked_sub(self.last_input.elapsed()).filter(|_| is_chosen);
        let next = |work: &CurrentWork| 1_000_000_000 - u64::from(work.since.elapsed().subsec_nanos());
        let second = self.work().iter().map(next).min().map(Duration::from_nanos);
        // The time may have passed since the last frame.
        let has_passed = (is_chosen && self.is_quiet() != self.drawn_for.0) || self.quits_within().is_some() != self.drawn_for.1;
        let now = has_passed.then_some(Duration::ZERO);
        quiet.into_iter().chain(second).chain(self.quits_within()).chain(now).min().filter(|_| !self.plain)
    }
}
