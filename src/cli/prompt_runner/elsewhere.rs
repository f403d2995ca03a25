//! Prompts to a session of a server elsewhere.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{CancelTurn, PromptParams, PromptResult, SessionParams};
use crate::client::SessionClient;
use crate::error::{Error, Result};
use crate::id::TurnId;

/// A turn that has ended, and the result of its prompt.
pub(super) type EndedTurn = (TurnId, Result<PromptResult>);

/// Sends a prompt, and waits until its turn is the one that has ended. `cancel` cancels the turn.
pub(super) async fn prompt(
    client: &SessionClient,
    params: PromptParams,
    cancel: CancellationToken,
    mut ended: watch::Receiver<Option<EndedTurn>>,
) -> Result<PromptResult> {
    let session = SessionParams { session_id: params.session_id.clone() };
    let turn = client.start_elsewhere(params).await?;
    let end = async {
        let found = ended.wait_for(|ended| ended.as_ref().is_some_and(|(of, _)| *of == turn)).await;
        let found = found.ok().and_then(|found| found.clone());
        found.map_or_else(|| Err(Error::internal("the turn has no end")), |(_, result)| result)
    };
    tokio::pin!(end);
    tokio::select! {
        result = &mut end => result,
        () = cancel.cancelled() => {
            client.call::<CancelTurn>(session).await?;
            end.await
        }
    }
}

/// Waits until a turn has ended.
pub(super) async fn turn_ended(turn: TurnId, mut ended: watch::Receiver<Option<EndedTurn>>) {
    // Fails only when the runner is dropped.
    let _ = ended.wait_for(|ended| ended.as_ref().is_some_and(|(of, _)| *of == turn)).await;
}
