//! The check commands that a project declares in AGENTS.md or in its Makefile.

use std::path::Path;

use super::instructions::InstructionSearch;
use crate::config::declared_checks;
use crate::workspace::read_small_text;

/// Names under which make(1) looks for its file, in this order.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Returns the check commands of the project in `cwd`: with `declared`, those that the nearest
/// AGENTS.md declares; else `make test` if the Makefile in `cwd` has the target.
pub(crate) fn find(cwd: &Path, declared: bool) -> Vec<String> {
    if declared {
        let patterns = ["AGENTS.md".to_owned()];
        let files = InstructionSearch { cwd, patterns: &patterns, config: None, home: None, trust: None }.find().taken;
        let mut commands = files.iter().rev().map(|file| declared_checks(&file.text)).filter(|commands| !commands.is_empty());
        if let Some(commands) = commands.next() {
            return commands;
        }
    }
    let makefile = MAKEFILES.iter().find_map(|name| read_small_text(&cwd.join(name)).ok());
    makefile.filter(|text| has_test_target(text)).map(|_| "make test".to_owned()).into_iter().collect()
}

/// Returns whether a Makefile has the target `test`.
fn has_test_target(text: &str) -> bool {
    text.lines().any(|line| {
        let targets = line.split_once(':').filter(|(_, rest)| !rest.starts_with('='));
        !line.starts_with(['\t', ' ', '#', '.'])
            && targets.is_some_and(|(targets, _)| targets.split_whitespace().any(|one| one == "test"))
    })
}
