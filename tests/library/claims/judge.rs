//! States of claims, by what ran.

use nuncio::internal::claims::{CheckEvent, ClaimState, claims, judge};

fn run(line: &str, exit_code: i32) -> CheckEvent {
    CheckEvent::Command { line: line.into(), exit_code: Some(exit_code) }
}

/// Asserts the states of an answer's claims.
fn check(answer: &str, events: &[CheckEvent], expected: &[ClaimState]) {
    let states: Vec<ClaimState> = judge(&claims(answer), events).into_iter().map(|found| found.state).collect();
    assert_eq!(states, expected, "{answer} {events:?}");
}

#[test]
fn last_run_after_the_last_change_decides() {
    let all = "All tests pass.";
    check(all, &[], &[ClaimState::NotRun]);
    check(all, &[CheckEvent::Change], &[ClaimState::NotRun]);
    check(all, &[run("cargo test", 0), CheckEvent::Change], &[ClaimState::BeforeLastChange]);
    check(all, &[CheckEvent::Change, run("cargo test", 0)], &[]);
    check(all, &[CheckEvent::Change, run("cargo test", 101)], &[ClaimState::Failed]);
    check(all, &[CheckEvent::Change, run("cargo test", 101), run("cargo test", 0)], &[]);
    check(all, &[CheckEvent::Change, run("cargo test", 0), run("cargo test", 101)], &[ClaimState::Failed]);
    check(all, &[CheckEvent::Change, run("cargo test -p a", 0), run("cargo test -p b", 101)], &[]);
    check(all, &[CheckEvent::Change, run("cargo test", 137)], &[]);
    check(all, &[CheckEvent::Change, run("cargo test", 127)], &[ClaimState::NotRun]);
}

#[test]
fn unknown_commands_are_never_held_against_a_claim() {
    let all = "All tests pass.";
    check(all, &[CheckEvent::Change, run("cargo test", 101), run("make test", 0)], &[]);
    check(all, &[run("make test", 0), CheckEvent::Change], &[]);
    check(all, &[run("make test", 0), run("cargo test", 0), CheckEvent::Change], &[ClaimState::BeforeLastChange]);
    check(all, &[CheckEvent::Change, CheckEvent::Command { line: "cargo test".into(), exit_code: None }], &[]);
    check("Clippy is clean.", &[CheckEvent::Change, run("cargo test | tail", 0)], &[ClaimState::NotRun]);
}

#[test]
fn programs_come_before_kinds() {
    check("`cargo test` passes.", &[CheckEvent::Change, run("cargo nextest run", 0)], &[]);
    check("`cargo test` passes.", &[CheckEvent::Change, run("cargo nextest run", 101)], &[]);
    check(
        "`cargo test` passes.",
        &[CheckEvent::Change, run("cargo nextest run", 0), run("cargo test", 101)],
        &[ClaimState::Failed],
    );
    check("The build succeeds.", &[CheckEvent::Change, run("cargo test", 101)], &[]);
    check("The build succeeds.", &[CheckEvent::Change, run("cargo test", 0)], &[]);
}

#[test]
fn verify_stands_for_every_check() {
    let all = "All tests pass.";
    check(all, &[CheckEvent::Change, CheckEvent::Verify { ok: true }], &[]);
    check(all, &[CheckEvent::Change, CheckEvent::Verify { ok: false }], &[ClaimState::Failed]);
    check(all, &[CheckEvent::Change, CheckEvent::Verify { ok: false }, run("ruff check", 0)], &[]);
    check(all, &[CheckEvent::Verify { ok: true }, CheckEvent::Change], &[ClaimState::BeforeLastChange]);
}

#[test]
fn disclosed_failure_is_not_reported() {
    let events = [CheckEvent::Change, run("pytest", 1)];
    check("Unit tests pass. The e2e tests time out here.", &events, &[]);
    check("All tests pass. Two integration tests still fail.", &events, &[]);
    check("All tests pass.", &events, &[ClaimState::Failed]);
}
