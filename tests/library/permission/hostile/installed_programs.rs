//! Compares the tables of programs with the help of the installed programs: each option that names
//! a file or a program asks, or is known to be harmless.

use std::process::{Command, Stdio};

use nuncio::internal::config::Policy;
use nuncio::internal::options::Mode;
use nuncio::internal::permission::rules::Rules;
use regex::Regex;

use super::file_options::MANUALS;
use super::{judged, rule};

/// Options that only read, or that name what the program is run to write or change.
const HARMLESS: &[(&str, &str)] = &[
    ("chcon chgrp chmod chown touch truncate", "--reference"),
    ("cp install ln mv", "--target-directory"),
    ("dmesg last", "--file"),
    ("egrep fgrep", "--exclude-from --file"),
    ("gcc strip", "-o"),
    ("install", "--target-directory"),
    ("lsblk lscpu", "--sysroot"),
    ("patch", "-i"),
    ("pgrep pkill", "--pidfile"),
    ("pip3", "--cert --client-cert"),
    ("realpath", "--relative-base --relative-to"),
    ("rustc", "--out-dir -o"),
    (
        "rustdoc",
        "--extend-css --index-page --library-path --out-dir --output --persist-doctests --plugin-path --resource-suffix \
         --static-root-path --with-examples",
    ),
    ("shred", "--random-source"),
    ("unzstd zstd", "--output-dir-flat --output-dir-mirror"),
    ("git add", "--pathspec-from-file"),
    ("git am", "--exclude --include"),
    ("git annotate", "--contents --ignore-revs-file -S"),
    ("git apply", "--exclude --include"),
    ("git archive", "--add-file"),
    ("git blame", "-S"),
    ("git check-mailmap", "--mailmap-file"),
    ("git checkout", "--pathspec-from-file"),
    ("git commit", "--file --pathspec-from-file --template"),
    ("git commit-tree", "-F"),
    ("git diff", "--rotate-to --skip-to -O"),
    ("git fast-export", "--import-marks-if-exists"),
    ("git fmt-merge-msg", "--file"),
    ("git format-patch", "--description-file --signature-file"),
    ("git hash-object", "--path"),
    ("git ls-files", "--exclude-from --exclude-per-directory"),
    ("git merge", "--file"),
    ("git range-diff", "--rotate-to --skip-to -O"),
    ("git reset", "--pathspec-from-file"),
    ("git restore", "--pathspec-from-file"),
    ("git rm", "--pathspec-from-file"),
    ("git stage", "--pathspec-from-file"),
    ("git tag", "--file"),
];

/// Programs whose `--help` has no options, or that do something else.
const WITHOUT_HELP: &[&str] = &["[", "nslookup", "test", "yes"];

/// Returns the names in the tables of known programs, and the known subcommands of git.
fn programs() -> Vec<String> {
    let tables = include_str!("../../../../src/permission/shell/programs.rs");
    let known = tables.split("const KNOWN").nth(1).and_then(|rest| rest.split("\n];").next()).unwrap();
    let row = Regex::new(r#"\(\s*"([^"]*)",\s*""#).unwrap();
    let git = include_str!("../../../../src/permission/shell/git.rs");
    let git = git.split("const SUBCOMMANDS: &str = \"").nth(1).and_then(|rest| rest.split("\";").next()).unwrap();
    let words = |text: &str| text.replace('\\', " ").split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let programs = row.captures_iter(known).flat_map(|row| words(&row[1]));
    programs.chain(words(git).into_iter().map(|name| format!("git {name}"))).collect()
}

/// Returns the options whose value names a file, a directory or a program, from the help of an
/// installed program. Its help can be on standard error.
fn described(program: &str) -> Vec<String> {
    let arguments: &[&str] = match program.split_once(' ') {
        Some((_, subcommand)) => &[subcommand, "-h"],
        None if program == "curl" => &["--help", "all"],
        None => &["--help"],
    };
    let name = program.split(' ').next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let help = Command::new(name).args(arguments).current_dir(&directory).stdin(Stdio::null()).output();
    let Ok(help) = help else { return Vec::new() };
    let help = [help.stdout, help.stderr].map(|text| String::from_utf8_lossy(&text).replace("--[no-]", "--")).concat();
    let value = "FILE|[A-Z]*FILE|FILENAME|PROG|PROGRAM|COMMAND|CMD|DIR|DIRECTORY|PATH|PAGER|file|filename|dir|path|command|program\
                 |template-directory";
    let long = format!(r"(?m)^[ \t]*(?:-[A-Za-z0-9],?[ \t]+)?(--[a-z][-a-z0-9]*)(?:\[?=|[ \t])\[?<?(?:{value})(?:[> \t\n]|$)");
    let short = format!(r"(?m)^[ \t]*(-[A-Za-z0-9])[ \t]+<?(?:{value})(?:[> \t\n]|$)");
    let found = |pattern: &str| -> Vec<String> {
        Regex::new(pattern).unwrap().captures_iter(&help).map(|found| found[1].to_string()).collect()
    };
    [found(&long), found(&short)].concat()
}

/// Returns whether the option asks although the program is allowed, or is known to be harmless.
fn is_known(program: &str, option: &str) -> bool {
    let allowing = Rules { user: vec![rule(Policy::Allow, &format!("{program} *"))], ..Rules::default() };
    let separator = if option.starts_with("--") { "=" } else { " " };
    let asks = judged(&allowing, Mode::Ask, "", &format!("{program} {option}{separator}f")) == Policy::Ask;
    let row = MANUALS.iter().find(|manual| manual.program == program);
    let named = row.iter().flat_map(|row| row.asks.iter().chain(row.reads)).flat_map(|arguments| arguments.split([' ', '=']));
    let names = |programs: &str| programs == program || programs.split(' ').any(|one| one == program);
    let harmless = HARMLESS.iter().filter(|(programs, _)| names(programs)).flat_map(|(_, options)| options.split(' '));
    asks || named.chain(harmless).any(|known| known == option)
}

#[test]
fn tables_have_the_options_of_the_installed_programs() {
    // On other systems, some programs have other options, or no help.
    let programs = if cfg!(target_os = "linux") { programs() } else { Vec::new() };
    assert!(programs.len() > 300 || !cfg!(target_os = "linux"), "{programs:?}");
    let programs = programs.iter().filter(|program| !WITHOUT_HELP.contains(&program.as_str()));
    let missing = programs.flat_map(|program| {
        let unknown = described(program).into_iter().filter(|option| !is_known(program, option));
        unknown.map(|option| format!("{program} {option}")).collect::<Vec<_>>()
    });
    let missing: Vec<String> = missing.collect();
    assert!(missing.is_empty(), "options that name a file and are in no table: {}", missing.join(", "));
}
