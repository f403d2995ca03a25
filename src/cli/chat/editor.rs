//! Edits the text of the composer in the user's editor.

use super::input::ChatInput;
use super::keys::TerminalModes;
use super::session;
use super::state::Chat;
use crate::cli::terminal::editor::editor_command;
use crate::error::{Error, Result};
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
        self.screen.release().await;
        // The editor reads the terminal.
        *input = ChatInput::Suspended;
        TerminalModes::restore();
        let (command, editor) = editor_command(&app.services.environment, &file, &app.cwd);
        let launcher = app.services.launcher.clone();
        let edited = task::blocking("running the editor", move || launcher.run_on_terminal(&command)).await?;
        TerminalModes::set()?;
        *input = ChatInput::open(false);
        let text = std::fs::read_to_string(&file).map_err(|error| Error::io("reading the edited text", error));
        let _ = std::fs::remove_file(&file);
        match edited {
            Ok(true) => self.view.composer.set(text?.trim_end_matches('\n')),
            Ok(false) => return Err(Error::invalid_params(format!("{editor} failed; the text is unchanged"))),
            Err(error) => return Err(error.hint("set $VISUAL or $EDITOR")),
        }
        Ok(())
    }
}
