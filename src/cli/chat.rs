//! `nuncio chat`: a conversation on the terminal. Finished output is printed as by `run`; the
//! composer, permission requests and the status stay below it.

mod actions;
mod attachments;
mod commands;
mod completion;
mod composer;
mod drafts;
mod editor;
mod end_signals;
mod form_actions;
mod forms;
mod frame;
mod held_key;
mod history;
mod history_search;
mod hunks;
mod info;
mod input;
mod jobs;
mod key_actions;
mod key_answers;
mod key_table;
mod keys;
mod links;
mod memory;
mod mentions;
mod output_queue;
mod pager;
mod picker;
mod pinned_plan;
mod question;
mod rows;
mod rules;
mod screen;
mod session;
mod state;
mod status_command;
mod updates;
mod view;
mod vim;
mod waiting_messages;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::drafts::Draft;
use self::end_signals::EndSignals;
use self::forms::{ChatForm, SessionForms};
use self::info::SessionInfo;
use self::input::ChatInput;
use self::key_table::KeyTable;
use self::keys::TerminalModes;
use self::picker::SessionPicker;
use self::screen::Screen;
use self::session::ChatSession;
use self::state::{Chat, StatusCommand};
use self::updates::{ChatTasks, ChatUpdate};
use self::view::{ChatView, Overlay};
use super::flags::run_options::ChatOptions;
use super::sessions::opening;
use super::terminal::markdown::MarkdownLayout;
use super::terminal::marks::needs_ascii;
use super::terminal::notify::Notifier;
pub(crate) use super::terminal::notify::NotifyMode;
use super::terminal::output::{Colours, print_stderr};
use super::terminal::renderer::{OWN_COMMAND, RenderOptions, TerminalRenderer};
use super::terminal::status_line::columns;
use crate::api::App;
use crate::config::Environment;
use crate::context::environment::branch_name;
use crate::error::{Error, Result};
use crate::event::{Delivery, Event};
use crate::id::SessionId;

/// Minimum time between two frames without a key.
const FRAME: Duration = Duration::from_millis(16);
/// Number of turns that are shown of a session that is continued.
const TURNS_SHOWN: usize = 5;

/// Runs the chat, and sends the prompt of the options first. Returns the exit code.
pub(crate) async fn run(app: Arc<App>, options: ChatOptions, colours: Colours) -> Result<u8> {
    let server = options.session.url.as_ref().map(|url| format!("--url {url} ")).unwrap_or_default();
    let id = converse(&app, options, colours).await;
    app.shut_down().await;
    print_stderr(format!("To continue this session: nuncio chat {server}--resume {}\n", id?));
    Ok(0)
}

/// Returns an error if the chat needs a terminal on which it can move the cursor, and has none.
pub(crate) fn check_terminal(options: &ChatOptions, environment: &Environment) -> Result<()> {
    if options.plain {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Error::invalid_params("chat: standard input and output must be a terminal").hint("nuncio run \"…\""));
    }
    match environment.get("TERM") {
        Some("dumb") => {
            Err(Error::invalid_params("chat: the terminal cannot move its cursor (TERM=dumb)").hint("nuncio chat --plain"))
        }
        _ => Ok(()),
    }
}

/// Runs the chat. Returns the session that was shown last.
pub(crate) async fn converse(app: &Arc<App>, options: ChatOptions, colours: Colours) -> Result<SessionId> {
    let client = opening::client(app, &options.session)?;
    let (id, _) = opening::open(&client, &options.session).await?;
    let colour = colours.stdout && !options.plain;
    let markdown = (!options.plain).then(|| MarkdownLayout { columns: columns(), colour });
    let rendering = RenderOptions { colour, markdown, watched: true, conversation: true, ..RenderOptions::default() };
    let renderer = TerminalRenderer::new(rendering, &app.cwd);
    let settings = &app.services.user.settings.chat;
    let notifier = Notifier::new(options.notify, settings.program_status, &app.services.environment);
    let mut view = ChatView::new(renderer, colour, notifier, app.places.data.join("chat-history.ndjson"), KeyTable::new(settings));
    view.plain = options.plain;
    view.status_columns_max = frame::status_columns_max(&app.services.environment);
    let session = ChatSession::follow(client.clone(), id.clone(), 0).await?;
    let (draft, _) = Draft::open(session::draft_directory(&client, &id));
    let (tasks, updates) = ChatTasks::new(client);
    let chat = Chat {
        session,
        tasks,
        updates,
        view,
        screen: Screen::new(options.plain, needs_ascii(&app.services.environment)),
        draft,
        forms: SessionForms::default(),
        behind_list: None,
        rendering,
        attached: Vec::new(),
        due: None,
        escaped: None,
        held: None,
        status: StatusCommand::new(&settings.status_command),
    };
    let _modes = (!options.plain).then(TerminalModes::enter).transpose()?;
    let prompt = options.words.join(" ");
    chat.run(options.session.continues(), options.session.chooses(), Some(prompt).filter(|prompt| !prompt.trim().is_empty())).await
}

impl Chat {
    /// Handles keys and events until the user quits or a signal arrives. If the user `chooses` a
    /// session, lists them first. Returns the session that was shown last.
    async fn run(mut self, continues: bool, chooses: bool, prompt: Option<String>) -> Result<SessionId> {
        let mut signals = EndSignals::listen();
        let mut input = ChatInput::open(self.view.plain);
        let id = self.session.id.clone();
        self.show_session(&id, continues).await?;
        if chooses {
            self.begin_choice(id, prompt.is_none());
        }
        if let Some(prompt) = prompt {
            self.send(&prompt, Delivery::Queue).await?;
        }
        let result = loop {
            let frame = self.due.map(|due| due.saturating_duration_since(Instant::now()));
            let (tick, ready) = (self.view.next_tick(), self.screen.is_ready());
            let (save, held) = (self.draft.due(), self.held.as_ref().map(|held| held.due));
            tokio::select! {
                () = signals.end() => break Ok(()),
                event = input.next() => match event {
                    Some(Ok(event)) => {
                        if self.input(event, &mut input).await {
                            break Ok(());
                        }
                        // A key is shown at once.
                        self.due = Some(Instant::now());
                    }
                    Some(Err(error)) => break Err(error),
                    None => break Ok(()),
                },
                events = self.session.events.next() => match events {
                    Ok(events) => self.apply(&events),
                    Err(error) => break Err(error),
                },
                Some(update) = self.updates.recv() => self.update(update).await,
                request = self.forms.next(), if self.view.form.is_none() => self.view.form = Some(ChatForm::new(request)),
                () = self.view.renderer.syntax.done() => {}
                () = withdrawn(&mut self.view.form) => self.end_form(None),
                () = tokio::time::sleep(tick.unwrap_or_default()), if tick.is_some() => {}
                () = tokio::time::sleep_until(held.unwrap_or_else(Instant::now).into()), if held.is_some() => {
                    match self.end_hold(&mut input).await {
                        Ok(false) => {}
                        Ok(true) => break Ok(()),
                        Err(error) => break Err(error),
                    }
                }
                () = tokio::time::sleep_until(save.unwrap_or_else(Instant::now).into()), if save.is_some() => {
                    self.draft.save(&self.view.composer.whole());
                }
                () = tokio::time::sleep(frame.unwrap_or_default()), if frame.is_some() && ready => {
                    self.due = None;
                    self.view.draw(&mut self.screen);
                    continue;
                }
                () = self.screen.gone() => break Ok(()),
                () = self.screen.ready(), if !ready => continue,
            }
            self.run_status_command();
            self.due.get_or_insert_with(|| Instant::now() + FRAME);
        };
        self.view.control += &self.view.notifier.program_ends();
        self.screen.control(&std::mem::take(&mut self.view.control));
        let rest = self.view.output.take();
        let unsent = self.view.composer.take();
        self.draft.save(&unsent);
        if !unsent.trim().is_empty() {
            history::add(&self.view.history_file, &unsent);
        }
        self.screen.close(&rest).await;
        result.map(|()| self.session.id)
    }

    /// Lists the sessions in front of a new one, which is removed if it is `unused` and another one
    /// is chosen.
    fn begin_choice(&mut self, id: SessionId, unused: bool) {
        self.behind_list = unused.then_some(id);
        self.tasks.list_sessions();
    }

    /// Shows events that have arrived.
    fn apply(&mut self, events: &[Arc<Event>]) {
        events.iter().for_each(|event| self.view.event(event));
        if std::mem::take(&mut self.view.starts_job) {
            self.tasks.watch_jobs(&self.session.id, self.view.jobs.clone());
        }
    }

    /// Shows a session: its last turns if it is continued, its state and its draft.
    async fn show_session(&mut self, id: &SessionId, continues: bool) -> Result<()> {
        let client = self.session.client.clone();
        let (after, hidden) = if continues { session::before_last_turns(&client, id, TURNS_SHOWN).await? } else { (0, 0) };
        self.session = ChatSession::follow(client.clone(), id.clone(), after).await?;
        let mut renderer = TerminalRenderer::new(self.rendering, &client.app().cwd);
        renderer.syntax = self.view.renderer.syntax.clone();
        renderer.hint = if self.view.plain { format!(": nuncio sessions show {id}") } else { " (Ctrl-O)".into() };
        self.view.leave_session(renderer);
        self.view.info.session_id = id.as_str().into();
        let printed = self.view.output.take();
        for event in self.session.events.committed().await? {
            self.view.event(&event);
        }
        self.view.shorten_earlier(hidden);
        self.view.output.insert_first(&printed);
        self.attach_forms();
        match continues {
            true => self.tasks.read_info(id),
            false => {
                let info = SessionInfo::read(&client, id).await?;
                self.update(ChatUpdate::Info(Box::new(info))).await;
                let home = client.app().services.environment.get("HOME");
                self.view.print_first_rows(home, client.server().is_none());
            }
        }
        self.tasks.watch.cancel();
        if continues || self.view.starts_job {
            self.view.starts_job = false;
            self.tasks.watch_jobs(id, Vec::new());
        }
        self.tasks.read_commands(id);
        let (draft, text) = Draft::open(session::draft_directory(&client, id));
        self.draft = draft;
        if self.view.composer.is_empty() {
            self.view.composer.set(&text);
        }
        self.due = Some(Instant::now());
        Ok(())
    }

    /// Handles the result of work outside the loop.
    async fn update(&mut self, update: ChatUpdate) {
        let view = &mut self.view;
        match update {
            ChatUpdate::Info(info) if info.session_id == self.session.id.as_str() => {
                let client = &self.session.client;
                view.branch = if client.server().is_none() { branch_name(&info.cwd, &client.app().places) } else { None };
                view.cost = info.cost.or(view.cost);
                view.context.0 = view.context.0.max(info.context_tokens);
                view.info = *info;
                view.set_title();
            }
            ChatUpdate::Info(_) => {}
            ChatUpdate::Commands(commands) => {
                view.commands = completion::own_commands();
                let known = view.commands.clone();
                let is_new = |command: &commands::CompletionCandidate| !known.iter().any(|known| known.value == command.value);
                view.commands.extend(commands.into_iter().filter(is_new));
                self.start_completion();
            }
            ChatUpdate::Candidates(word, candidates) => self.complete(&word, candidates),
            ChatUpdate::Sessions(sessions) => {
                view.overlay = Some(Overlay::Sessions(SessionPicker::new(sessions, &view.info.cwd)));
            }
            ChatUpdate::Found { filter, sessions, ended } => {
                if let Some(Overlay::Sessions(picker)) = &mut view.overlay {
                    picker.found(&filter, sessions, ended);
                }
            }
            ChatUpdate::CommandOutput(lines) => {
                view.shell.front_mut().into_iter().for_each(|(work, _)| work.output.clone_from(&lines));
            }
            ChatUpdate::CommandEnd { line, output, code, shared } => {
                view.shell.pop_front();
                let end = code.map_or("stopped".to_owned(), |code| format!("exit code {code}"));
                let output = output.trim_end();
                let separator = if output.is_empty() { "" } else { "\n" };
                view.print_command(&line, &format!("{output}{separator}[{end}]"));
                if shared {
                    let text = format!("{OWN_COMMAND}{line}\n{output}\n[{end}]");
                    view.notes.push(text.clone());
                    if let Err(error) = self.session.note(&text).await {
                        self.view.error(&error);
                    }
                }
            }
            ChatUpdate::StatusText(text) => {
                view.status_text = text;
                self.status.end();
            }
            ChatUpdate::Jobs { running, ended } => self.show_jobs(running, &ended),
            ChatUpdate::Output(text) => view.print(&text),
            ChatUpdate::Diff(diff) => view.print_diff(&diff),
            ChatUpdate::Failed(error) => view.error(&error),
        }
    }
}

/// Waits until the open form is withdrawn.
async fn withdrawn(form: &mut Option<ChatForm>) {
    match form {
        Some(form) => form.withdrawn().await,
        None => std::future::pending().await,
    }
}
