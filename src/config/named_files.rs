//! Finds the files of a project that its settings name: prompts, and the words of commands.

use std::fs;
use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

use crate::workspace::read_small_text;

/// Files that run a directory which is given to an interpreter.
const ENTRY_FILES: [&str; 2] = ["index.js", "package.json"];

/// A file that settings name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFile {
    /// The name in the settings.
    pub name: String,
    pub path: PathBuf,
    /// Set if a symlink of the project leads out of it: the path to which it leads.
    pub outside: Option<PathBuf>,
}

/// Returns the files inside the project that its settings name as prompts or in commands. Files
/// outside of the project are not under its control, but the symlinks that lead to them are.
pub(crate) fn named_files(directory: &Path, settings: Option<&[u8]>) -> Vec<NamedFile> {
    let table: Option<Table> = settings.and_then(|content| toml::from_str(std::str::from_utf8(content).ok()?).ok());
    let mut names: Vec<String> = table.iter().flat_map(|table| names(directory, table)).collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names.into_iter().filter_map(|name| named_file(directory, name)).collect()
}

fn named_file(directory: &Path, name: String) -> Option<NamedFile> {
    let path = directory.join(&name);
    let real = fs::canonicalize(&path).ok()?;
    if !real.starts_with(directory) {
        let own = path.starts_with(directory) && !path.components().any(|part| part == Component::ParentDir);
        return own.then_some(NamedFile { name, path, outside: Some(real) });
    }
    // An interpreter runs this file of a directory.
    let path = if real.is_dir() { path.join("__main__.py") } else { path };
    let real = fs::canonicalize(&path).ok()?;
    let outside = (!real.starts_with(directory)).then(|| real.clone());
    real.is_file().then_some(NamedFile { name, path, outside })
}

/// Returns the names in the settings that may refer to files.
fn names(directory: &Path, settings: &Table) -> Vec<String> {
    let tables = |name: &str| settings.get(name).and_then(Value::as_table);
    let inner = |name: &str| tables(name).into_iter().flat_map(Table::values);
    let prompts = inner("prompts").filter_map(|file| file.as_str().map(String::from));
    let commands = [("lsp", "command"), ("mcp", "command"), ("mcp", "bearer_token_command"), ("providers", "api_key_command")];
    let commands = commands.into_iter().flat_map(|(name, key)| inner(name).filter_map(move |one| one.get(key)));
    let hooks = settings.get("hooks").and_then(Value::as_array).into_iter().flatten().filter_map(|hook| hook.get("command"));
    let commands = commands.chain(hooks).flat_map(|command| names_in_command(directory, command));
    // The program of an MCP server runs in the directory `cwd`.
    let servers = inner("mcp").flat_map(|server| {
        let cwd = server.get("cwd").and_then(Value::as_str).map(plain).filter(|cwd| !cwd.is_empty());
        let found = |cwd: String| {
            let names = server.get("command").map(|command| names_in_command(&directory.join(&cwd), command));
            names.into_iter().flatten().filter_map(move |name| Some(Path::new(&cwd).join(name).to_str()?.to_owned()))
        };
        cwd.into_iter().flat_map(found).collect::<Vec<_>>()
    });
    let lines = [("worktree", "setup"), ("verify", "commands")].into_iter();
    let lines = lines.filter_map(|(name, key)| tables(name)?.get(key)?.as_array()).flatten().filter_map(Value::as_str);
    let lines = lines.flat_map(|line| names_in_words(directory, &[line]));
    prompts.chain(commands).chain(servers).chain(lines).collect()
}

/// Returns the files that the words of a command name, which runs in `directory`.
pub(crate) fn files_in_command(directory: &Path, words: &[String]) -> Vec<PathBuf> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let names = names_in_words(directory, &words).into_iter().filter(|name| !name.is_empty());
    names.map(|name| directory.join(name)).filter(|path| path.is_file()).collect()
}

fn names_in_command(directory: &Path, command: &Value) -> Vec<String> {
    let words: Vec<&str> = command.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    names_in_words(directory, &words)
}

/// Returns the names in the words of a command; a word may be a line of a shell. `directory` is the
/// one in which the command runs.
fn names_in_words(directory: &Path, words: &[&str]) -> Vec<String> {
    let all: Vec<&str> = words.iter().flat_map(|word| shell_words(word)).filter(|word| !word.is_empty()).collect();
    let runs = |names: &[&str]| all.iter().any(|word| names.contains(&program_name(word)));
    let whole = words.iter().chain(&all).map(|word| plain(word));
    let values = all.iter().filter_map(|word| word.split_once('=')).map(|(_, value)| plain(value));
    let mut names: Vec<String> = whole.chain(values).collect();
    let directories: Vec<String> = names.iter().filter(|name| !name.is_empty() && directory.join(name).is_dir()).cloned().collect();
    if runs(&["node", "nodejs", "bun"]) {
        names.extend(directories.iter().flat_map(|name| entry_files(directory, name)));
    }
    if runs(&["python", "pypy"]) {
        names.extend(directories.iter().filter_map(|name| Some(Path::new(name).join("__main__.py").to_str()?.to_owned())));
        let modules = all.windows(2).filter(|pair| pair[0] == "-m").map(|pair| pair[1].replace('.', "/"));
        let files = modules.flat_map(|name| [format!("{name}.py"), format!("{name}/__init__.py"), format!("{name}/__main__.py")]);
        names.extend(files);
    }
    names
}

/// Returns the name of a program without its directory and version: `python` for
/// `/usr/bin/python3.11`.
fn program_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Returns the files with which node(1) starts a directory.
fn entry_files(directory: &Path, name: &str) -> Vec<String> {
    let base = Path::new(name);
    let manifest = read_small_text(&directory.join(base).join("package.json")).unwrap_or_default();
    let main = crate::json::from_str::<serde_json::Value>(&manifest).ok().and_then(|it| it["main"].as_str().map(String::from));
    let files = ENTRY_FILES.into_iter().map(String::from).chain(main);
    files.filter_map(|file| base.join(file).to_str().map(String::from)).collect()
}

/// Returns a word without the variable that stands for the project.
fn plain(word: &str) -> String {
    if word == "$WORKSPACE" { ".".into() } else { word.replace("$WORKSPACE/", "") }
}

/// Returns the words of a line that may be names of files.
pub(crate) fn shell_words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || ";&|()<>\"'`".contains(c))
}
