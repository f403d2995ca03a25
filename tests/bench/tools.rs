//! Benchmarks of the tools on many files and on large files, in a generated tree, compared with
//! ripgrep if it is installed. Prints a table.
//!
//! The time of a tool covers preparation, run and result, in this process. The time of ripgrep
//! covers the whole process, with its output discarded. The runs alternate, on a warm cache; the
//! table contains medians.

#![allow(clippy::print_stdout)]

#[path = "process.rs"]
mod measured;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio::event::HookEvent;
use nuncio::id::ToolCallId;
use nuncio::internal::config::HookSettings;
use nuncio::internal::documents::{self, DocumentKind};
use nuncio::internal::hooks::{CommandHook, Hook, HookRequest, HookTool};
use nuncio::internal::options::{Mode, OptionValue};
use nuncio::internal::process::{self, ProcessLauncher, Sandbox};
use nuncio::internal::toolkit::{Shell, ToolContext, ToolOutput};
use nuncio::internal::tools::Tools;
use nuncio::internal::workspace::Workspace;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const FILES: usize = 50_000;
const ROUNDS: usize = 11;

struct World {
    runtime: Runtime,
    tools: Tools,
    context: ToolContext,
    /// Parent directory of all trees.
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let workspace = Arc::new(Workspace::new(directory.path(), [], &directory.path().join("artifacts")));
        let context =
            ToolContext::new(workspace.clone(), Arc::new(Shell::new(&workspace)), ProcessLauncher::new(measured::binary()));
        World { runtime: Runtime::new().expect("a runtime"), tools: Tools::native(), context, directory }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.directory.path().join(path)
    }

    fn call(&self, name: &str, input: &Value) -> (Duration, ToolOutput) {
        let begun = Instant::now();
        let output = self.runtime.block_on(async {
            let prepared = self.tools.prepare(name, input.clone(), &self.context).expect("a good input");
            prepared.run(&self.context).await.unwrap_or_else(|error| panic!("{name}: {error}"))
        });
        (begun.elapsed(), output)
    }

    /// Prints the median of the tool, and of ripgrep with `arguments` in the same tree.
    fn beside(&self, name: &str, input: &Value, arguments: &[&str]) -> (f64, Option<f64>) {
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..=ROUNDS {
            own.push(milliseconds(self.call(name, input).0));
            theirs.extend(ripgrep(&self.path("tree"), arguments));
        }
        // The first run of each warms the cache.
        (median(&own[1..]), (theirs.len() > 1).then(|| median(&theirs[1..])))
    }
}

fn ripgrep(tree: &Path, arguments: &[&str]) -> Option<f64> {
    let begun = Instant::now();
    let mut command = Command::new("rg");
    command.args(arguments).current_dir(tree).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok().map(|_| milliseconds(begun.elapsed()))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn row(what: &str, measured: &str, goal: &str) {
    println!("| {what} | {measured} | {goal} |");
}

fn compared((own, theirs): (f64, Option<f64>)) -> String {
    match theirs {
        Some(theirs) => format!("{own:.0} ms; rg {theirs:.0} ms: {:.2} ×", own / theirs),
        None => format!("{own:.0} ms; ripgrep is not installed"),
    }
}

/// Generates Rust source with references to other generated files.
fn source(number: usize, functions: usize) -> String {
    let mut text = format!("//! File {number}.\n\npub struct Thing{number} {{\n    value: u64,\n}}\n\n");
    for function in 0..functions {
        let other = (number * 31 + function * 17) % 2_000;
        let _ = write!(
            text,
            "/// Computes part {function} of {number}.\npub fn compute_{number}_{function}(input: u64, other: &Thing{other}) -> u64 {{\n    let scaled = \
             input.wrapping_mul({function} + 3);\n    if scaled > 1000 {{\n        return compute_{other}_0(scaled, other);\n    }}\n    scaled + \
             other.value\n}}\n\n"
        );
    }
    text
}

/// 500 directories of 100 files, half of them Rust, about 150 MB. Three files contain the rare
/// word, and a tenth of the files is ignored.
fn make_tree(root: &Path) {
    fs::create_dir_all(root).expect("a tree");
    fs::write(root.join(".gitignore"), "ignored/\n*.tmp\n").expect("a file");
    for number in 0..FILES {
        let place = if number % 1_000 < 100 { "ignored" } else { "kept" };
        let directory = root.join(format!("{place}/{:03}/{:02}", number / 1_000, number / 100 % 10));
        if number % 100 == 0 {
            fs::create_dir_all(&directory).expect("a directory");
        }
        let ending = ["rs", "py", "rs", "md"][number % 4];
        let mut text = source(number, 4 + number % 12);
        if number % 20_000 == 777 {
            text.push_str("// a_rare_word_indeed\n");
        }
        fs::write(directory.join(format!("file_{number}.{ending}")), text).expect("a file");
    }
}

fn search(world: &World) {
    make_tree(&world.path("tree"));
    let rare = json!({"pattern": "a_rare_word_indeed", "path": "tree"});
    row("grep, a rare word", &compared(world.beside("grep", &rare, &["-n", "a_rare_word_indeed"])), "≤ 1.1 × rg");
    let common = json!({"pattern": r"fn \w+\(input", "path": "tree"});
    row("grep, a common regex, capped", &compared(world.beside("grep", &common, &["-n", r"fn \w+\(input"])), "≤ 1.1 × rg");
    let nothing = json!({"pattern": r"[a-z]+_nowhere_[0-9]+", "path": "tree"});
    row("grep, a regex that nothing matches", &compared(world.beside("grep", &nothing, &["-n", r"[a-z]+_nowhere_[0-9]+"])), "");
    let glob = json!({"pattern": "**/*.rs", "path": "tree"});
    row(
        "glob `**/*.rs`, newest first",
        &compared(world.beside("glob", &glob, &["--files", "-g", "**/*.rs"])),
        "≤ 1.1 × rg --files -g",
    );
}

/// Peak resident memory of this process since [`forget_peak`] (see proc(5)).
fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}

fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("/proc");
}

fn large(world: &World) {
    let path = world.path("large.txt");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).expect("a file"));
    let mut lines = 0;
    for _ in 0..16_384 {
        for _ in 0..1_024 {
            lines += 1;
            writeln!(file, "{lines:012} the quick brown fox jumps over the lazy dog: {lines:x}").expect("written");
        }
    }
    drop(file);
    let bytes = fs::metadata(&path).expect("a file").len();
    let input = json!({"file_path": "large.txt", "offset": lines / 2, "limit": 2_000});
    forget_peak();
    let times: Vec<f64> = (0..5).map(|_| milliseconds(world.call("read", &input).0)).collect();
    let measured = format!("{:.0} ms; {:.1} MiB ({} MB)", median(&times), peak_mib(), bytes / 1_000_000);
    row("read of 2,000 lines in the middle of 1 GB", &measured, "≤ 600 ms; ≤ 40 MiB");
    fs::remove_file(path).expect("removed");
}

fn map(world: &World) {
    let root = world.path("sources");
    for number in 0..2_000 {
        let directory = root.join(format!("part_{:02}", number / 50));
        fs::create_dir_all(&directory).expect("a directory");
        fs::write(directory.join(format!("file_{number}.rs")), source(number, 20)).expect("a file");
    }
    let input = json!({"path": "sources"});
    let (first, output) = world.call("repo_map", &input);
    let mut again = Vec::new();
    for round in 0..ROUNDS {
        fs::write(root.join("part_07/file_350.rs"), source(350, 20 + round)).expect("a file");
        again.push(milliseconds(world.call("repo_map", &input).0));
    }
    let measured =
        format!("{:.0} ms; {:.0} ms ({} definitions)", milliseconds(first), median(&again), output.details["definitions"]);
    row("repo_map of 2,000 source files, first; after one edit", &measured, "≤ 3,000 ms; ≤ 100 ms");
}

fn edit(world: &World) {
    let line = |number: usize| format!("    let value_{number} = compute({number});\n");
    let large: String = (0..1_300_000).map(line).collect();
    let small: String = (0..28_000).map(line).collect();
    let time = |file: &str, text: &str, input: &Value| {
        let times = (0..5).map(|_| {
            fs::write(world.path(file), text).expect("a file");
            world.call("read", &json!({"file_path": file, "limit": 1}));
            milliseconds(world.call("edit", input).0)
        });
        median(&times.collect::<Vec<f64>>())
    };
    let exact = json!({"file_path": "50mb.rs", "old_string": "value_1234567 =", "new_string": "other ="});
    let exact = time("50mb.rs", &large, &exact);
    row("edit in a 50 MB file", &format!("{exact:.0} ms ({} MB)", large.len() / 1_000_000), "≤ 300 ms");
    let block = "let value_20000 = compute(20000);\nlet valeu_20001 = compte(20001);\nlet value_20002 = compute(20002);\n";
    let block = json!({"file_path": "1mb.rs", "old_string": block, "new_string": "done();\n"});
    let block = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| time("1mb.rs", &small, &block)));
    let measured = block.map_or_else(|_| "not found".to_owned(), |block| format!("{block:.0} ms"));
    row("… in a 1 MB file with a block anchor", &measured, "≤ 50 ms");
}

fn bash(world: &mut World) {
    let time = |world: &World| {
        let times = (0..100).map(|_| milliseconds(world.call("bash", &json!({"command": "true"})).0));
        median(&times.collect::<Vec<f64>>())
    };
    let open = time(world);
    let (writable, temp) = (world.context.workspace.roots.clone(), world.context.shell.temp().to_owned());
    world.context.sandbox = Some(Sandbox { writable, temp, network: false, required: true, ..Sandbox::default() });
    let confined = time(world);
    row("bash `true`; in the sandbox", &format!("{open:.1} ms; {confined:.1} ms"), "≤ 4 ms; ≤ 8 ms");
    let linked = tempfile::tempdir().expect("a directory");
    let top = world.directory.path();
    let worktree = |name: &str| format!("git worktree add --quiet '{}'", linked.path().join(name).display());
    let commit = "git -c user.name=n -c user.email=e commit --quiet --allow-empty -m one".to_owned();
    for line in ["git init --quiet .".to_owned(), commit, worktree("one"), worktree("two")] {
        let made = Command::new("sh").args(["-c", &line]).current_dir(top).status().expect("git");
        assert!(made.success(), "{line}");
    }
    let in_repository = time(world);
    fs::remove_dir_all(top.join(".git")).expect("the repository");
    let again = time(world);
    world.context.sandbox = None;
    let without = (confined + again) / 2.0;
    let above = format!("{in_repository:.1} ms, above: {:.2} ms", in_repository - without);
    row("… in a git repository with two linked worktrees", &above, "above ≤ 0.5 ms");
}

/// A hook that does nothing, compared with the same program started directly by this process.
fn hook(world: &World) {
    let cwd = world.directory.path().to_path_buf();
    let settings = HookSettings {
        event: HookEvent::ToolExecuteBefore,
        r#match: None,
        command: vec!["true".into()],
        cwd: None,
        timeout_ms: 5_000,
        on_failure: None,
        project: None,
    };
    let hook = CommandHook::new(&settings, cwd.clone(), &[], world.context.launcher.clone());
    let input = json!({"file_path": "file.txt"});
    let tool = HookTool { tool_call_id: ToolCallId::new(), name: "read".into(), input, status: None, output: None, parts: None };
    let request = HookRequest {
        hook_event: HookEvent::ToolExecuteBefore,
        session_id: None,
        turn_id: None,
        cwd: cwd.clone(),
        mode: OptionValue::Known(Mode::Ask),
        model: None,
        tool: Some(tool),
        system: None,
        messages: None,
        compaction: None,
    };
    let cancel = CancellationToken::new();
    let (mut hooks, mut launched, mut direct) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..100 {
        let begun = Instant::now();
        world.runtime.block_on(hook.run(&request, &cancel)).expect("a hook without effect");
        hooks.push(milliseconds(begun.elapsed()));
        let begun = Instant::now();
        let command = process::Command::program(["true"], &cwd);
        world.runtime.block_on(async { world.context.launcher.spawn(&command).expect("a child").wait().await }).expect("ended");
        launched.push(milliseconds(begun.elapsed()));
        let begun = Instant::now();
        Command::new("true").current_dir(&cwd).status().expect("a process");
        direct.push(milliseconds(begun.elapsed()));
    }
    let measured = format!("{:.2} ms; {:.2} ms; {:.2} ms", median(&hooks), median(&launched), median(&direct));
    row("hook `true`; supervised process; plain process", &measured, "hook ≤ supervised process + 1 ms");
}

/// A page of 1 MB, read in this process and in a reader. The runs alternate.
fn page(world: &World) {
    let section = |number: usize| {
        let items: String = (0..8).map(|item| format!("<li>item <b>{item}</b> of <a href='/{number}'>list</a></li>")).collect();
        let words = "the quick brown fox jumps over the lazy dog ".repeat(8);
        format!("<section><h2>Section {number}</h2><p class='text'>{words}</p><ul>{items}</ul></section>")
    };
    let page = format!("<!DOCTYPE html><body>{}", (0..1_200).map(section).collect::<String>());
    let (mut here, mut apart) = (Vec::new(), Vec::new());
    for _ in 0..=ROUNDS {
        let begun = Instant::now();
        let text = documents::read(DocumentKind::Page, page.as_bytes()).expect("a text");
        here.push(milliseconds(begun.elapsed()));
        let begun = Instant::now();
        let read = world.runtime.block_on(world.context.launcher.read_document(DocumentKind::Page, page.as_bytes()));
        apart.push(milliseconds(begun.elapsed()));
        assert_eq!(read.map(String::into_bytes), Ok(text));
    }
    // The first run of each warms the caches and starts the fork server.
    let (here, apart) = (median(&here[1..]), median(&apart[1..]));
    let measured = format!("{here:.1} ms; {apart:.1} ms ({} kB), above: {:.1} ms", page.len() / 1_000, apart - here);
    row("page of 1 MB as Markdown; in a reader", &measured, "above ≤ 15 ms");
}

/// A part of this benchmark.
type Part = fn(&mut World);

/// The parts of this benchmark, by name.
const PARTS: &[(&str, Part)] = &[
    ("large", |world| large(world)),
    ("map", |world| map(world)),
    ("bash", bash),
    ("hook", |world| hook(world)),
    ("page", |world| page(world)),
    ("edit", |world| edit(world)),
    ("search", |world| search(world)),
];

/// Runs the parts that the arguments name, or all.
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` passes `--test` and only checks that the benchmark starts.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let named: Vec<&str> = arguments.iter().map(String::as_str).filter(|argument| !argument.starts_with('-')).collect();
    let mut world = World::new();
    row("what", "measured", "goal");
    row("---", "---", "---");
    for (_, part) in PARTS.iter().filter(|(name, _)| named.is_empty() || named.contains(name)) {
        part(&mut world);
    }
}
