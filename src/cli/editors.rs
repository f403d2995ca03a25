//! `nuncio config editor`: the settings with which an editor starts this program. The snippets are
//! the files in `editors/`, which start `nuncio` from PATH.

pub(super) mod json_text;

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::json_text::{parse, with_member};
use crate::app::Bootstrap;
use crate::cli::terminal::output::print;
use crate::config::Environment;
use crate::error::{Error, Result};
use crate::workspace::{read_small_text, real_path};

/// An editor, or a plugin of one.
struct Editor {
    name: &'static str,
    snippet: &'static str,
    /// Text of the snippet that names the program. The path of this program replaces `nuncio`.
    program: &'static str,
    directory: Directory,
    /// The file that `--write` changes, relative to the directory.
    file: &'static str,
    format: Format,
}

/// The directory with the configuration of an editor.
#[derive(Clone, Copy)]
enum Directory {
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    Config,
    /// Neovim's directory in `Config`, which `NVIM_APPNAME` can name.
    Neovim,
    /// `~/.emacs.d` if it exists, else `Config/emacs` if that exists, as in Emacs.
    Emacs,
}

/// How the snippet gets into the editor's configuration.
#[derive(Clone, Copy)]
enum Format {
    /// The value at `entry` is merged into a JSON file. If the file already has an object there,
    /// only its `command` is set: the user may have added arguments and environment variables.
    Json { entry: &'static [&'static str] },
    /// The file is nuncio's own. The user adds the line `load` to `loader`, with the path for FILE.
    Script { loader: &'static str, load: &'static str, hint: &'static str },
}

const AGENT_SERVER: Format = Format::Json { entry: &["agent_servers", "nuncio"] };
const LUA: Format = Format::Script {
    loader: "init.lua",
    load: "dofile(FILE)",
    hint: "It calls the plugin's setup: merge your own call of setup into it.",
};

/// Creates the entry of VS Code, or of an editor that is built from it.
const fn vscode(name: &'static str, file: &'static str) -> Editor {
    Editor {
        name,
        snippet: include_str!("../../editors/vscode.json"),
        program: "\"nuncio.command\": \"nuncio\"",
        directory: Directory::Config,
        file,
        format: Format::Json { entry: &["nuncio.command"] },
    }
}

const EDITORS: &[Editor] = &[
    Editor {
        name: "zed",
        snippet: include_str!("../../editors/zed/settings.json"),
        program: "\"command\": \"nuncio\"",
        directory: Directory::Config,
        file: "zed/settings.json",
        format: AGENT_SERVER,
    },
    Editor {
        name: "jetbrains",
        snippet: include_str!("../../editors/jetbrains/acp.json"),
        program: "\"command\": \"nuncio\"",
        directory: Directory::Home,
        file: ".jetbrains/acp.json",
        format: AGENT_SERVER,
    },
    vscode("vscode", "Code/User/settings.json"),
    vscode("vscodium", "VSCodium/User/settings.json"),
    vscode("cursor", "Cursor/User/settings.json"),
    vscode("windsurf", "Windsurf/User/settings.json"),
    Editor {
        name: "codecompanion",
        snippet: include_str!("../../editors/nvim/codecompanion.lua"),
        program: "default = { \"nuncio\"",
        directory: Directory::Neovim,
        file: "nuncio/codecompanion.lua",
        format: LUA,
    },
    Editor {
        name: "avante",
        snippet: include_str!("../../editors/nvim/avante.lua"),
        program: "command = \"nuncio\"",
        directory: Directory::Neovim,
        file: "nuncio/avante.lua",
        format: LUA,
    },
    Editor {
        name: "agentic",
        snippet: include_str!("../../editors/nvim/agentic.lua"),
        program: "command = \"nuncio\"",
        directory: Directory::Neovim,
        file: "nuncio/agentic.lua",
        format: LUA,
    },
    Editor {
        name: "emacs",
        snippet: include_str!("../../editors/emacs/nuncio.el"),
        program: "'(\"nuncio\"",
        directory: Directory::Emacs,
        file: "nuncio.el",
        format: Format::Script { loader: "init.el", load: "(load FILE)", hint: "It needs agent-shell." },
    },
];

/// Names for `nuncio config editor`.
pub(in crate::cli) fn names() -> impl Iterator<Item = &'static str> {
    EDITORS.iter().map(|editor| editor.name)
}

/// Prints the snippet of an editor. With `write`, merges it into that file instead, or into the
/// editor's own file if the option has no value.
pub(in crate::cli) fn run(bootstrap: &Bootstrap, name: &str, write: Option<Option<PathBuf>>) -> Result<()> {
    let editor = EDITORS.iter().find(|editor| editor.name == name);
    let editor = editor.ok_or_else(|| Error::invalid_params(format!("unknown editor \"{name}\"")))?;
    let snippet = editor.snippet_for(&this_program()?)?;
    let Some(file) = write else { return print(snippet) };
    let file = match file {
        Some(file) => bootstrap.cwd.join(file),
        None => editor.directory.path(&bootstrap.environment)?.join(editor.file),
    };
    let before = match read_small_text(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io(format_args!("reading {}", file.display()), error)),
    };
    let text = match editor.format {
        Format::Json { entry } => merged(before.as_deref().unwrap_or_default(), &snippet, entry, &file)?,
        Format::Script { .. } => snippet,
    };
    let report = match before {
        Some(before) if before == text => format!("{} already starts this nuncio\n", file.display()),
        Some(_) => format!("wrote {}\nthe file as it was: {}\n", file.display(), replace(&file, &text)?.display()),
        None => {
            create(&file, &text)?;
            format!("wrote {}\n", file.display())
        }
    };
    print(report)?;
    if let Format::Script { loader, load, hint } = editor.format {
        let load = load.replace("FILE", &format!("\"{}\"", quoted(&file)?));
        print(format!("add this line to your {loader}: {load}\n{hint}\n"))?;
    }
    Ok(())
}

impl Editor {
    fn snippet_for(&self, program: &Path) -> Result<String> {
        let command = self.program.replace("\"nuncio\"", &format!("\"{}\"", quoted(program)?));
        Ok(self.snippet.replacen(self.program, &command, 1))
    }
}

impl Directory {
    fn path(self, environment: &Environment) -> Result<PathBuf> {
        let home = || {
            let home = environment.get("HOME").map(PathBuf::from);
            home.ok_or_else(|| Error::invalid_params("HOME is not set").hint("give the file: --write FILE"))
        };
        let config = || match environment.get("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(path) => Ok(path),
            None => home().map(|home| home.join(".config")),
        };
        match self {
            Directory::Home => home(),
            Directory::Config => config(),
            Directory::Neovim => Ok(config()?.join(environment.get("NVIM_APPNAME").unwrap_or("nvim"))),
            Directory::Emacs => {
                let (first, second) = (home()?.join(".emacs.d"), config()?.join("emacs"));
                Ok(if !first.is_dir() && second.is_dir() { second } else { first })
            }
        }
    }
}

fn this_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::io("finding this program", error))
}

/// Escapes a path for a string in double quotes. JSON, Lua and Emacs Lisp agree on `\\` and `\"`.
fn quoted(path: &Path) -> Result<String> {
    match path.to_str().filter(|path| !path.contains(char::is_control)) {
        Some(path) => Ok(path.replace('\\', "\\\\").replace('"', "\\\"")),
        None => Err(Error::invalid_params(format!("{} cannot be written into settings", path.display()))),
    }
}

/// Merges the value at `entry` of the snippet into the text of a JSON file. Fails if the result
/// would differ from the old settings in anything else.
fn merged(before: &str, snippet: &str, entry: &[&'static str], file: &Path) -> Result<String> {
    let unsafe_edit = || {
        let message = format!("{} cannot be merged safely: it is not an object of JSON settings", file.display());
        Error::invalid_params(message).hint("add the snippet in an editor: without --write, it is printed")
    };
    let new = parse(snippet).ok_or_else(|| Error::internal("a snippet is not JSON"))?;
    if before.trim().is_empty() {
        return Ok(format!("{new:#}\n"));
    }
    let old = parse(before).filter(Value::is_object).ok_or_else(unsafe_edit)?;
    let at = |value: &Value, path: &[&str]| path.iter().try_fold(value.clone(), |value, name| value.get(*name).cloned());
    let path = match at(&old, entry) {
        Some(Value::Object(_)) => [entry, &["command"]].concat(),
        _ => entry.to_vec(),
    };
    let value = at(&new, &path).ok_or_else(|| Error::internal("a snippet has no command"))?;
    let text = with_member(before, &path, &value).ok_or_else(unsafe_edit)?;
    let expected = with_value(old, &path, value).ok_or_else(unsafe_edit)?;
    if parse(&text).as_ref() != Some(&expected) {
        return Err(unsafe_edit());
    }
    Ok(text)
}

/// Sets a value in an object. `None` if a value on the path is not an object.
fn with_value(mut object: Value, path: &[&str], value: Value) -> Option<Value> {
    let (name, rest) = path.split_first()?;
    let members = object.as_object_mut()?;
    let value = match rest {
        [] => value,
        rest => with_value(members.get(*name).cloned().unwrap_or_else(|| Value::Object(Default::default())), rest, value)?,
    };
    members.insert((*name).to_owned(), value);
    Some(object)
}

/// Creates a file and its directories.
fn create(file: &Path, text: &str) -> Result<()> {
    let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, text));
    written.map_err(|error| Error::io(format_args!("writing {}", file.display()), error))
}

/// Replaces a file, or the file to which a link leads, atomically. Returns the path of a copy of
/// the old file.
fn replace(file: &Path, text: &str) -> Result<PathBuf> {
    let failed = |error| Error::io(format_args!("writing {}", file.display()), error);
    let file = &real_path(file);
    let (backup, _) = new_file(file, "backup").map_err(failed)?;
    fs::copy(file, &backup).map_err(failed)?;
    let (temporary, _) = new_file(file, "new").map_err(failed)?;
    let permissions = fs::metadata(file).map_err(failed)?.permissions();
    let written = fs::set_permissions(&temporary, permissions)
        .and_then(|()| fs::write(&temporary, text))
        .and_then(|()| File::open(&temporary)?.sync_all())
        .and_then(|()| fs::rename(&temporary, file));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(failed(error));
    }
    Ok(backup)
}

/// Creates a file next to another one, with a name that no other file has: `FILE.KIND-1`, `-2`, ….
fn new_file(file: &Path, kind: &str) -> std::io::Result<(PathBuf, File)> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut number = 1;
    loop {
        let path = file.with_file_name(format!("{name}.{kind}-{number}"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            opened => return opened.map(|file| (path, file)),
        }
    }
}
