//! Skills: instructions for a kind of task, in `skills/NAME/SKILL.md`. The system prompt contains
//! their names and descriptions; the model reads the file of a skill that it uses.

use std::fmt::Write;
use std::path::PathBuf;

use super::prompt_files::{PromptDirs, PromptFiles};
use crate::limits;
use crate::workspace::{Workspace, one_line};

/// Maximum size of the list of skills in the system prompt, in bytes (about 2000 tokens).
const SKILLS_BYTES_MAX: usize = 8 << 10;

/// A skill of the project or of the user.
pub(crate) struct Skill {
    pub name: String,
    pub description: String,
    pub path: PathBuf,
}

/// Finds the skills that the model may use. Those with `disable-model-invocation` are only slash
/// commands, unless its value is `false`.
pub(crate) fn find(dirs: &PromptDirs<'_>) -> Vec<Skill> {
    let files = dirs.files(PromptFiles::Skills).into_iter();
    files
        .filter(|file| file.content.get("disable-model-invocation").is_none_or(|value| value.eq_ignore_ascii_case("false")))
        .filter_map(|file| Some(Skill { description: file.content.get("description")?, name: file.name, path: file.path }))
        .collect()
}

/// Returns the section of the system prompt that lists the skills; empty without skills. Skills
/// that exceed the size limit are counted only.
pub(crate) fn section(skills: &[Skill], workspace: &Workspace) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let mut section = String::from(
        "\n<skills>\nInstructions for kinds of tasks. Before a task that a description matches, read the skill's file, and follow it.\n",
    );
    let mut left_out = 0;
    for Skill { name, description, path } in skills {
        let description: String = one_line(description.chars().take(limits::SKILL_DESCRIPTION_CHARS_MAX).collect());
        let line = format!("- {name}: {description} ({})\n", workspace.show(path));
        match section.len() + line.len() <= SKILLS_BYTES_MAX {
            true => section.push_str(&line),
            false => left_out += 1,
        }
    }
    if left_out > 0 {
        let _ = writeln!(section, "{left_out} more skills are not listed.");
    }
    section.push_str("</skills>\n");
    section
}
