//! Holds claims against what ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claims::check::{CheckName, Kinds};
use crate::claims::claim::Claim;
use crate::claims::commands::{Exit, RanCheck};
use crate::claims::ran::{CommandChecks, kinds};

/// Something that happened before the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckEvent {
    /// A shell command that ran. `exit_code` is `None` if it is not known.
    Command { line: String, exit_code: Option<i32> },
    /// The project's checks ran, as a tool call or automatically.
    Verify { ok: bool },
    /// A file changed that checks may read.
    Change,
}

/// The fact that contradicts a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClaimState {
    /// The check failed when it last ran.
    Failed,
    /// The check ran only before the last change.
    BeforeLastChange,
    /// The check did not run.
    NotRun,
}

/// The shell's exit code for a program that does not exist.
const NOT_FOUND: i32 = 127;
/// Exit codes from here on say that a program was stopped or did not start: timeout(1) and signals.
const STOPPED: i32 = 124;

/// A claim that what ran contradicts. The fields are indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    pub claim: usize,
    pub state: ClaimState,
    /// The run that decided; `None` if the check did not run.
    pub event: Option<usize>,
}

/// Returns the claims that what ran contradicts. A claim that may be true is not returned.
pub fn judge(claims: &[Claim], events: &[CheckEvent]) -> Vec<Contradiction> {
    let happened: Vec<ReadEvent> = events.iter().map(ReadEvent::new).collect();
    let judged = |(claim, of): (usize, &Claim)| {
        let (state, event) = state(of, &happened)?;
        Some(Contradiction { claim, state, event })
    };
    claims.iter().enumerate().filter_map(judged).collect()
}

/// An event whose command line is analysed.
enum ReadEvent {
    Command { checks: CommandChecks, exit_code: Option<i32> },
    Verify { ok: bool },
    Change,
}

impl ReadEvent {
    fn new(event: &CheckEvent) -> ReadEvent {
        match event {
            CheckEvent::Command { line, exit_code } => ReadEvent::Command { checks: kinds(line), exit_code: *exit_code },
            CheckEvent::Verify { ok } => ReadEvent::Verify { ok: *ok },
            CheckEvent::Change => ReadEvent::Change,
        }
    }
}

/// The meaning of an event for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Evidence {
    /// The event has nothing to do with the claim.
    Nothing,
    Passed(String),
    Failed(String),
    /// The check may have passed.
    Unknown,
    /// The project's checks failed, and the one of the claim may be among them.
    VerifyFailed,
}

fn state(claim: &Claim, happened: &[ReadEvent]) -> Option<(ClaimState, Option<usize>)> {
    let check = &claim.check;
    let start = happened.iter().rposition(|event| matches!(event, ReadEvent::Change)).map_or(0, |change| change + 1);
    let (before, after) = happened.split_at_checked(start)?;
    let same_program_ran = after.iter().any(|event| event.ran_program(check));
    let evidence: Vec<Evidence> = after.iter().map(|event| event.evidence(check, same_program_ran)).collect();
    if evidence.contains(&Evidence::Unknown) {
        return None;
    }
    let replaced = after.iter().any(|event| matches!(event, ReadEvent::Command { checks, .. } if checks.replaces_files));
    let mut passed: Vec<&str> = Vec::new();
    let (mut failed, mut verify_failed) = (false, false);
    for (one, event) in evidence.iter().zip(after) {
        match one {
            Evidence::Passed(line) => {
                passed.push(line);
                failed = false;
            }
            // A failure after a success counts if it is one of the same command: another one may
            // check more than the answer speaks about.
            Evidence::Failed(line) => failed = passed.is_empty() || passed.last() == Some(&line.as_str()),
            Evidence::VerifyFailed => verify_failed = true,
            // A later check may be the one that failed before.
            Evidence::Nothing | Evidence::Unknown => verify_failed &= !event.makes_checks(),
        }
    }
    if failed || (verify_failed && passed.is_empty()) {
        let is_failure = |one: &Evidence| matches!(one, Evidence::Failed(_) | Evidence::VerifyFailed);
        let event = evidence.iter().rposition(is_failure).map(|index| start + index);
        return (!replaced && !claim.discloses_failure).then_some((ClaimState::Failed, event));
    }
    if evidence.iter().any(|one| *one != Evidence::Nothing) {
        return None;
    }
    let ran_before = |event: &ReadEvent| event.evidence(check, false) != Evidence::Nothing && !event.is_unknown();
    if let Some(event) = before.iter().rposition(ran_before) {
        return Some((ClaimState::BeforeLastChange, Some(event)));
    }
    (!before.iter().any(ReadEvent::is_unknown)).then_some((ClaimState::NotRun, None))
}

impl ReadEvent {
    /// Returns whether the event may have made any check.
    fn is_unknown(&self) -> bool {
        matches!(self, ReadEvent::Command { checks, .. } if checks.unknown)
    }

    fn makes_checks(&self) -> bool {
        matches!(self, ReadEvent::Command { checks, .. } if !checks.checks.is_empty())
    }

    /// Returns whether the program that the claim names ran.
    fn ran_program(&self, check: &CheckName) -> bool {
        let (CheckName::Program { words, .. }, ReadEvent::Command { checks, .. }) = (check, self) else { return false };
        checks.checks.iter().any(|ran| ran.words == *words)
    }

    /// Returns what the event says about the claim. If `only_program` is set, other programs of the
    /// kind say nothing.
    fn evidence(&self, check: &CheckName, only_program: bool) -> Evidence {
        let (checks, exit_code) = match self {
            ReadEvent::Command { checks, exit_code } => (checks, *exit_code),
            ReadEvent::Verify { ok: true } => return Evidence::Unknown,
            ReadEvent::Verify { ok: false } => return Evidence::VerifyFailed,
            ReadEvent::Change => return Evidence::Nothing,
        };
        if checks.unknown {
            return Evidence::Unknown;
        }
        let is_named = |ran: &RanCheck| matches!(check, CheckName::Program { words, .. } if ran.words == *words);
        let covers = |ran: &&RanCheck| is_named(ran) || (!only_program && covers(ran, check.kinds()));
        let found: Vec<Evidence> = checks
            .checks
            .iter()
            .filter(covers)
            .map(|ran| {
                let is_about = is_named(ran) || (matches!(check, CheckName::Kind(_)) && ran.kinds.intersects(check.kinds()));
                result(ran, exit_code, is_about)
            })
            .collect();
        // A line with several checks of the kind says what its last one says.
        let unknown = found.contains(&Evidence::Unknown).then_some(Evidence::Unknown);
        unknown.or_else(|| found.into_iter().next_back()).unwrap_or(Evidence::Nothing)
    }
}

fn covers(ran: &RanCheck, kinds: Kinds) -> bool {
    ran.kinds.and(ran.shows).intersects(kinds)
}

/// Returns what the exit code says about the claim. `is_about` is false if the claim is only about
/// something that a success of the check shows as well.
fn result(ran: &RanCheck, exit_code: Option<i32>, is_about: bool) -> Evidence {
    match (exit_code, ran.exit) {
        (None, _) | (_, Exit::Nothing) => Evidence::Unknown,
        (Some(0), _) => Evidence::Passed(ran.line.clone()),
        (Some(NOT_FOUND), Exit::Decides) => Evidence::Nothing,
        (Some(code), Exit::Decides) if is_about && code < STOPPED && !is_without_tests(ran, code) => {
            Evidence::Failed(ran.line.clone())
        }
        _ => Evidence::Unknown,
    }
}

/// Returns whether the exit code of pytest says that it found no tests, or wrong arguments.
fn is_without_tests(ran: &RanCheck, code: i32) -> bool {
    matches!(ran.words.first().map(String::as_str), Some("pytest" | "py.test")) && matches!(code, 4 | 5)
}
