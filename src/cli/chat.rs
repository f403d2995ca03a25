//! `nuncio chat`: a conversation on the terminal. Finished output is printed as by `run`; the
//! composer, permission requests and the status stay below it.

mod commands;
mod composer;
mod history;
mod keys;
mod question;
mod rows;
mod screen;
mod session;
mod view;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{Event as TerminalEvent, EventStream, KeyCode, KeyEvent, KeyModifiers};
use futures_util::StreamExt;
use rustix::process::{Signal, getpid, kill_process};
use tokio_util::sync::CancellationToken;

use self::commands::SubmitResult;
use self::keys::{Action, TerminalModes};
use self::screen::Screen;
use self::session::ChatSession;
use self::view::ChatView;
use super::run::open;
use super::run_options::ChatOptions;
use super::terminal::output::{Colours, print_stderr};
use super::terminal::renderer::{RenderOptions, TerminalRenderer};
use super::terminal::status_line::columns;
use crate::api::App;
use crate::app::on_signal;
use crate::error::{Error, Result};
use crate::local::LocalClient;
use crate::task;

/// Minimum time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// A second Ctrl-C within this time ends the chat.
const QUIT_AGAIN: Duration = Duration::from_secs(1);

/// Runs the chat. Returns the exit code.
pub(crate) async fn run(app: Arc<App>, options: ChatOptions, colours: Colours) -> Result<u8> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(Error::invalid_params("chat: standard input and output must be a terminal").hint("nuncio run \"…\""));
    }
    let client = LocalClient::new(app.clone(), "terminal");
    let (id, after) = open(&app, &client, &options.session).await?;
    let session = ChatSession::follow(client, id.clone(), after).await?;
    let colour = colours.stdout && !options.plain;
    let markdown = colour.then(columns);
    let rendering = RenderOptions { colour, markdown, watched: true, conversation: true, ..RenderOptions::default() };
    let renderer = TerminalRenderer::new(rendering, &app.cwd);
    let mut view = ChatView::new(renderer, colour, app.places.data.join("chat-history.ndjson"));
    if let Some((model, mode, agent)) = session.settings() {
        (view.model, view.mode) = (agent.or(model).unwrap_or_default(), mode);
    }
    view.print(&format!("nuncio · {} · session {id}\n", app.cwd.display()));
    let result = {
        let _modes = TerminalModes::enter()?;
        Chat { session, view, screen: Screen::new(), due: None, interrupted: None }.run().await
    };
    app.shut_down().await;
    print_stderr(format!("To continue this session: nuncio chat --resume {id}\n"));
    result.map(|()| 0)
}

struct Chat {
    session: ChatSession,
    view: ChatView,
    screen: Screen,
    /// When the next frame is drawn; `None`: nothing has changed.
    due: Option<Instant>,
    /// When Ctrl-C was pressed last.
    interrupted: Option<Instant>,
}

impl Chat {
    /// Handles keys and events until the user quits or a signal arrives.
    async fn run(mut self) -> Result<()> {
        let ended = CancellationToken::new();
        task::spawn(on_signal(ended.clone()));
        let mut keys = EventStream::new();
        self.due = Some(Instant::now());
        let result = loop {
            let frame = self.due.map(|due| due.saturating_duration_since(Instant::now()));
            let (tick, ready) = (self.view.next_tick(), self.screen.is_ready());
            tokio::select! {
                () = ended.cancelled() => break Ok(()),
                key = keys.next() => match key {
                    Some(Ok(event)) => if self.input(event).await { break Ok(()) },
                    Some(Err(error)) => break Err(Error::io("reading the terminal", error)),
                    None => break Ok(()),
                },
                events = self.session.events.next() => match events {
                    Ok(events) => events.iter().for_each(|event| self.view.event(event)),
                    Err(error) => break Err(error),
                },
                () = tokio::time::sleep(tick.unwrap_or_default()), if tick.is_some() => {}
                () = tokio::time::sleep(frame.unwrap_or_default()), if frame.is_some() && ready => {
                    self.due = None;
                    self.view.draw(&mut self.screen);
                    continue;
                }
                () = self.screen.ready(), if !ready => continue,
            }
            self.due.get_or_insert_with(|| Instant::now() + FRAME);
        };
        let rest = self.view.rest();
        self.screen.close(&rest).await;
        let unsent = self.view.composer.take();
        if !unsent.trim().is_empty() {
            history::add(&self.view.history_file, &unsent);
        }
        result
    }

    /// Handles input of the terminal. Returns whether the user quits.
    async fn input(&mut self, event: TerminalEvent) -> bool {
        let action = match event {
            TerminalEvent::Key(key) if keys::is_press(&key) => self.key(key),
            TerminalEvent::Paste(text) => {
                self.view.composer.paste(&text);
                Action::None
            }
            _ => Action::None,
        };
        self.view.last_key = Instant::now();
        let result = match action {
            Action::None => Ok(()),
            Action::Quit => return true,
            Action::Submit => return self.submit().await,
            Action::Queue => {
                let text = self.take_text();
                self.session.message(&text, "queue").await
            }
            Action::Stop => self.stop().await,
            Action::Answer { id, option } => self.session.answer(&id, &option, None).await,
            Action::ShowAll => {
                let content: String = self
                    .view
                    .questions
                    .iter()
                    .take(1)
                    .flat_map(|question| question.content())
                    .map(|line| format!("{line}\n"))
                    .collect();
                self.view.print(&content);
                Ok(())
            }
            Action::Suspend => self.suspend().await,
        };
        if let Err(error) = result {
            self.view.error(&error);
        }
        false
    }

    /// Returns the action of a key.
    fn key(&mut self, key: KeyEvent) -> Action {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let (is_empty, last_key, busy) = (self.view.composer.is_empty(), self.view.last_key, self.view.busy);
        if let (KeyCode::Char(digit), Some(question)) = (key.code, self.view.questions.first())
            && !control
            && question.takes_keys(is_empty, last_key)
            && let Some(option) = question.option(digit)
        {
            return Action::Answer { id: question.id.clone(), option: option.option_id.clone() };
        }
        match key.code {
            KeyCode::Char('c') if control => self.interrupt(),
            KeyCode::Char('d') if control && is_empty => Action::Quit,
            KeyCode::Char('z') if control => Action::Suspend,
            KeyCode::Char('o') if control => Action::ShowAll,
            KeyCode::Tab => match self.view.questions.first_mut() {
                Some(question) => {
                    question.focused = !question.focused;
                    Action::None
                }
                None if busy && !is_empty => Action::Queue,
                None => Action::None,
            },
            KeyCode::Esc => match self.view.questions.first_mut() {
                Some(question) if question.focused => {
                    question.focused = false;
                    Action::None
                }
                _ if busy => Action::Stop,
                _ => Action::None,
            },
            KeyCode::Enter if key.modifiers.is_empty() => {
                if is_empty {
                    Action::None
                } else {
                    Action::Submit
                }
            }
            _ => {
                keys::edit(&mut self.view.composer, key);
                Action::None
            }
        }
    }

    /// Handles Ctrl-C: empties the composer, else stops the turn, else quits if pressed twice.
    fn interrupt(&mut self) -> Action {
        let again = self.interrupted.replace(Instant::now()).is_some_and(|before| before.elapsed() < QUIT_AGAIN);
        if !self.view.composer.is_empty() {
            let text = self.view.composer.take();
            history::add(&self.view.history_file, &text);
            return Action::None;
        }
        match (self.view.busy, again) {
            (_, true) => Action::Quit,
            (true, false) => Action::Stop,
            (false, false) => {
                self.view.print("Ctrl-C again quits\n");
                Action::None
            }
        }
    }

    fn take_text(&mut self) -> String {
        let text = self.view.composer.take();
        history::add(&self.view.history_file, &text);
        text
    }

    /// Sends the text, or runs a command. A text that was not sent stays in the composer.
    async fn submit(&mut self) -> bool {
        let text = self.take_text();
        match commands::submit(&self.session, &text, self.view.busy).await {
            Ok(SubmitResult::Quit) => return true,
            Ok(SubmitResult::Answer(answer)) => self.view.print(&answer),
            Ok(SubmitResult::Sent) => {}
            Err(error) => {
                self.view.error(&error);
                self.view.composer.give_back(&text);
            }
        }
        false
    }

    /// Stops the turn. The texts of the messages that wait return to the composer.
    async fn stop(&mut self) -> Result<()> {
        for (id, text) in self.view.take_queued() {
            if self.session.remove_queued(&id).await.is_ok() {
                self.view.composer.give_back(&text);
            }
        }
        self.session.stop().await
    }

    /// Stops this process until the shell continues it.
    async fn suspend(&mut self) -> Result<()> {
        self.screen.ready().await;
        self.screen.draw("", vec![String::new()], (0, 0));
        self.screen.ready().await;
        TerminalModes::restore();
        // Fails only for a process that does not exist.
        let _ = kill_process(getpid(), Signal::TSTP);
        TerminalModes::set()?;
        self.screen.forget();
        Ok(())
    }
}
