//! Runs the slash commands that need no answer of the model: `/compact` and `/context`.

use crate::agent::context_window::{CompactionResult, ContextWindow};
use crate::agent::request::report;
use crate::agent::step::Steps;
use crate::content::{Part, Role, StopReason};
use crate::context::local_command::LocalCommand;
use crate::error::Result;
use crate::event::CompactionReason;
use crate::id::MessageId;
use crate::session::Turn;
use crate::session::message::IncomingMessage;

/// Runs a command as the whole work of a turn. The result is shown as an answer.
pub(in crate::agent) async fn run(
    command: LocalCommand,
    turn: &Turn,
    window: &ContextWindow<'_>,
    steps: &mut Steps<'_>,
) -> Result<StopReason> {
    let text = match command {
        LocalCommand::Compact { .. } if !window.has_messages() => "There is nothing to compact: the conversation is empty.".into(),
        LocalCommand::Compact { .. } => match window.compact(steps, CompactionReason::Manual, None).await? {
            Some(CompactionResult { tokens_before, tokens_after }) => {
                format!("The conversation was compacted: about {tokens_before} → {tokens_after} tokens.")
            }
            None => return Ok(StopReason::Cancelled),
        },
        LocalCommand::Context => report(&turn.log, window.environment(), steps.model(), &window.request()).to_string(),
    };
    let message = IncomingMessage { role: Role::Assistant, ..IncomingMessage::user(MessageId::new(), vec![Part::text(text)]) };
    turn.emit(message.completed()).await;
    Ok(StopReason::EndTurn)
}
