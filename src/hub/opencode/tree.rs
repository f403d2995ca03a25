//! OpenCode sessions whose events belong to a turn: the session of the turn, and its subagents at
//! any depth. Other sessions of the server have other turns.

use std::collections::HashSet;

use serde_json::Value;

/// A session and its subagents. Subagents are kept, because a later turn can resume them.
#[derive(Clone, Default)]
pub(super) struct SessionTree {
    root: String,
    subagents: HashSet<String>,
}

impl SessionTree {
    pub(super) fn new(root: &str) -> SessionTree {
        SessionTree { root: root.into(), subagents: HashSet::new() }
    }

    /// Returns the id of the session of the turn.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    pub(super) fn contains(&self, session: &str) -> bool {
        session == self.root || self.subagents.contains(session)
    }

    /// Adds the session that `info` describes if its parent belongs to the tree.
    pub(super) fn add(&mut self, info: &Value) {
        if info["parentID"].as_str().is_some_and(|parent| self.contains(parent)) {
            self.subagents.extend(info["id"].as_str().map(String::from));
        }
    }

    /// Adds the session of a subagent that a call in the tree started or resumed.
    pub(super) fn add_of_call(&mut self, part: &Value) {
        if part["tool"] == "task" {
            self.subagents.extend(part["state"]["metadata"]["sessionId"].as_str().map(String::from));
        }
    }
}
