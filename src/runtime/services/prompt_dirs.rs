//! The directories in which prompts, skills and instructions are searched.

use std::path::Path;
use std::sync::Arc;

use super::Services;
use crate::context::commands::SlashCommand;
use crate::context::instructions::InstructionSearch;
use crate::context::prompt_files::PromptDirs;
use crate::error::Result;
use crate::task;

impl Services {
    /// Returns the directories in which the files of slash commands and skills are searched.
    pub(crate) fn prompt_dirs<'a>(&'a self, cwd: &'a Path) -> PromptDirs<'a> {
        PromptDirs { cwd, places: &self.places }
    }

    /// Returns nuncio's own slash commands and those that files define for sessions in `cwd`.
    /// Unless `check` is set, ignores changes of files since the last check.
    pub(crate) async fn commands_in(self: &Arc<Self>, cwd: &Path, check: bool) -> Result<Arc<[SlashCommand]>> {
        if let Some(known) = self.commands.known(cwd, check) {
            return Ok(known);
        }
        let (services, cwd) = (self.clone(), cwd.to_path_buf());
        task::blocking("reading files", move || services.commands.read(&services.prompt_dirs(&cwd))).await
    }

    /// Returns where the instruction files of a session in `cwd` are searched.
    pub(crate) fn instruction_search<'a>(&'a self, cwd: &'a Path, patterns: &'a [String]) -> InstructionSearch<'a> {
        InstructionSearch {
            cwd,
            patterns,
            config: Some(&self.places.config),
            home: self.places.home.as_deref(),
            trust: Some(&self.places),
        }
    }
}
