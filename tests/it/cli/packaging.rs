//! `nuncio completions` and `nuncio man`: the files that packages contain.

use std::process::{Command, Stdio};

use super::check;
use harness::Home;

/// Returns the names of the commands in the help of the program.
async fn commands(home: &Home) -> Vec<String> {
    let help = home.run(&["--help"], "").await.stdout;
    let is_command = |line: &&str| line.starts_with("  ") && line.as_bytes()[2].is_ascii_lowercase();
    let lines = help.lines().filter(is_command);
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn completion_scripts_name_all_commands() {
    let home = Home::new();
    let commands = commands(&home).await;
    assert!(commands.len() > 15, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = home.run(&["completions", shell], "").await;
        check(&script, 0, &["nuncio"]);
        for command in &commands {
            assert!(script.stdout.contains(command), "{shell}: no {command}");
        }
    }
    check(&home.run(&["completions", "csh"], "").await, 2, &["csh", "bash"]);
}

#[tokio::test]
async fn bash_completes_commands_and_options() {
    let home = Home::new();
    let script = home.run(&["completions", "bash"], "").await.stdout;
    let file = home.put("nuncio.bash", &script);
    let bash = |code: &str| {
        let ran = Command::new("bash").args(["--norc", "-c", code]).arg(&file).stdin(Stdio::null()).output().unwrap();
        assert!(ran.status.success() && ran.stderr.is_empty(), "{code}: {ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    bash("bash -n \"$0\"");
    let cases = [("nuncio sess", "sessions"), ("nuncio sessions exp", "export"), ("nuncio run --output-f", "--output-format")];
    for (line, completed) in cases {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let code = format!(
            "source \"$0\"; COMP_WORDS=({line}); COMP_CWORD={}; _nuncio nuncio '{last}' '{before}'; echo \"${{COMPREPLY[*]}}\"",
            words.len() - 1
        );
        assert_eq!(bash(&code).trim(), completed, "{line}");
    }
}

#[tokio::test]
async fn man_pages_exist_for_each_command() {
    let home = Home::new();
    check(&home.run(&["man", "share/man1"], "").await, 0, &[]);
    let pages = home.work().join("share/man1");
    for command in commands(&home).await.iter().map(|command| format!("nuncio-{command}")).chain(["nuncio".into()]) {
        let page = std::fs::read_to_string(pages.join(format!("{command}.1"))).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(page.contains(&format!("\n.TH {command} 1 ")), "{command}: {page}");
        assert!(page.contains("\n.SH SYNOPSIS\n"), "{command}: {page}");
    }
    assert!(pages.join("nuncio-sessions-export.1").exists(), "subcommands have pages");
    home.put("file", "");
    check(&home.run(&["man", "file"], "").await, 1, &["file"]);
}
