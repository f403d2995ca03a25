//! Markdown files of slash commands and skills in the directories of the project and of the user.

use std::path::{Path, PathBuf};

use super::frontmatter::Frontmatter;
use super::project_dirs::{ProjectDirs, read};
use crate::config::DataPaths;
use crate::limits;

/// Where the files are searched: the directories of the project, then those of the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptDirs<'a> {
    pub cwd: &'a Path,
    /// Where the files of the user and the list of trusted directories are.
    pub places: &'a DataPaths,
}

/// A file with its front matter.
pub(super) struct PromptFile {
    pub name: String,
    pub path: PathBuf,
    pub content: Frontmatter,
}

/// The kind of files to search.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PromptFiles {
    /// `commands/NAME.md`; a file `DIR/NAME.md` has the name `DIR:NAME`.
    Commands,
    /// `skills/NAME/SKILL.md`.
    Skills,
}

impl PromptDirs<'_> {
    /// Returns the files, the nearest first: a later file with a name that is taken is left out.
    pub(super) fn files(&self, kind: PromptFiles) -> Vec<PromptFile> {
        let project = ProjectDirs::of(self.cwd, Some(self.places));
        let (folder, tools): (_, &[&str]) = match kind {
            PromptFiles::Commands => ("commands", &[".nuncio", ".claude"]),
            PromptFiles::Skills => ("skills", &[".nuncio", ".claude", ".agents"]),
        };
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
        for top in project.dirs.iter().rev() {
            tools.iter().for_each(|tool| add(top.join(tool).join(folder), Some(top)));
        }
        self.user_dirs(folder, tools).into_iter().for_each(|dir| add(dir, None));
        files
    }

    fn user_dirs(&self, folder: &str, tools: &[&str]) -> Vec<PathBuf> {
        let home =
            self.places.home.iter().flat_map(|home| tools.iter().filter(|tool| **tool != ".nuncio").map(|tool| home.join(tool)));
        std::iter::once(self.places.config.clone()).chain(home).map(|dir| dir.join(folder)).collect()
    }

    /// The directories of the user's skills, which tools may read.
    pub(crate) fn user_skills(&self) -> Vec<PathBuf> {
        self.user_dirs("skills", &[".claude", ".agents"])
    }
}

/// Returns the files below `dir`, sorted by path.
fn entries(dir: &Path, kind: PromptFiles) -> Vec<PathBuf> {
    let list = |dir: &Path| {
        let read = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = read.take(limits::PROMPT_FILES_MAX).map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
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
