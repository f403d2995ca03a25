//! Programs that use the terminal of the chat: the user's editor, and `nuncio login`.

use std::ffi::OsString;

use super::input::ChatInput;
use super::keys::TerminalModes;
use super::session;
use super::state::Chat;
use crate::cli::terminal::editor::editor_command;
use crate::error::{Error, Result};
use crate::process::Command;
use crate::task;
use crate::workspace::{create_private_dir, write_private};

impl Chat {
    /// Edits the text in `$VISUAL`, else in `$EDITOR`, else in vi. The text is unchanged if the
    /// editor fails.
    pub(super) async fn edit_text(&mut self, input: &mut ChatInput) -> Result<()> {
        let app = self.session.client.app().clone();
        let directory = session::draft_directory(&self.session.client, &self.session.id);
        create_private_dir(&directory)?;
        let file = directory.join("edited.md");
        let _ = std::fs::remove_file(&file);
        write_private(&file, self.view.composer.whole().as_bytes()).map_err(|error| Error::io("writing a draft", error))?;
        let (command, editor) = editor_command(&app.services.environment, &file, &app.cwd);
        let edited = self.run_on_terminal(command, input).await?;
        let text = std::fs::read_to_string(&file).map_err(|error| Error::io("reading the edited text", error));
        let _ = std::fs::remove_file(&file);
        match edited {
            Ok(true) => self.view.composer.set(text?.trim_end_matches('\n')),
            Ok(false) => return Err(Error::invalid_params(format!("{editor} failed; the text is unchanged"))),
            Err(error) => return Err(error.hint("set $VISUAL or $EDITOR")),
        }
        Ok(())
    }

    /// Stores the API key of a provider, which the user types. `nuncio login` says what happened.
    pub(super) async fn log_in(&mut self, provider: &str, input: &mut ChatInput) -> Result<()> {
        self.session.client.require_local("/login")?;
        let app = self.session.client.app();
        let program = app.services.binary().filter(|_| !self.view.plain);
        let program = program.ok_or_else(|| Error::invalid_params("/login: run nuncio login in another terminal"))?;
        let words = [program.into_os_string(), "login".into()].into_iter();
        let words = words.chain(Some(provider).filter(|provider| !provider.is_empty()).map(OsString::from));
        let command = Command::program(words, &app.cwd);
        // Its exit code says no more than what it has printed.
        self.run_on_terminal(command, input).await?.map(drop)
    }

    /// Runs a program on the terminal until it ends. Returns whether it succeeded.
    async fn run_on_terminal(&mut self, command: Command, input: &mut ChatInput) -> Result<Result<bool>> {
        self.screen.release().await;
        // The program reads the terminal.
        *input = ChatInput::Suspended;
        TerminalModes::restore();
        let launcher = self.session.client.app().services.launcher.clone();
        let ended = task::blocking("running a program", move || launcher.run_on_terminal(&command)).await;
        let set = TerminalModes::set();
        *input = ChatInput::open(false);
        set?;
        ended
    }
}
