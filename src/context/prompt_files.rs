//! Markdown files of slash commands and skills in the directories of the project and of the user.

use std::path::{Path, PathBuf};

use super::agent_definitions::at_line;
use super::frontmatter::Frontmatter;
use super::project_dirs::{ProjectDirs, read};
use crate::config::DataPaths;
use crate::limits;
use crate::workspace::one_line;

/// The directories in which files are searched: first the project's, then the user's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptDirs<'a> {
    pub cwd: &'a Path,
    /// Where the files of the user and the list of trusted directories are.
    pub places: &'a DataPaths,
}

/// Fields with which other programs restrict what the model may do while it follows a command or a
/// skill, by plain name. A file with one of them is skipped. `allowed-tools` is not one of them: it
/// allows calls without a question in other programs, and nothing here.
const RESTRICTING: &[&str] = &[
    "agent",
    "context",
    "disallowedtools",
    "hooks",
    "isolation",
    "mode",
    "permission",
    "permissionmode",
    "permissions",
    "readonly",
    "sandbox",
    "subtask",
    "tools",
];

/// A file with its front matter.
pub(super) struct PromptFile {
    pub name: String,
    pub path: PathBuf,
    pub content: Frontmatter,
}

impl PromptFile {
    /// Returns why the file is not used.
    fn restriction(&self) -> Option<String> {
        let restricts = |plain: &str| RESTRICTING.contains(&plain) || plain == "disablemodelinvocation";
        let named = || {
            let (_, name) = self.content.names().find(|(plain, _)| RESTRICTING.contains(plain))?;
            Some(at_line(&format!("the field {name} restricts the model, which is not supported"), self.content.line(name)))
        };
        let unread = || {
            let field = self.content.unread().find(|unread| unread.contains(restricts))?;
            Some(at_line(&format!("the field {} is not YAML: {}", field.name, field.why), Some(field.line)))
        };
        self.content.problem.clone().or_else(named).or_else(unread)
    }
}

/// The kind of files to search.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PromptFiles {
    /// `commands/NAME.md`; a file `DIR/NAME.md` has the name `DIR:NAME`.
    Commands,
    /// `skills/NAME/SKILL.md`.
    Skills,
}

/// The part of a path's metadata on which a list of files depends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Version {
    Content,
    /// Not the times: directories whose entries are searched one by one.
    Identity,
}

impl PromptDirs<'_> {
    /// Returns the files that are used, the nearest first. Of files with one name, the nearest
    /// counts.
    pub(super) fn files(&self, kind: PromptFiles) -> Vec<PromptFile> {
        self.all(kind).into_iter().filter(|file| file.restriction().is_none()).collect()
    }

    /// Returns why files are not used.
    pub(crate) fn skipped(&self) -> Vec<String> {
        let files = [PromptFiles::Commands, PromptFiles::Skills].into_iter().flat_map(|kind| self.all(kind));
        let reason = |file: PromptFile| {
            let why = file.restriction()?;
            Some(format!("{} is skipped: {why}", file.path.display()))
        };
        files.filter_map(reason).map(one_line).collect()
    }

    fn all(&self, kind: PromptFiles) -> Vec<PromptFile> {
        let project = ProjectDirs::new(self.cwd, Some(self.places));
        let mut files: Vec<PromptFile> = Vec::new();
        let mut add = |dir: PathBuf, top: Option<&Path>| {
            for path in entries(&dir, kind) {
                if files.len() >= limits::PROMPT_FILES_MAX {
                    return;
                }
                let real = match top {
                    Some(top) => project.inside(&path).filter(|real| !project.is_foreign(top, &path, real)),
                    None => path.canonicalize().ok(),
                };
                let file = real.and_then(|real| file(&dir, path, &real, kind));
                files.extend(file.filter(|file| !files.iter().any(|known| known.name == file.name)));
            }
        };
        for (dir, top) in self.folders(kind, &project) {
            add(dir, top);
        }
        files
    }

    /// Returns the directories in which files are searched, the nearest first: those of the
    /// project, each with the directory of the project that contains it, then those of the user.
    fn folders<'p>(&self, kind: PromptFiles, project: &'p ProjectDirs<'_>) -> Vec<(PathBuf, Option<&'p Path>)> {
        let (folder, tools): (_, &[&str]) = match kind {
            PromptFiles::Commands => ("commands", &[".nuncio", ".claude"]),
            PromptFiles::Skills => ("skills", &[".nuncio", ".claude", ".agents"]),
        };
        let of_project = project.dirs.iter().rev();
        let of_project = of_project.flat_map(|top| tools.iter().map(move |tool| (top.join(tool).join(folder), Some(&**top))));
        of_project.chain(self.user_dirs(folder, tools).into_iter().map(|dir| (dir, None))).collect()
    }

    /// Returns the paths on which the lists of files depend: the files, the directories in which
    /// they are searched, and what decides which directories these are.
    pub(super) fn searched_paths(&self) -> Vec<(PathBuf, Version)> {
        let project = ProjectDirs::new(self.cwd, Some(self.places));
        let mut paths = vec![(self.places.trusted(), Version::Content)];
        let is_root = |dir: &&Path| project.dirs.first().is_some_and(|root| root == dir && root.join(".git").exists());
        let above = self.cwd.ancestors().position(|dir| is_root(&dir)).map_or(usize::MAX, |root| root + 1);
        for dir in self.cwd.ancestors().take(above) {
            let git = dir.join(".git");
            let version = if git.is_dir() { Version::Identity } else { Version::Content };
            paths.extend([(git, version), (dir.to_path_buf(), Version::Identity)]);
        }
        for kind in [PromptFiles::Commands, PromptFiles::Skills] {
            for (folder, _) in self.folders(kind, &project) {
                let found = list(&folder).into_iter().flat_map(|path| match kind {
                    PromptFiles::Skills => vec![path.join("SKILL.md")],
                    PromptFiles::Commands if path.is_dir() => list(&path).into_iter().chain([path]).collect(),
                    PromptFiles::Commands => vec![path],
                });
                paths.extend(found.chain([folder.clone()]).map(|path| (path, Version::Content)));
            }
        }
        paths
    }

    fn user_dirs(&self, folder: &str, tools: &[&str]) -> Vec<PathBuf> {
        let home =
            self.places.home.iter().flat_map(|home| tools.iter().filter(|tool| **tool != ".nuncio").map(|tool| home.join(tool)));
        std::iter::once(self.places.config.clone()).chain(home).map(|dir| dir.join(folder)).collect()
    }

    /// Returns the directories of the user's skills, which tools may read.
    pub(crate) fn user_skills(&self) -> Vec<PathBuf> {
        self.user_dirs("skills", &[".claude", ".agents"])
    }
}

/// Returns the entries of a directory, sorted by path.
fn list(dir: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = read.take(limits::PROMPT_FILES_MAX).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the files below `dir`, sorted by path.
fn entries(dir: &Path, kind: PromptFiles) -> Vec<PathBuf> {
    match kind {
        PromptFiles::Skills => list(dir).into_iter().map(|dir| dir.join("SKILL.md")).filter(|path| path.is_file()).collect(),
        PromptFiles::Commands => {
            let below = |path: PathBuf| if path.is_dir() { list(&path) } else { vec![path] };
            let is_file = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md") && path.is_file();
            list(dir).into_iter().flat_map(below).filter(is_file).collect()
        }
    }
}

fn file(dir: &Path, path: PathBuf, real: &Path, kind: PromptFiles) -> Option<PromptFile> {
    let text = read(real, limits::INSTRUCTION_BYTES_MAX)?;
    let name = match kind {
        PromptFiles::Commands => path.strip_prefix(dir).ok()?.with_extension("").to_str()?.replace('/', ":"),
        PromptFiles::Skills => path.parent()?.file_name()?.to_str()?.to_string(),
    };
    let valid = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ':' | '.');
    name.chars().all(valid).then(|| PromptFile { name, path, content: Frontmatter::parse(&text) })
}
