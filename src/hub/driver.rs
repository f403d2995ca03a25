//! Runs the turns of hosted agents, with the same order of permission requests, messages, cancel
//! and end for each protocol.

use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::events::TurnEvents;
use super::open_requests::OpenRequests;
use super::permission::{AgentRequest, Choice};
use super::process::AgentProcess;
use super::turn_size::BoundedTurn;
use crate::content::StopReason;
use crate::error::Result;
use crate::limits;

/// The effects of a turn in its session.
pub(super) struct TurnIo<'a> {
    /// The name of the agent.
    pub name: &'a str,
    pub events: TurnEvents<'a>,
    pub requests: OpenRequests<'a>,
}

/// A report of an agent on which the driver acts.
pub(super) enum Signal {
    /// The agent asks for permission. The id is passed to [`TurnProtocol::answer`].
    Ask(Value, Box<AgentRequest>),
    /// The agent asks whether hooks block a call. The id is passed to [`TurnProtocol::answer`].
    Check(Value, Box<Call>),
    /// The agent no longer waits for the answer to the permission request with this id.
    Withdrawn(Value),
    /// The agent has ended its turn.
    Ended,
}

/// A running turn in the protocol of an agent. Dropping the value stops only nuncio's part of the
/// turn.
pub(super) trait TurnProtocol: Send {
    /// A message of the agent that is not recorded yet.
    type Message: Send;

    /// Waits for the next message. Cancel-safe: it records nothing and sends nothing.
    fn receive(&mut self) -> impl Future<Output = Result<Self::Message>> + Send;

    /// Records a message, and answers to requests that need no decision.
    fn record(&mut self, message: Self::Message, events: &mut TurnEvents<'_>) -> impl Future<Output = Result<Vec<Signal>>> + Send;

    /// Sends the answer to a permission request.
    fn answer(&mut self, id: Value, choice: Choice) -> impl Future<Output = ()> + Send;

    /// Asks the agent to end its turn. Returns false if the agent cannot be asked yet.
    fn interrupt(&mut self) -> impl Future<Output = Result<bool>> + Send;

    /// Handles the messages that arrived together with the end of the turn, and records the usage
    /// of the turn.
    fn finish(&mut self, events: &mut TurnEvents<'_>) -> impl Future<Output = ()> + Send;

    /// Returns how a turn ended that nuncio did not cancel.
    fn outcome(&mut self, events: &TurnEvents<'_>) -> impl Future<Output = Result<StopReason>> + Send;
}

/// Runs a turn until the agent has ended it, and records its events. `begin` sends the prompt. An
/// agent that does not end its turn within [`limits::AGENT_CANCEL`] after a cancel is stopped.
/// Fails if the agent exceeds the size limits of a turn.
pub(super) async fn run_turn<T: TurnProtocol>(
    begin: impl Future<Output = Result<T>>,
    process: &AgentProcess,
    io: &mut TurnIo<'_>,
) -> Result<StopReason> {
    let (name, cancel, exceeded) = (io.name, io.events.turn().cancel.clone(), io.events.bytes().exceeded);
    let overdue = async {
        cancel.cancelled().await;
        sleep(limits::AGENT_CANCEL).await;
    };
    let turn = async {
        let mut turn = begin.await?;
        drive(&mut turn, process, io, &cancel).await?;
        for (id, choice) in io.requests.end().await {
            turn.answer(id, choice).await;
        }
        turn.finish(&mut io.events).await;
        if cancel.is_cancelled() { Ok(StopReason::Cancelled) } else { turn.outcome(&io.events).await }
    };
    let result = tokio::select! {
        biased;
        () = exceeded.cancelled() => Ok(StopReason::Cancelled),
        result = turn => result,
        () = overdue => {
            process.end().await;
            Ok(StopReason::Cancelled)
        }
    };
    // The last message of the turn may exceed the limit.
    if exceeded.is_cancelled() { Err(BoundedTurn::error(name)) } else { result }
}

/// Passes on messages and decisions until the agent has ended its turn.
async fn drive<T: TurnProtocol>(
    turn: &mut T,
    process: &AgentProcess,
    TurnIo { events, requests, .. }: &mut TurnIo<'_>,
    cancel: &CancellationToken,
) -> Result<()> {
    let (mut cancelled, mut interrupted) = (false, false);
    loop {
        // The cancel closes the open permission requests. Answer them first, as agents require it.
        if cancelled && !interrupted && requests.is_empty() {
            // An agent that cannot be reached ends, or is stopped in time.
            interrupted = turn.interrupt().await.unwrap_or(true);
        }
        let signals = tokio::select! {
            biased;
            (id, choice) = requests.next() => {
                turn.answer(id, choice).await;
                continue;
            }
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                continue;
            }
            message = turn.receive() => turn.record(message?, events).await?,
            // Messages that arrived before the end are recorded first.
            why = process.ended() => return Err(process.ended_error(why)),
        };
        for signal in signals {
            match signal {
                Signal::Ask(id, request) => requests.ask(&id, *request),
                Signal::Check(id, call) => requests.check(&id, *call),
                Signal::Withdrawn(id) => requests.withdraw(&id),
                Signal::Ended => return Ok(()),
            }
        }
    }
}
