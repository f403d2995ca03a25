//! The core of a session against a reference model, in random histories: with a log that commits
//! late and loses events, with answers that are written late, and with every decision of the core.
//! `NUNCIO_HISTORIES` is the number of histories.

mod clients;
mod history;
mod model;
mod steering;

use harness::Random;
use history::History;

/// Number of histories, unless `NUNCIO_HISTORIES` gives another one.
const HISTORIES: u64 = 10_000;

/// Number of actions in a history.
const ACTIONS: u64 = 80;

#[test]
fn core_agrees_with_the_model_in_random_histories() {
    let given = std::env::var("NUNCIO_HISTORIES").ok().map(|number| number.parse().expect("NUNCIO_HISTORIES is a number"));
    let mut seeds = Random::new();
    let mut starts = 0;
    let histories = given.unwrap_or(HISTORIES);
    for _ in 0..histories {
        let mut history = History::new(seeds.another());
        for _ in 0..ACTIONS {
            history.act();
        }
        starts += history.finish();
    }
    assert!(starts > histories, "only {starts} turns started");
}
