//! The program under test, and the files of its project.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

/// Whether the program uses the calls of POSIX in place of those of Linux (`NUNCIO_POSIX=1`).
pub const POSIX: bool = cfg!(posix);

/// Returns the path of the program: `NUNCIO_TEST_BINARY`, or the one next to the directory of this
/// test.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let path = match std::env::var_os("NUNCIO_TEST_BINARY") {
            Some(path) => std::fs::canonicalize(&path).unwrap_or_else(|error| panic!("NUNCIO_TEST_BINARY {path:?}: {error}")),
            None => current_program("", "cargo build, with the profile and the target of this test"),
        };
        path.into_os_string().into_string().unwrap()
    });
    &PROGRAM
}

/// Returns the program in a directory that is relative to the one of this profile. Panics if it is
/// older than one of its sources, because Cargo does not build it for a test of another package.
pub fn current_program(directory: &str, build: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join(directory).join("nuncio");
    let built = modified(&path).unwrap_or_else(|| panic!("there is no program {}: run {build}", path.display()));
    if let Some(source) = sources(&path).into_iter().find(|source| modified(source).is_none_or(|changed| changed > built)) {
        panic!("the program {} is older than {}: run {build}", path.display(), source.display());
    }
    path
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// Returns the sources of the program: the files in `src`, and those that Cargo lists next to the
/// program. `cargo test` builds the program without writing that list.
fn sources(program: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let (_, listed) = listed.split_once(": ").unwrap_or_default();
    // A space in a path is escaped.
    let listed = listed.replace("\\ ", "\0");
    let listed = listed.split_whitespace().map(|path| PathBuf::from(path.replace('\0', " ")));
    // A file that was removed since the list was written is no source any more.
    let mut sources: Vec<PathBuf> = listed.filter(|path| !path.starts_with(package("src")) && path.exists()).collect();
    sources.push(package("Cargo.toml"));
    let mut directories = vec![package("src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let found = if entry.file_type().unwrap().is_dir() { &mut directories } else { &mut sources };
            found.push(entry.path());
        }
    }
    sources
}

/// Returns the path of a file of the project.
pub fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join(path)
}
