//! The confinement of programs that run in a project without a tool call: hooks, servers, setup
//! commands and commands that print tokens.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::ProjectProgram;
use crate::process::{Command, Confined, Sandbox};
use crate::workspace::{create_private_dir, linked_git_dirs};

/// Variables with the directories in which package managers keep their caches. The user's own
/// caches must not be written, because the user's programs execute what is in them.
const CACHES: [(&str, &str); 5] = [
    ("PIP_CACHE_DIR", "pip"),
    ("PRE_COMMIT_HOME", "pre-commit"),
    ("UV_CACHE_DIR", "uv"),
    ("XDG_CACHE_HOME", "xdg"),
    ("npm_config_cache", "npm"),
];

/// Returns the confinement of a program that may write below `roots`.
pub(crate) fn confined(program: ProjectProgram, roots: &[PathBuf]) -> Confined {
    let (cache, temp) = (program.cache(), program.cache().join("tmp"));
    // If this fails, the program cannot write temporary files, which it reports itself.
    let _ = create_private_dir(&temp);
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let git_dirs = roots.iter().flat_map(|root| linked_git_dirs(root));
    let writable = roots.iter().cloned().chain(git_dirs).chain([real(&cache)]).chain(program.grant.writable.iter().cloned());
    let sandbox = Sandbox {
        writable: writable.collect(),
        private: program.private.iter().map(|path| real(path)).collect(),
        readable: Vec::new(),
        temp: real(&temp),
        git_config: false,
        settings: false,
        network: program.grant.network,
        required: true,
    };
    Confined { sandbox, program }
}

/// Returns the environment variables of a confined program: its caches. A Python that runs a module
/// or a line of code does not import modules of the directory.
pub(crate) fn variables(program: &ProjectProgram, command: &[String]) -> Vec<(&'static str, OsString)> {
    let cache = program.cache();
    let caches = CACHES.into_iter().map(|(variable, name)| (variable, cache.join(name).into()));
    let safe_path = runs_module(command).then(|| ("PYTHONSAFEPATH", "1".into()));
    caches.chain(safe_path).collect()
}

/// Returns a command that prints a token. A command of the user runs outside of all projects, one
/// that a project names runs confined in the project.
pub(super) fn token_command(words: &[String], project: Option<&ProjectProgram>) -> Command {
    let Some(program) = project else { return Command::program(words, "/") };
    let directory = program.directory.clone();
    let confined = confined(program.clone(), std::slice::from_ref(&directory));
    Command::program(words, directory).confined(&confined)
}

/// Returns whether a command is a Python that runs a module (`-m`) or a line of code (`-c`).
fn runs_module(command: &[String]) -> bool {
    let is_python = |word: &String| word.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    command.first().is_some_and(is_python) && command.iter().any(|word| word == "-m" || word == "-c")
}
