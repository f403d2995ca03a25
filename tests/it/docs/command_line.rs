//! docs/CLI.md has the help of every command.

use harness::Home;
use harness::pages::check_generated;

/// Begins the options that all commands have. The page has them once.
const COMMON: &str = "\nCommon options:\n";

/// Names of the commands below a heading, without `help`.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.split_once("\nCommands:\n").map(|(_, list)| list).unwrap_or_default();
    let names = list.lines().take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|name| name != "help").collect()
}

/// Names of the commands in the groups of `nuncio --help`.
fn commands(help: &str) -> Vec<String> {
    let groups = help.split("\n\n").filter(|group| !group.starts_with("Usage:") && !group.starts_with("Options for all"));
    let lines = groups.flat_map(|group| group.lines().skip(1)).filter(|line| line.starts_with("  "));
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn page_has_the_help_of_every_command() {
    let home = Home::new();
    let program = home.run(&["--help"], "").await.stdout;
    let mut page = format!("\n## nuncio\n\n```text\n{program}```\n");
    let mut common = String::new();
    // Depth first, in the order of the help.
    let mut open: Vec<Vec<String>> = commands(&program).into_iter().rev().map(|name| vec![name]).collect();
    assert!(open.len() > 10, "{program}");
    while let Some(command) = open.pop() {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let ran = home.run(&arguments, "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        open.extend(subcommands(&ran.stdout).into_iter().rev().map(|name| [command.clone(), vec![name]].concat()));
        // Examples may follow the common options.
        let (own, rest) = ran.stdout.split_once(COMMON).unwrap_or((&ran.stdout, ""));
        let (options, examples) = rest.split_once("\n\n").unwrap_or((rest, ""));
        // The lines of a help are narrower if one of its options is long.
        if common.is_empty() || options.lines().count() < common.lines().count() && !options.is_empty() {
            common = options.trim_end().to_owned() + "\n";
        }
        let examples = if examples.is_empty() { String::new() } else { format!("\n{examples}") };
        page += &format!("\n## nuncio {}\n\n```text\n{own}{examples}```\n", command.join(" "));
    }
    page += &format!("\n## Options of all commands\n\n```text\n{common}```\n");
    check_generated("docs/CLI.md", &page);
}
