//! Finds instruction files, such as AGENTS.md: the user's own file, the files of the project from
//! the repository root down to the session's directory, and in directories below it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::project_dirs::{ProjectDirs, read};
use crate::config::{DataPaths, Trust};
use crate::limits;

/// Maximum total size of all instruction files, in bytes.
const INSTRUCTIONS_BYTES_MAX: usize = 64 << 10;
/// Maximum number of instruction files, including those that others import.
const INSTRUCTION_FILES_MAX: usize = 64;
/// Maximum depth of imports in instruction files.
const IMPORT_DEPTH_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub path: PathBuf,
    pub text: String,
}

/// The result of a search for instruction files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundInstructions {
    pub taken: Vec<Instruction>,
    /// Files and directories that were ignored because another user owns them.
    pub foreign: Vec<PathBuf>,
    /// Imported files that were skipped.
    pub skipped: Vec<SkippedImport>,
}

/// A file that an instruction file imports and that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkippedImport {
    pub path: PathBuf,
    pub why: String,
}

/// Where instruction files are searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionSearch<'a> {
    pub cwd: &'a Path,
    /// Names of the project's files, relative to each directory.
    pub patterns: &'a [String],
    /// The directory of the user's AGENTS.md; `None` leaves it out.
    pub config: Option<&'a Path>,
    pub home: Option<&'a Path>,
    /// Where the list of trusted directories is; `None`: the project is trusted. The files of a
    /// trusted project may import files of the user.
    pub trust: Option<&'a DataPaths>,
}

/// The name of the user's own instruction file.
const USER_FILE: &str = "AGENTS.md";

impl InstructionSearch<'_> {
    /// Finds the user's own file, then the files named by the patterns in `cwd` and its ancestors,
    /// up to the directory that contains `.git`; without such a directory, only in `cwd`. The
    /// outermost files come first, so that the nearest files take precedence. Each file is followed
    /// by the files that it imports. A file that exceeds the size limits is truncated. Only regular
    /// files count, and symlinks that lead out of the repository are not followed. Files that
    /// another user owns in a world-writable directory, such as /tmp, are ignored, and so are the
    /// directories of other users, unless they are trusted.
    pub(crate) fn find(&self) -> FoundInstructions {
        self.read().found
    }

    fn read(&self) -> Reader<'_> {
        let project = ProjectDirs::new(self.cwd, self.trust);
        let found = FoundInstructions { foreign: project.foreign.clone(), ..FoundInstructions::default() };
        let left = INSTRUCTIONS_BYTES_MAX;
        let mut reader = Reader { search: self, dirs: project.dirs.clone(), project, seen: Vec::new(), left, found };
        let own = self.config.map(|config| config.join(USER_FILE));
        if let Some((own, real)) = own.and_then(|own| own.canonicalize().ok().map(|real| (own, real))) {
            reader.take(own, real, Importer::User, 0);
        }
        reader.take_dirs();
        reader
    }

    /// Finds the files of the directories below `cwd` that lead to `dir`, except those that
    /// [`InstructionSearch::find`] returns.
    pub(crate) fn below(&self, dir: &Path) -> FoundInstructions {
        let below = dir.ancestors().take_while(|dir| dir.starts_with(self.cwd) && *dir != self.cwd);
        let mut dirs: Vec<PathBuf> = below.map(PathBuf::from).collect();
        dirs.reverse();
        let has_files = |dir: &PathBuf| self.patterns.iter().any(|pattern| dir.join(pattern).exists());
        if !dirs.iter().any(has_files) {
            return FoundInstructions::default();
        }
        let mut reader = self.read();
        (reader.dirs, reader.left, reader.found) = (dirs, INSTRUCTIONS_BYTES_MAX, FoundInstructions::default());
        reader.take_dirs();
        reader.found
    }
}

/// The owner of a file that imports others.
#[derive(Clone, Copy, PartialEq)]
enum Importer {
    User,
    Project,
}

/// Reads instruction files within the size limits.
struct Reader<'a> {
    search: &'a InstructionSearch<'a>,
    project: ProjectDirs<'a>,
    /// The directories to search.
    dirs: Vec<PathBuf>,
    /// Real paths of the files that were read. One file under two names (CLAUDE.md as a link to
    /// AGENTS.md) is read once.
    seen: Vec<PathBuf>,
    /// The number of bytes that may still be read.
    left: usize,
    found: FoundInstructions,
}

impl Reader<'_> {
    fn take_dirs(&mut self) {
        for dir in std::mem::take(&mut self.dirs) {
            for path in self.search.patterns.iter().map(|pattern| dir.join(pattern)) {
                let Some(real) = self.project.inside(&path) else { continue };
                if self.project.is_foreign(&dir, &path, &real) {
                    self.found.foreign.push(path);
                } else {
                    self.take(path, real, Importer::Project, 0);
                }
            }
        }
    }

    /// Adds a file and the files that it imports.
    fn take(&mut self, path: PathBuf, real: PathBuf, importer: Importer, depth: usize) {
        if self.seen.contains(&real) || self.seen.len() >= INSTRUCTION_FILES_MAX {
            return;
        }
        let Some(text) = read(&real, self.left.min(limits::INSTRUCTION_BYTES_MAX)) else {
            if depth > 0 {
                self.found.skipped.push(SkippedImport { path, why: "it is blank, or cannot be read".into() });
            }
            return;
        };
        self.left -= text.len().min(self.left);
        let dir = real.parent().map(PathBuf::from).unwrap_or_default();
        self.seen.push(real);
        let imports = imports(&text);
        self.found.taken.push(Instruction { path, text });
        for name in imports {
            let path = match (name.strip_prefix("~/"), self.search.home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => dir.join(&name),
            };
            match self.importable(&path, importer, depth + 1) {
                Ok((real, owner)) => self.take(real.clone(), real, owner, depth + 1),
                // Other words, such as a name of a package, also begin with `@`.
                Err(_) if !path.exists() && path.extension().is_none_or(|extension| extension != "md") => {}
                Err(why) => self.found.skipped.push(SkippedImport { path, why: why.to_string() }),
            }
        }
    }

    /// Returns the real path of a file that may be imported: one of the repository, or a Markdown
    /// file of the user's configuration. The latter only if the user imports it or trusts the
    /// project. The error says why it is skipped.
    fn importable(&self, path: &Path, importer: Importer, depth: usize) -> Result<(PathBuf, Importer), Cow<'static, str>> {
        let real = path.canonicalize().map_err(|_| "it does not exist")?;
        if !real.is_file() {
            return Err("it is no file".into());
        }
        if depth > IMPORT_DEPTH_MAX {
            return Err(format!("imports are followed {IMPORT_DEPTH_MAX} levels deep").into());
        }
        if self.seen.len() >= INSTRUCTION_FILES_MAX && !self.seen.contains(&real) {
            return Err(format!("there are more than {INSTRUCTION_FILES_MAX} instruction files").into());
        }
        if importer == Importer::Project && real.starts_with(&self.project.root) {
            return match self.project.is_foreign(&self.project.root, &real, &real) {
                true => Err("another user owns it".into()),
                false => Ok((real, Importer::Project)),
            };
        }
        let home = self.search.home.into_iter().flat_map(|home| [home.join(".claude"), home.join(".agents")]);
        let mut own = home.chain(self.search.config.map(Into::into)).filter_map(|dir| dir.canonicalize().ok());
        if real.extension().is_none_or(|extension| extension != "md") || !own.any(|dir| real.starts_with(dir)) {
            return Err("it is outside of the project, and no Markdown file of your configuration".into());
        }
        let is_trusted = || self.search.trust.is_none_or(|places| Trust::load(places).covers(self.search.cwd));
        match importer == Importer::User || is_trusted() {
            true => Ok((real, Importer::User)),
            false => Err("it is a file of your configuration, and the project is not trusted: run `nuncio trust`".into()),
        }
    }
}

/// Returns the paths after `@` in the text, except in code: `@docs/style.md`.
fn imports(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut paths = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // The text outside of `code`.
        for piece in line.split('`').step_by(2) {
            let names = piece.split_whitespace().filter_map(|word| word.strip_prefix('@'));
            paths.extend(
                names
                    .map(|name| name.trim_end_matches(['.', ',', ';', ':', ')']))
                    .filter(|name| !name.is_empty())
                    .map(String::from),
            );
        }
    }
    paths
}
