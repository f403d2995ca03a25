//! The acts of git that a session allows without a message that asks for them.

use super::session_environment::SessionEnvironment;
use crate::config::worktree_origin;
use crate::permission::git_acts::GitActs;
use crate::task;

impl SessionEnvironment {
    /// Returns what git may do without a message that asks for it: what the user's own instruction
    /// files, and those of a trusted project, ask for, and in a workspace that nuncio made all that
    /// stays in it.
    pub(crate) async fn asked_git_acts(&self) -> GitActs {
        let mut given = if self.services.overrides.allow_commit { GitActs::COMMIT } else { GitActs::NONE };
        if worktree_origin(&self.services.places.worktrees(), &self.workspace.cwd).is_some() {
            given = given | GitActs::LOCAL;
        }
        let mut asked = GitActs::NONE;
        let (services, cwd, settings) = (self.services.clone(), self.workspace.cwd.clone(), &self.loaded.settings.instructions);
        let patterns = if self.loaded.trusted { settings.patterns.clone() } else { Vec::new() };
        if settings.auto_inject {
            let find = move || services.instruction_search(&cwd, &patterns).find().taken;
            for instruction in task::blocking("reading instruction files", find).await.unwrap_or_default() {
                asked.heed_instructions(&instruction.text);
            }
        }
        given | asked
    }
}
