//! The confinement of programs that run in a project without a tool call: hooks, servers, setup
//! commands, commands that print tokens, checks and language servers.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::config::ProjectProgram;
use crate::process::{Command, ProgramConfinement, Sandbox};
use crate::workspace::{create_private_dir, linked_git_dirs, real_path};

/// Variables with the directories in which package managers keep their caches. The user's own
/// caches must not be written, because the user's programs execute what is in them.
const CACHES: [(&str, &str); 6] = [
    ("GOCACHE", "go-build"),
    ("PIP_CACHE_DIR", "pip"),
    ("PRE_COMMIT_HOME", "pre-commit"),
    ("UV_CACHE_DIR", "uv"),
    ("XDG_CACHE_HOME", "xdg"),
    ("npm_config_cache", "npm"),
];

/// The directory of downloaded Go modules, for programs with network. The others read the modules
/// that the user has downloaded.
const MODULE_CACHE: (&str, &str) = ("GOMODCACHE", "go-mod");

/// Variables with which package managers fail at once instead of waiting for a network that the
/// program does not have.
const OFFLINE: [(&str, &str); 7] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("COREPACK_ENABLE_NETWORK", "0"),
    ("GOPROXY", "off"),
    ("PIP_NO_INDEX", "1"),
    ("UV_OFFLINE", "1"),
    ("YARN_ENABLE_NETWORK", "0"),
    ("npm_config_offline", "true"),
];

/// Names of the two parts of a program's own directory.
const CACHE: &str = "cache";
const TEMP: &str = "tmp";

/// Returns the confinement of a program that may write below `roots`.
pub(crate) fn confined(program: ProjectProgram, roots: &[PathBuf]) -> ProgramConfinement {
    // The program can write in its cache, but not replace it by a link: the parent directory is not
    // writable. A link there is not resolved, so that the sandbox refuses it.
    let own = program.own_directory();
    // Ignore a failure: the program reports that it cannot write there.
    let _ = create_private_dir(&own.join(CACHE));
    let (all, id) = (own.parent().unwrap_or(&own), own.file_name().unwrap_or_default());
    let [cache, temp] = [CACHE, TEMP].map(|name| real_path(all).join(id).join(name));
    let git_dirs = roots.iter().flat_map(|root| linked_git_dirs(root));
    let writable = roots.iter().cloned().chain(git_dirs).chain([cache]).chain(program.grant.writable.iter().cloned());
    let sandbox = Sandbox {
        writable: writable.collect(),
        private: program.private.iter().map(|path| real_path(path)).collect(),
        readable: Vec::new(),
        temp,
        new_temp: true,
        git_config: false,
        settings: false,
        network: program.grant.network,
        required: true,
    };
    ProgramConfinement { sandbox, program }
}

/// Returns the environment variables of a confined program: its caches, and without network the
/// settings that turn downloads off. A Python that runs a module or a line of code does not import
/// modules of the directory.
pub(crate) fn variables(program: &ProjectProgram, command: &[String]) -> Vec<(&'static str, OsString)> {
    let (cache, network) = (program.own_directory().join(CACHE), program.grant.network);
    let caches = CACHES.into_iter().chain(network.then_some(MODULE_CACHE));
    let caches = caches.map(|(variable, name)| (variable, cache.join(name).into()));
    let offline = OFFLINE.into_iter().filter(|_| !network).map(|(variable, value)| (variable, value.into()));
    let safe_path = runs_module(command).then(|| ("PYTHONSAFEPATH", "1".into()));
    caches.chain(offline).chain(safe_path).collect()
}

/// Returns a command that prints a token. A command of the user runs outside of all projects, one
/// that a project names runs confined in the project.
pub(in crate::runtime) fn token_command(words: &[String], project: Option<&ProjectProgram>) -> Command {
    let Some(program) = project else { return Command::program(words, "/") };
    let directory = program.directory.clone();
    let confined = confined(program.clone(), std::slice::from_ref(&directory));
    let command = variables(program, words)
        .into_iter()
        .fold(Command::program(words, directory), |command, (name, value)| command.env(name, value));
    command.confined(&confined)
}

/// Returns whether a command is a Python that runs a module (`-m`) or a line of code (`-c`).
fn runs_module(command: &[String]) -> bool {
    let is_python = |word: &String| word.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    command.first().is_some_and(is_python) && command.iter().any(|word| word == "-m" || word == "-c")
}
