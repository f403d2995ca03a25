//! Ownership of a session after a lost event.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use nuncio::content::StopReason;
use nuncio::event::SessionChange;
use nuncio::internal::config::{Durability, McpServer};
use nuncio::internal::session::context_report::ContextReport;
use nuncio::internal::session::{
    Agent, AgentInfo, AgentSetting, Agents, Capacity, ExternalTurnStarter, SessionLog, SessionSetup, Sessions, Turn,
};
use nuncio::{Error, Kind, Mode, Result};

/// An agent that is never used.
struct UnusedAgent;

impl Agent for UnusedAgent {
    fn run<'a>(&'a self, _: &'a Turn) -> BoxFuture<'a, Result<StopReason>> {
        async { Ok(StopReason::EndTurn) }.boxed()
    }

    fn context<'a>(&'a self, _: &'a SessionLog) -> BoxFuture<'a, Result<ContextReport>> {
        async { Err(Error::new(Kind::Internal, "no model")) }.boxed()
    }

    fn set_mcp_servers(&self, _: BTreeMap<String, McpServer>) {}

    fn has_background_work(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

impl Agents for UnusedAgent {
    fn list(&self) -> Vec<AgentInfo> {
        Vec::new()
    }

    fn open(&self, _: SessionSetup, _: ExternalTurnStarter) -> Arc<dyn Agent> {
        Arc::new(UnusedAgent)
    }

    fn check(&self, _: &SessionSetup, _: &[AgentSetting]) -> Result<()> {
        Ok(())
    }
}

// The next opening would not get the lock.
#[tokio::test]
async fn closed_session_is_not_taken_again_after_a_lost_event() {
    let dir = tempfile::tempdir().unwrap();
    let open = async || {
        Sessions::open_store(dir.path(), None, Arc::new(UnusedAgent), Durability::Normal, Capacity::default(), None).await.unwrap()
    };
    let sessions = open().await;
    let session = sessions.create(dir.path().into(), Mode::Ask, SessionChange::default()).await.unwrap();
    let id = session.log.id.clone();
    // As if another process had taken the session: the event that ends the session here is lost.
    let database = rusqlite::Connection::open(dir.path().join("nuncio.db")).unwrap();
    database.execute("UPDATE sessions SET generation = generation + 1", []).unwrap();
    let lost = sessions.close(&id).await;
    assert!(lost.is_err_and(|error| error.kind == Kind::SessionBusy), "the end of the session");
    let refused = session.own().await;
    assert!(refused.is_err_and(|error| error.message.contains("closed")), "the call");
    assert!(!session.is_owned());
    open().await.get(&id).await.unwrap().own().await.unwrap();
}
