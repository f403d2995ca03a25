//! The actions of keys that the settings can choose.

use super::input::ChatInput;
use super::state::Chat;
use crate::config::ChatAction;
use crate::error::Result;

impl Chat {
    /// Runs the action of a key.
    pub(super) async fn act(&mut self, action: ChatAction, input: &mut ChatInput) -> Result<()> {
        match action {
            ChatAction::Background => self.move_to_background().await,
            ChatAction::Edit => self.edit_text(input).await,
            ChatAction::Paste => self.attach_clipboard().await,
            ChatAction::Suspend => self.suspend().await,
            ChatAction::Mode => self.next_mode().await,
            ChatAction::Show => {
                self.show_folded();
                Ok(())
            }
            ChatAction::Search => {
                self.search_history();
                Ok(())
            }
            ChatAction::Reprint => {
                let id = self.session.id.clone();
                self.show_session(&id, true).await
            }
        }
    }
}
