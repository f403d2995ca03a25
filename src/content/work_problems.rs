//! Problems that delegated work left, whatever its answer says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Problems that delegated work left: changes that the user rejected, and checks that fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkProblems {
    /// The summaries of reviews in which the user did not accept all changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<String>,
    /// The results of the project's checks, if some of them fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_checks: Option<String>,
}

impl WorkProblems {
    /// Returns the problems as a text for the model that delegated the work; empty without any.
    pub(crate) fn text(&self) -> String {
        let rejected = self.rejected.iter().map(|summary| format!("[the user reviewed the changes:\n{}]", summary.trim_end()));
        let failing = self.failing_checks.iter().map(|output| format!("[the project's checks fail:\n{}]", output.trim_end()));
        rejected.chain(failing).collect::<Vec<_>>().join("\n")
    }

    /// Adds the problems that work below this work left.
    pub(crate) fn add(&mut self, below: &WorkProblems) {
        self.rejected.extend(below.rejected.iter().cloned());
        if below.failing_checks.is_some() {
            self.failing_checks.clone_from(&below.failing_checks);
        }
    }
}
