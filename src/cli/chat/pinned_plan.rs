//! The plan of the running turn, which stays below the output until the plan or the turn ends.

use crate::cli::terminal::remarks::plan_entry;
use crate::content::{PlanEntry, PlanStatus};

/// Maximum number of rows.
const ROWS_MAX: usize = 5;

/// The newest entries.
#[derive(Default)]
pub(crate) struct PinnedPlan(Vec<PlanEntry>);

impl PinnedPlan {
    /// Replaces the entries. Returns them all if none is left to do: the plan has ended.
    pub(crate) fn update(&mut self, entries: &[PlanEntry]) -> Option<Vec<PlanEntry>> {
        self.0 = entries.to_vec();
        let has_ended = entries.iter().all(|entry| entry.status == PlanStatus::Completed);
        has_ended.then(|| self.take())
    }

    /// Removes the plan. Returns its entries.
    pub(crate) fn take(&mut self) -> Vec<PlanEntry> {
        std::mem::take(&mut self.0)
    }

    /// Returns the rows around the first entry that is not completed.
    pub(crate) fn rows(&self) -> Vec<String> {
        let open = self.0.iter().position(|entry| entry.status != PlanStatus::Completed).unwrap_or(0);
        let shown = if self.0.len() > ROWS_MAX { ROWS_MAX - 1 } else { ROWS_MAX };
        let first = open.saturating_sub(1).min(self.0.len().saturating_sub(shown));
        let mut rows: Vec<String> = self.0.iter().skip(first).take(shown).map(plan_entry).collect();
        if self.0.len() > shown {
            let done = self.0.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
            rows.push(format!("  {done} of {} completed", self.0.len()));
        }
        rows
    }
}
