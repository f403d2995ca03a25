//! The work of a session: prompts, new turns, and where the core puts them.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::TurnHandle;
use crate::content::BudgetLimits;
use crate::error::Result;
use crate::event::Actor;
use crate::id::TurnId;
use crate::session::message::IncomingMessage;

/// The request that sent a prompt.
#[derive(Clone, Debug)]
pub struct PromptRequest {
    /// The client that sent the request.
    pub by: Actor,
    /// True if another process forwarded the request.
    pub forwarded: bool,
    /// Limits of the turn.
    pub budget: Option<BudgetLimits>,
    /// Cancelled when the client no longer wants the prompt to run.
    pub cancel: CancellationToken,
    /// Cancelled once the answer to the request is written. The next turn starts after that.
    pub answered: CancellationToken,
}

/// A prompt that waits for its turn.
pub struct QueuedPrompt {
    pub message: IncomingMessage,
    pub request: PromptRequest,
    pub started: oneshot::Sender<Result<TurnHandle>>,
}

/// A turn that starts now.
pub struct NewTurn {
    pub message: IncomingMessage,
    /// The client that sent the prompt.
    pub by: Option<Actor>,
    /// Queued messages that arrived before this number precede the message in this turn.
    pub after: u64,
    /// The earlier turn whose prompt runs again.
    pub retries: Option<TurnId>,
    /// Limits of the turn.
    pub budget: Option<BudgetLimits>,
    /// True if another client of the agent started the turn.
    pub external: bool,
    /// Cancelled once the answer to the prompt is written.
    pub answered: Option<CancellationToken>,
}

impl NewTurn {
    /// Creates a turn that starts with `message`, after the queued messages that arrived before the
    /// number `after`.
    pub fn new(message: IncomingMessage, by: Option<Actor>, after: u64) -> NewTurn {
        NewTurn { message, by, after, retries: None, budget: None, external: false, answered: None }
    }
}

/// The destination of a message that arrives.
pub enum MessageDestination {
    /// A separate turn.
    Turn,
    /// The queue. A message that steers the running turn names it.
    Queue(Option<TurnId>),
    /// The conversation, without a turn.
    Conversation,
}

/// The next step of an idle session.
pub enum Next {
    /// Start a turn, and send its handle to the prompt that waits for it.
    Start(Box<NewTurn>, Option<oneshot::Sender<Result<TurnHandle>>>),
    /// Wait until the answer to the last prompt is written.
    AwaitAnswer(CancellationToken),
    Nothing,
}
