//! The core of a session against a reference model, in random histories: with a log that commits
//! late and loses events, with answers that are written late, and with every decision of the core.

mod clients;
mod history;
mod model;
mod steering;

use harness::{Random, random_cases};
use history::History;

/// Full number of histories.
const HISTORIES: u32 = 10_000;

/// Number of actions in a history.
const ACTIONS: u64 = 80;

#[test]
fn core_agrees_with_the_model_in_random_histories() {
    let mut seeds = Random::new();
    let mut starts = 0;
    let histories = random_cases("histories", HISTORIES);
    for _ in 0..histories {
        let mut history = History::new(seeds.another());
        for _ in 0..ACTIONS {
            history.act();
        }
        starts += history.finish();
    }
    assert!(starts > u64::from(histories), "only {starts} turns started");
}
