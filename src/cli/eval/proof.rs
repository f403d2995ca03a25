//! Proofs that a task can be trusted: its test fails on the untouched start, and passes after
//! solve.sh. A record of each proof is kept in the cache.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::harm::SolutionChanges;
use super::snapshot::Snapshot;
use super::task::{EvalTask, SOLUTION, SOLVE, TEST};
use super::workbench::{Verdict, Workbench};
use crate::error::{Error, Result};
use crate::workspace::{create_private_dir, replace_private};

/// The record of a proof.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Proof {
    pub task: String,
    /// The digest of the files that were proved.
    pub digest: String,
    pub solution: SolutionChanges,
}

impl Proof {
    /// Returns the record of a task; `None` if the task was not proved since its last change.
    pub(super) fn of_task(bench: &Workbench, task: &EvalTask) -> Option<Proof> {
        let text = std::fs::read(file(bench, task)).ok()?;
        serde_json::from_slice(&text).ok().filter(|proof: &Proof| proof.digest == task.digest)
    }

    /// Proves a task and records it. The inner error is the reason why the task is wrong.
    pub(super) async fn prove(bench: &Workbench, task: &EvalTask) -> Result<std::result::Result<Proof, String>> {
        if !task.directory.join(SOLUTION).join(SOLVE).is_file() {
            return Ok(Err(format!("{SOLUTION}/{SOLVE} is missing")));
        }
        let solution = match attempt(bench, task).await {
            Ok(solution) => solution,
            Err(error) => return Ok(Err(error.message)),
        };
        let proof = Proof { task: task.name.clone(), digest: task.digest.clone(), solution };
        let text = serde_json::to_vec(&proof).map_err(|error| Error::internal(format!("writing a proof: {error}")))?;
        create_private_dir(&bench.proofs())?;
        replace_private(&file(bench, task), &text).map_err(|error| Error::io("writing a proof", error))?;
        Ok(Ok(proof))
    }
}

/// Runs the test without and with the solution.
async fn attempt(bench: &Workbench, task: &EvalTask) -> Result<SolutionChanges> {
    bench.prepare(task).await?;
    match bench.test(task).await? {
        (Verdict::Failed, _) => {}
        (Verdict::Solved, _) => return Err(Error::invalid_params(format!("{TEST} passes on the untouched start"))),
        (Verdict::Undecided(why), _) => return Err(Error::invalid_params(format!("untouched: {why}"))),
    }
    bench.prepare(task).await?;
    let before = Snapshot::read(bench).await?;
    let uncommitted = before.uncommitted(bench).await?;
    bench.solve(task).await?;
    let after = Snapshot::read(bench).await?;
    match bench.test(task).await? {
        (Verdict::Solved, _) => Ok(SolutionChanges::new((&before, &uncommitted), &after)),
        (Verdict::Failed, output) => Err(Error::invalid_params(format!("{TEST} fails after {SOLVE}: {}", output))),
        (Verdict::Undecided(why), _) => Err(Error::invalid_params(format!("after {SOLVE}: {why}"))),
    }
}

fn file(bench: &Workbench, task: &EvalTask) -> PathBuf {
    bench.proofs().join(format!("{}.json", task.digest))
}
