//! The actions of the chat: messages, commands and other sessions.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::commands::{self, ChatCommand, CommandRow};
use super::info::SessionInfo;
use super::input::ChatInput;
use super::keys::TerminalModes;
use super::memory;
use super::pager::Pager;
use super::state::Chat;
use super::view::Overlay;
use crate::api::{DeleteSession, NewSessionParams, OpenSessionParams, SessionParams, SetTitle, SetTitleParams};
use crate::cli::sessions::opening;
use crate::cli::terminal::activity::CurrentWork;
use crate::cli::terminal::notify;
use crate::cli::terminal::renderer::{RenderOptions, RenderedText, TerminalRenderer};
use crate::cli::terminal::syntax::SyntaxColours;
use crate::content::Part;
use crate::error::{Error, Result};
use crate::event::Delivery;
use crate::id::SessionId;
use crate::options::MODES;
use crate::similar_names::nearest;
use crate::transcript::Transcript;

/// Time in which a suspended process stops.
const STOPPED: Duration = Duration::from_millis(200);

impl Chat {
    /// Sends the text, or runs a command. A text that was not sent stays in the composer. Returns
    /// whether the user quits.
    pub(super) async fn submit(&mut self, input: &mut ChatInput) -> Result<bool> {
        let text = self.take_text();
        let result = self.submit_text(&text, input).await;
        if result.is_err() {
            self.view.composer.give_back(&text);
        }
        result
    }

    async fn submit_text(&mut self, text: &str, input: &mut ChatInput) -> Result<bool> {
        self.behind_list = None;
        if let Some(reason) = self.view.reason.take() {
            self.answer(&reason.id, &reason.option, Some(text.trim()), None).await?;
            return Ok(false);
        }
        if let Some(line) = text.trim().strip_prefix('!') {
            self.session.client.require_local("!")?;
            let (line, shared) = line.strip_prefix('!').map_or((line, true), |line| (line, false));
            let title = format!("$ {}", line.trim());
            let (work, cancel) = (CurrentWork::new(title), CancellationToken::new());
            self.view.shell.push_back((work, cancel.clone()));
            self.tasks.run_command(line.trim(), self.directory(), shared, cancel);
            return Ok(false);
        }
        if let Some((row, argument)) = commands::parse(text) {
            return self.run_command(row, argument, input).await;
        }
        self.check_command(text)?;
        self.send(text, if self.view.busy { Delivery::Steer } else { Delivery::Queue }).await.map(|()| false)
    }

    /// Returns an error if a text begins with a command that does not exist.
    fn check_command(&self, text: &str) -> Result<()> {
        let word = text.split_whitespace().next().unwrap_or_default();
        let is_name = word.len() > 1 && word.strip_prefix('/').is_some_and(|name| !name.contains('/'));
        let names: Vec<&str> = self.view.commands.iter().map(|command| command.value.as_str()).collect();
        if !is_name || !text.starts_with('/') || names.contains(&word) {
            return Ok(());
        }
        let error = Error::invalid_params(format!("unknown command {word}"));
        Err(match nearest(word, &names, 0.7) {
            Some(index) => error.hint(format!("{} (a space before the slash sends the text as it is)", names[index])),
            None => error.hint("/help lists the commands; a space before the slash sends the text as it is"),
        })
    }

    /// Sends a message with the attachments. If it fails, the attachments stay.
    pub(super) async fn send(&mut self, text: &str, delivery: Delivery) -> Result<()> {
        let mentioned = self.mentioned(text).await;
        let text = Some(text).filter(|text| !text.trim().is_empty()).map(Part::text);
        let parts: Vec<Part> = text.into_iter().chain(mentioned).chain(self.attached.iter().cloned()).collect();
        self.session.message(parts, delivery).await?;
        self.clear_attachments();
        Ok(())
    }

    fn directory(&self) -> PathBuf {
        let cwd = &self.view.info.cwd;
        if cwd.as_os_str().is_empty() { self.session.client.app().cwd.clone() } else { cwd.clone() }
    }

    /// Runs a command of the chat. Returns whether the user quits.
    async fn run_command(&mut self, row: &CommandRow, argument: &str, input: &mut ChatInput) -> Result<bool> {
        if argument.is_empty() && !row.argument.is_empty() && !row.argument.starts_with('[') {
            return Err(Error::invalid_params(format!("/{} {}: the argument is missing", row.name, row.argument)));
        }
        let id = self.session.id.clone();
        match row.command {
            ChatCommand::Help => {
                let others = self.view.commands.iter().filter(|command| commands::parse(&command.value).is_none());
                let help = commands::help(&others.cloned().collect::<Vec<_>>(), &self.view.keys.text());
                self.view.print(&help);
            }
            ChatCommand::Model if argument.is_empty() => self.tasks.list_models(),
            ChatCommand::Model => self.set("model", argument).await?,
            ChatCommand::Thinking => self.set("thinking", argument).await?,
            ChatCommand::Mode if argument.is_empty() => self.list_modes(),
            ChatCommand::Mode => self.session.set_mode(argument).await?,
            ChatCommand::Agent => self.begin_session(Some(argument)).await?,
            ChatCommand::New => self.begin_session(None).await?,
            ChatCommand::Resume if argument.is_empty() => self.tasks.list_sessions(),
            ChatCommand::Resume => self.continue_session(argument).await?,
            ChatCommand::Fork => {
                let forked = self.session.client.fork(&id).await?;
                self.view.print("the session continues in a copy\n");
                self.switch(&forked, true).await?;
            }
            ChatCommand::Rename => self.rename(argument).await?,
            ChatCommand::Attach => self.attach_file(argument).await?,
            ChatCommand::Detach => self.detach(argument)?,
            ChatCommand::Diff => self.tasks.read_diff(&id),
            ChatCommand::Copy => self.copy()?,
            ChatCommand::Export => self.export(argument).await?,
            ChatCommand::Status => self.tasks.print_info(&id, SessionInfo::status),
            ChatCommand::Cost => self.tasks.print_info(&id, SessionInfo::cost_lines),
            ChatCommand::Permissions => self.permissions(argument).await?,
            ChatCommand::Mcp => self.tasks.list_tools(&id, "mcp__", "no MCP server offers a tool in this session"),
            ChatCommand::Hooks => {
                self.session.client.require_local("/hooks")?;
                let hooks = memory::hooks(self.session.client.app(), &self.directory())?;
                self.view.print(&hooks);
            }
            ChatCommand::Memory => {
                self.session.client.require_local("/memory")?;
                let path = memory::add(self.session.client.app(), &self.directory(), argument)?;
                self.view.print_path("added to", &path);
            }
            ChatCommand::Doctor => {
                self.session.client.require_local("/doctor")?;
                self.tasks.run_doctor();
            }
            ChatCommand::Keys => {
                let keys = self.view.keys.text();
                self.view.print(&keys);
            }
            ChatCommand::Jobs => self.jobs(argument).await?,
            ChatCommand::Background => self.move_to_background().await?,
            ChatCommand::Login => self.log_in(argument, input).await?,
            ChatCommand::Quit => return Ok(true),
        }
        Ok(false)
    }

    async fn rename(&mut self, title: &str) -> Result<()> {
        let params = SetTitleParams { session_id: self.session.id.clone(), title: title.into() };
        self.session.client.call::<SetTitle>(params).await?;
        self.view.print(&format!("title {title}\n"));
        Ok(())
    }

    /// Prints the modes, with a mark at the one of the session.
    fn list_modes(&mut self) {
        let mark = |id: &str| if id == self.view.info.mode { '*' } else { ' ' };
        let rows: String = MODES.iter().map(|row| format!("{} {:<13} {}\n", mark(row.id), row.id, row.description)).collect();
        self.view.print(&rows);
    }

    async fn set(&mut self, option: &str, value: &str) -> Result<()> {
        self.session.set_option(option, value).await?;
        self.view.print(&format!("{option} {value}\n"));
        self.tasks.read_info(&self.session.id);
        Ok(())
    }

    /// Begins a session, and shows it.
    async fn begin_session(&mut self, agent: Option<&str>) -> Result<()> {
        let directory = self.directory();
        let agent = agent.or(self.view.info.agent.as_deref()).map(String::from);
        let params = NewSessionParams { agent, ..NewSessionParams::in_directory(directory) };
        let (id, _) = self.session.client.begin(params).await?;
        self.clear_attachments();
        self.view.print(&format!("session {id}\n"));
        self.switch(&id, false).await
    }

    /// Continues a session. `id` can be a unique start of its id.
    pub(super) async fn continue_session(&mut self, id: &str) -> Result<()> {
        let client = &self.session.client;
        let (id, _) = client.resume(OpenSessionParams::new(opening::find(client, id).await?)).await?;
        self.clear_attachments();
        self.view.print(&format!("session {id}\n"));
        self.switch(&id, true).await?;
        match self.behind_list.take() {
            Some(unused) => self.session.client.call::<DeleteSession>(SessionParams { session_id: unused }).await.map(drop),
            None => Ok(()),
        }
    }

    /// Shows another session. The session that was shown goes on, and can be continued.
    async fn switch(&mut self, id: &SessionId, continues: bool) -> Result<()> {
        self.draft.save(&self.view.composer.take());
        self.show_session(id, continues).await
    }

    /// Copies the last answer to the clipboard.
    fn copy(&mut self) -> Result<()> {
        if self.view.last_answer.is_empty() {
            return Err(Error::invalid_params("/copy: there is no answer yet"));
        }
        let sequence = notify::copy(&self.view.last_answer);
        let sequence = sequence.ok_or_else(|| Error::invalid_params("/copy: the answer is too long").hint("/export FILE"))?;
        self.view.control += &sequence;
        self.view.print("copied, if the terminal allows it (OSC 52)\n");
        Ok(())
    }

    /// Writes the conversation to a file that does not exist.
    async fn export(&mut self, file: &str) -> Result<()> {
        let name = if file.is_empty() { format!("{}.txt", self.session.id) } else { file.to_owned() };
        let path = self.session.client.app().cwd.join(&name);
        let text = self.conversation(false).await?;
        let failed = |error| Error::io(format_args!("writing {}", path.display()), error);
        let mut written = std::fs::File::options().write(true).create_new(true).open(&path).map_err(failed)?;
        std::io::Write::write_all(&mut written, text.as_bytes()).map_err(failed)?;
        self.view.print_path("wrote", &path);
        Ok(())
    }

    /// Returns the whole conversation as text.
    async fn conversation(&self, colour: bool) -> Result<String> {
        let options = RenderOptions { replay: true, colour, ..RenderOptions::default() };
        let mut renderer = TerminalRenderer::new(options, &self.directory());
        renderer.syntax = self.view.renderer.syntax.clone();
        let (mut transcript, mut pieces) = (Transcript::default(), Vec::new());
        let mut events = self.session.client.follow(&self.session.id, 0, None).await?;
        for event in events.committed().await? {
            transcript.apply(&event).iter().for_each(|block| pieces.extend(renderer.render(block)));
        }
        Ok(pieces.into_iter().map(RenderedText::into_text).collect())
    }

    /// Shows the permission request, or the last texts of which rows were omitted, on the alternate
    /// screen.
    pub(super) fn show_folded(&mut self) {
        if self.view.plain {
            return;
        }
        let pager = match self.view.questions.first() {
            Some(question) => Pager::new(question.content().iter().map(|line| format!("{line}\n")).collect(), 0, true),
            None => {
                let (folded, layout) = (self.view.renderer.folded.clone(), self.view.renderer.layout());
                let (text, line) = folded.whole(&layout, None);
                let pager = Pager::new(text, line, true);
                let coloured = move |syntax: Option<&mut SyntaxColours>| folded.whole(&layout, syntax).0;
                if self.view.colour { pager.coloured(self.view.renderer.syntax.render(coloured)) } else { pager }
            }
        };
        self.view.overlay = Some(Overlay::Text(pager));
    }

    /// Shows the whole conversation on the alternate screen.
    pub(super) async fn show_conversation(&mut self) -> Result<()> {
        let text = self.conversation(self.view.colour).await?;
        self.view.overlay = Some(Overlay::Text(Pager::new(text, usize::MAX, false)));
        Ok(())
    }

    /// Stops the running command of the user, else the turn. The texts of the messages that wait
    /// return to the composer.
    pub(super) async fn stop(&mut self) -> Result<()> {
        if let Some((_, cancel)) = self.view.shell.front() {
            cancel.cancel();
            return Ok(());
        }
        for (id, text) in self.view.queue.take() {
            if self.session.remove_queued(&id).await.is_ok() {
                self.view.composer.give_back(&text);
            }
        }
        self.session.stop().await
    }

    /// Returns the newest message that waits to the composer.
    pub(super) async fn take_back(&mut self) -> Result<()> {
        let Some((id, text)) = self.view.queue.newest() else { return Ok(()) };
        self.session.remove_queued(&id).await?;
        self.view.queue.remove(&id);
        self.view.composer.set(&text);
        Ok(())
    }

    /// Stops this process until the shell continues it.
    pub(super) async fn suspend(&mut self) -> Result<()> {
        self.screen.release().await;
        TerminalModes::restore();
        let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()));
        let mut continued = continued.map_err(|error| Error::io("waiting for a signal", error))?;
        // Fails only for a process that does not exist.
        let _ = kill_process(getpid(), Signal::TSTP);
        // The process does not stop if no shell could continue it.
        let _ = timeout(STOPPED, continued.recv()).await;
        TerminalModes::set()
    }
}
