//! Random histories with real processes: two editors, a server and a `run` send requests to one
//! session, while commits are slow, generations are lost, sockets are held and cut, pipes are full
//! and processes are killed. `NUNCIO_HISTORIES` is the number of histories.

use super::group::ProcessGroup;
use super::history::RandomHistory;
use crate::harness::Random;

/// Number of histories, unless `NUNCIO_HISTORIES` gives another one.
const HISTORIES: u64 = 200;
/// Groups of processes that run at the same time. Each runs its histories one after the other.
const GROUPS: u64 = 8;
/// Minimum number of actions in a history, and the number of lengths.
const ACTIONS: (u64, u64) = (10, 16);

async fn run_histories(group: u64, count: u64, mut seeds: Random) {
    let mut processes = ProcessGroup::start(&mut seeds).await;
    for number in 0..count {
        let mut random = seeds.another();
        let actions = ACTIONS.0 + random.below(ACTIONS.1);
        let mut history = RandomHistory::start(&mut processes, random, format!("{group}.{number}")).await;
        for _ in 0..actions {
            history.act().await;
        }
        history.finish().await;
    }
    processes.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keep_their_rules_in_random_histories() {
    let given = std::env::var("NUNCIO_HISTORIES").ok().map(|number| number.parse().expect("NUNCIO_HISTORIES is a number"));
    let histories = given.unwrap_or(HISTORIES);
    let mut seeds = Random::new();
    let groups: Vec<_> =
        (0..GROUPS).map(|group| tokio::spawn(run_histories(group, histories.div_ceil(GROUPS), seeds.another()))).collect();
    let mut failed = 0;
    for group in groups {
        failed += u32::from(group.await.is_err());
    }
    assert_eq!(failed, 0, "groups with a history that broke a rule");
}
