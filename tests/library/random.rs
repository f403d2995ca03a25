//! The number of cases of property tests.

use proptest::test_runner::Config;

/// Returns a configuration with a number of cases by `NUNCIO_RANDOM`; `full` is the full number.
pub fn property(what: &str, full: u32) -> Config {
    Config { cases: harness::random_cases(what, full), failure_persistence: None, ..Config::default() }
}
