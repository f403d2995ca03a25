//! Benchmarks of the event log in this process: appends as in a turn, and followers.

use std::collections::BTreeMap;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::BoxFuture;
use nuncio::content::StopReason;
use nuncio::event::{Body, SessionChange};
use nuncio::id::MessageId;
use nuncio::internal::config::{Durability, McpServer};
use nuncio::internal::error::Result;
use nuncio::internal::options::Mode;
use nuncio::internal::session::context_report::ContextReport;
use nuncio::internal::session::{
    Agent, AgentInfo, AgentSetting, Agents, ExternalTurnStarter, OwnedSession, SessionLog, SessionSetup, Sessions, Turn,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// An agent that ends each turn immediately.
struct Idle;

impl Agent for Idle {
    fn run<'a>(&'a self, _turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(async { Ok(StopReason::EndTurn) })
    }

    fn context<'a>(&'a self, _log: &'a SessionLog) -> BoxFuture<'a, Result<ContextReport>> {
        Box::pin(async { Err(nuncio::internal::error::Error::new(nuncio::internal::error::Kind::Internal, "no model")) })
    }

    fn set_mcp_servers(&self, _servers: BTreeMap<String, McpServer>) {}

    fn has_background_work(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Agents for Idle {
    fn list(&self) -> Vec<AgentInfo> {
        Vec::new()
    }

    fn open(&self, _setup: SessionSetup, _start_external: ExternalTurnStarter) -> Arc<dyn Agent> {
        Arc::new(Idle)
    }

    fn check(&self, _setup: &SessionSetup, _settings: &[AgentSetting]) -> Result<()> {
        Ok(())
    }
}

fn open(runtime: &Runtime, durability: Durability) -> (tempfile::TempDir, OwnedSession) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let session = runtime.block_on(async {
        let sessions = Sessions::open_store(
            dir.path(),
            None,
            Arc::new(Idle),
            durability,
            nuncio::internal::session::Capacity::default(),
            None,
        )
        .await
        .expect("a store");
        sessions.create(dir.path().into(), Mode::Ask, SessionChange::default()).await.expect("a session")
    });
    (dir, session)
}

/// A body from its JSON.
fn body(json: Value) -> Body {
    serde_json::from_value(json).expect("a body")
}

fn delta(message_id: &MessageId) -> Body {
    body(json!({"type": "message.delta", "messageId": message_id, "role": "assistant", "offset": 0, "text": "tok1abc "}))
}

/// A copy of a delta at another place.
fn delta_at(delta: &Body, place: u64) -> Body {
    let mut delta = delta.clone();
    if let Body::MessageDelta { offset, .. } = &mut delta {
        *offset = place;
    }
    delta
}

fn log(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    for (name, durability) in [("append one fact, on the disk", Durability::Full), ("append one fact", Durability::Normal)] {
        let (_dir, session) = open(&runtime, durability);
        let changed = body(json!({"type": "mode.changed", "mode": "ask"}));
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| runtime.block_on(session.log.commit(None, changed.clone())).expect("committed"));
        });
    }

    const EVENTS: u64 = 10_000;
    let mut group = criterion.benchmark_group("append and follow");
    group.throughput(Throughput::Elements(EVENTS)).sample_size(20);
    let (_dir, session) = open(&runtime, Durability::Auto);
    group.bench_function("10000 deltas of two messages", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let mut follow = session.log.follow(session.log.head());
                let writer = session.log.clone();
                // The deltas alternate between two messages: adjacent deltas of one message become
                // one event.
                let messages = [MessageId::new(), MessageId::new()];
                let deltas = messages.each_ref().map(delta);
                let written = tokio::spawn(async move {
                    for index in 0..EVENTS {
                        writer.emit(None, delta_at(&deltas[index as usize % 2], index / 2 * 8)).await;
                    }
                    for message_id in messages {
                        let completed =
                            body(json!({"type": "message.completed", "messageId": message_id, "role": "assistant", "parts": []}));
                        writer.emit(None, completed).await;
                    }
                });
                let mut seen = 0;
                while seen < EVENTS + 2 {
                    seen += follow.next().await.expect("events").len() as u64;
                }
                written.await.expect("written");
            });
        });
    });
    group.finish();
}

criterion_group!(benches, log);
criterion_main!(benches);
