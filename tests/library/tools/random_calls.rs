//! Random calls of all tools that access files, while another thread edits files, renames them and
//! replaces them with links to the outside.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use super::World;
use harness::{Random, random_cases};

const CALLS: u32 = 2_000;
const FILES: [&str; 6] = ["a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "g/h.txt", "g/i/j/k.txt"];
const DIRECTORIES: [&str; 4] = ["d", "d/e", "g", "g/i"];

/// The content of a complete file: the first and the last line have the same number.
fn content(number: u64) -> String {
    format!("begin {number}\n{}middle\nend {number}\n", "line\n".repeat(number as usize % 50))
}

fn is_whole(text: &str) -> bool {
    let mut lines = text.lines();
    let first = lines.next().and_then(|line| line.strip_prefix("begin "));
    let last = lines.next_back().and_then(|line| line.strip_prefix("end "));
    first.is_some() && first == last
}

/// All entries below `directory`; links are not followed.
fn below(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            found.insert(path.clone(), "a directory".into());
            found.extend(below(&path));
        } else if kind.is_file() {
            found.insert(path.clone(), String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned());
        } else {
            found.insert(path.clone(), format!("-> {}", std::fs::read_link(&path).unwrap().display()));
        }
    }
    found
}

/// Makes one random change below `work`, as another program or an attacker could.
fn change_randomly(work: &Path, outside: &Path, chance: &mut Random, count: u64) {
    let file = work.join(FILES[chance.below(FILES.len() as u64) as usize]);
    let directory = work.join(DIRECTORIES[chance.below(DIRECTORIES.len() as u64) as usize]);
    let aside = work.join(format!("aside-{}", chance.below(4)));
    // This function does not follow the links that it creates, so it changes no file outside.
    let real =
        |path: &Path| path.parent().and_then(|parent| parent.canonicalize().ok()).is_some_and(|parent| parent.starts_with(work));
    if !real(&file) || !real(&directory) {
        drop(std::fs::remove_file(work.join("d")).and(std::fs::remove_file(work.join("g"))));
        return;
    }
    // A change may fail because of an earlier change.
    let _ = match chance.below(8) {
        0 | 1 => {
            let new = work.join("new");
            std::fs::write(&new, content(count)).and_then(|()| std::fs::rename(&new, &file))
        }
        2 => std::fs::rename(&file, &aside),
        3 => std::fs::rename(&directory, &aside),
        4 => std::fs::rename(&directory, &aside).and_then(|()| symlink(outside, &directory)),
        5 => std::fs::remove_file(&file).and_then(|()| symlink(outside.join("kept.txt"), &file)),
        6 => std::fs::remove_file(&directory).and_then(|()| std::fs::create_dir(&directory)),
        _ => std::fs::rename(&aside, &directory),
    };
    if chance.below(4) == 0 {
        for directory in DIRECTORIES.iter().chain(["g/i/j"].iter()).map(|directory| work.join(directory)) {
            let _ = real(&directory).then(|| std::fs::create_dir(&directory));
        }
    }
}

fn call(chance: &mut Random, count: u64) -> (&'static str, Value) {
    let file = FILES[chance.below(FILES.len() as u64) as usize];
    let path = match chance.below(6) {
        0 => format!("d/../{file}"),
        1 => format!("./{file}/"),
        2 => format!("g//..//{file}"),
        _ => file.into(),
    };
    match chance.below(16) {
        0..=3 => ("write", json!({ "file_path": path, "content": content(count) })),
        4..=6 => ("edit", json!({ "file_path": path, "old_string": "middle", "new_string": format!("middle\nline {count}") })),
        7 => {
            let hunk = format!("@@\n-middle\n+middle\n+line {count}\n");
            let patch = format!("*** Begin Patch\n*** Update File: {path}\n{hunk}*** Update File: a.txt\n{hunk}*** End Patch\n");
            ("apply_patch", json!({ "patch": patch }))
        }
        8 => ("edit", json!({ "file_path": path, "old_string": "line\n", "new_string": "", "replace_all": true })),
        9..=11 => ("read", json!({ "file_path": path })),
        12 => ("glob", json!({ "pattern": "**/*.txt" })),
        13 => ("grep", json!({ "pattern": "begin|secret" })),
        14 => ("list", json!({ "depth": 5 })),
        _ if count.is_multiple_of(16) => ("bash", json!({ "command": "cat a.txt; ls -R | head -50" })),
        _ => ("grep", json!({ "pattern": "secret", "path": "d" })),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outside_files_stay_unchanged_and_inside_files_complete() {
    let files: Vec<(&str, String)> = FILES.iter().map(|path| (*path, content(1))).collect();
    let world = World::with_files(&files.iter().map(|(path, content)| (*path, content.as_str())).collect::<Vec<_>>());
    let outside = world.directory.path().join("outside");
    for path in ["kept.txt", "c.txt", "h.txt", "f.txt", "e/f.txt", "i/j/k.txt"] {
        let path = outside.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "secret").unwrap();
    }
    let before = below(&outside);
    let calls = u64::from(random_cases("calls", CALLS));
    let mut chance = Random::new();
    let mut other = chance.another();
    let (stop, meddled) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut ran, mut went_well) = (0, 0);
    let work = world.path("");
    std::thread::scope(|scope| {
        let (stop, meddled, work, outside) = (&stop, &meddled, &work, &outside);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                change_randomly(work, outside, &mut other, meddled.fetch_add(1, Ordering::Relaxed));
            }
        });
        let walk = async {
            for count in 0..calls {
                let (name, input) = call(&mut chance, count);
                let prepared = world.tools.prepare(name, input.clone(), &world.context).unwrap();
                // Calls with a path outside require permission, which is not granted here.
                if prepared.resolved.iter().any(|placed| !placed.inside) {
                    continue;
                }
                ran += 1;
                let told = prepared.run(&world.context).await;
                went_well += u64::from(told.is_ok());
                if let Ok(output) = &told {
                    let text = nuncio::content::plain_text(&output.parts);
                    assert!(name == "bash" || !text.contains("secret"), "{name} {input}: {text}");
                }
            }
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(walk));
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(below(&outside), before);
    for (path, text) in below(&work) {
        if path.is_file() && !path.is_symlink() {
            assert!(is_whole(&text), "{}: {text}", path.display());
            assert!(!path.to_string_lossy().contains(".nuncio-"), "{} was left", path.display());
        }
    }
    let meddled = meddled.load(Ordering::Relaxed);
    assert!(ran > calls / 4 && went_well > calls / 10 && meddled > calls, "{ran} ran, {went_well} well, {meddled} times meddled");
}
