//! The directories in which prompts, skills and instructions are searched.

use std::path::Path;

use super::Services;
use crate::context::instructions::InstructionSearch;
use crate::context::prompt_files::PromptDirs;

impl Services {
    /// Returns the directories in which the files of slash commands and skills are searched.
    pub(crate) fn prompt_dirs<'a>(&'a self, cwd: &'a Path) -> PromptDirs<'a> {
        PromptDirs { cwd, places: &self.places }
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
