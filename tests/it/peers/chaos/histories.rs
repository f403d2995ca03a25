//! Random histories with real processes: two editors, a server and a `run` send requests to one
//! session, while commits are slow, generations are lost, sockets are held and cut, pipes are full
//! and processes are killed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::group::ProcessGroup;
use super::history::RandomHistory;
use harness::{Random, random_cases};

/// Full number of histories.
const HISTORIES: u32 = 200;
/// Groups of processes that run at the same time. Each runs one history after the other.
const GROUPS: u64 = 8;
/// Minimum number of actions in a history, and the number of lengths.
const ACTIONS: (u64, u64) = (10, 16);

/// The histories that no group has started: their numbers and their seeds.
type WaitingHistories = Arc<Mutex<VecDeque<(u32, Random)>>>;

async fn run_histories(mut seeds: Random, waiting: WaitingHistories) {
    let mut processes = ProcessGroup::start(&mut seeds).await;
    loop {
        let next = waiting.lock().unwrap().pop_front();
        let Some((number, mut random)) = next else { break };
        let actions = ACTIONS.0 + random.below(ACTIONS.1);
        let mut history = RandomHistory::start(&mut processes, random, number.to_string()).await;
        for _ in 0..actions {
            history.act().await;
        }
        history.finish().await;
    }
    processes.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keep_their_rules_in_random_histories() {
    let mut seeds = Random::new();
    let waiting = (1..=random_cases("histories", HISTORIES)).map(|number| (number, seeds.another())).collect();
    let waiting: WaitingHistories = Arc::new(Mutex::new(waiting));
    let groups: Vec<_> = (0..GROUPS).map(|_| tokio::spawn(run_histories(seeds.another(), waiting.clone()))).collect();
    let mut failed = 0;
    for group in groups {
        failed += u32::from(group.await.is_err());
    }
    assert_eq!(failed, 0, "histories broke a rule; each of them and its rule is printed above");
}
