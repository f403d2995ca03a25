//! The commands of the chat itself. Other texts are messages; the agent expands its own commands.

use super::session::ChatSession;
use crate::error::{Error, Result};

/// The result of a text.
pub(crate) enum SubmitResult {
    /// It was sent to the session.
    Sent,
    /// The answer of a command.
    Answer(String),
    Quit,
}

const HELP: &str = "\
/help            these commands and keys
/mode MODE       ask, accept-edits, plan or auto
/model MODEL     PROVIDER/NAME
/compact [FOCUS] replaces the conversation by a summary
/quit            ends the chat; the session stays

Enter         sends; while a turn runs, the message joins it
Tab           while a turn runs: sends after it; else moves to a permission request
1 2 3 …       answer the request
Alt-Enter     begins a line (also Ctrl-J); Up and Down recall earlier texts
Esc           stops the turn, and gives the waiting texts back
Ctrl-C        empties the text, else stops the turn, else quits when pressed twice
Ctrl-O        shows the whole permission request
";

/// Runs a command, or sends the text.
pub(crate) async fn submit(session: &ChatSession, text: &str, busy: bool) -> Result<SubmitResult> {
    let (name, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let required = |what: &str| match rest.trim() {
        "" => Err(Error::invalid_params(format!("{name}: name the {what}"))),
        value => Ok(value.to_owned()),
    };
    match name {
        "/quit" | "/exit" => return Ok(SubmitResult::Quit),
        "/help" => return Ok(SubmitResult::Answer(HELP.into())),
        "/mode" => session.set_mode(&required("mode")?).await?,
        "/model" => {
            let model = required("model")?;
            session.set_option("model", &model).await?;
            return Ok(SubmitResult::Answer(format!("model {model}\n")));
        }
        _ => session.message(text, if busy { "steer" } else { "queue" }).await?,
    }
    Ok(SubmitResult::Sent)
}
