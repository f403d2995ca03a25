//! An agent inside the embedding program.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::agent_state::AgentState;
use super::question::Decide;
use super::questions::answer_all;
use super::session::Session;
use super::store::TemporaryDirectory;
use crate::api::{App, NewSessionParams, OpenSessionParams};
use crate::client::SessionClient;
use crate::error::Result;
use crate::id::{Seq, SessionId};
use crate::session::permissions::broker::Responder;
use crate::task;

/// The identity of the embedding program in the log.
const PRINCIPAL: &str = "library";

/// An agent with its sessions. Clones are the same agent. A running turn keeps it alive, also if
/// all clones, sessions and turns are dropped; [`Agent::close`] ends it.
#[derive(Clone)]
pub struct Agent(Arc<AgentState>);

impl Agent {
    pub(super) fn new(app: Arc<App>, decide: Option<Decide>, temporary: Option<TemporaryDirectory>) -> Agent {
        Agent(Arc::new(AgentState { client: SessionClient::new(app, PRINCIPAL), decide, _temporary: temporary }))
    }

    fn app(&self) -> &Arc<App> {
        self.0.client.app()
    }

    /// Creates a session in the agent's directory.
    pub async fn session(&self) -> Result<Session> {
        self.open(self.0.client.begin(NewSessionParams::default()).await?).await
    }

    /// Opens a session of the agent's store, with its conversation.
    pub async fn resume(&self, id: &SessionId) -> Result<Session> {
        let sessions = self.app().sessions().await?;
        let mut params = OpenSessionParams::new(id.clone());
        params.place.cwd = Some(sessions.cwd(id).await?);
        self.open(self.0.client.resume(params).await?).await
    }

    /// Creates the handle of an open session, which passes on its events after a seq.
    async fn open(&self, (id, after): (SessionId, Seq)) -> Result<Session> {
        let client = &self.0.client;
        let questions = match &self.0.decide {
            None => None,
            Some(decide) => {
                let events = client.follow(&id, after, Some(Responder::Program)).await?;
                let answering = answer_all(client.clone(), id.clone(), events, decide.clone());
                Some(Arc::new(AbortOnDropHandle::new(task::spawn(answering))))
            }
        };
        Ok(Session { shared: self.0.clone(), id, _questions: questions })
    }

    /// Serves the Agent Client Protocol (ACP v1) to one client, until the input ends or `stop` is
    /// cancelled. Then ends the agent. The client answers permission requests, not the callback.
    pub async fn serve_acp(
        self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
        stop: CancellationToken,
    ) -> Result<()> {
        crate::acp::serve(self.app().clone(), input, output, stop, async {}, || ()).await
    }

    /// Starts the HTTP server on an address such as `127.0.0.1:0`. Its clients use the sessions of
    /// this agent. Addresses that other machines can reach are refused.
    #[cfg(feature = "http")]
    pub async fn listen(&self, address: &str) -> Result<super::Server> {
        super::Server::start(self.app().clone(), address).await
    }

    /// Cancels the turns, and waits until they, the language servers and all commands have ended.
    pub async fn close(self) -> Result<()> {
        self.app().shut_down().await;
        Ok(())
    }
}
