//! Commands that change the same file at the same moment: no change is lost.

use futures_util::future::join_all;

use super::check;
use harness::Home;

/// Number of commands that run at the same moment.
const COMMANDS: usize = 12;

/// Commands for a name: one that adds an entry, one that lists the entries, and one that removes
/// the entry. `NAME` is in the arguments and in the list.
const CASES: [[&[&str]; 3]; 4] = [
    [&["login", "NAME", "--no-check"], &["login", "--list"], &["logout", "NAME"]],
    [&["token", "new", "NAME"], &["token", "list"], &["token", "revoke", "NAME"]],
    [&["trust", "NAME"], &["trust", "list"], &["trust", "remove", "NAME"]],
    [&["mcp", "add", "NAME", "--", "true"], &["mcp", "list"], &["mcp", "rm", "NAME"]],
];

fn name(number: usize) -> String {
    format!("entry-{number:02}")
}

/// Runs a command for each of the numbers at the same moment.
async fn run_all(home: &Home, arguments: &[&str], numbers: impl Iterator<Item = usize>) {
    let runs = numbers.map(|number| async move {
        let name = name(number);
        let arguments: Vec<&str> = arguments.iter().map(|word| if *word == "NAME" { name.as_str() } else { word }).collect();
        check(&home.run(&arguments, "sk-key").await, 0, &[]);
    });
    join_all(runs).await;
}

#[tokio::test]
async fn no_change_is_lost() {
    for [add, list, remove] in CASES {
        let home = Home::new();
        let numbers = || 0..COMMANDS;
        for number in numbers() {
            home.put(&format!("{}/.nuncio/config.toml", name(number)), "");
        }
        if add[0] == "login" {
            let provider = |number| format!("[providers.{}]\nbase_url = \"http://127.0.0.1:1\"\n", name(number));
            home.config(&numbers().map(provider).collect::<String>());
        }
        run_all(&home, add, numbers()).await;
        let listed = async || {
            let ran = home.run(list, "").await;
            assert_eq!(ran.code, 0, "{ran:?}");
            numbers().filter(|number| ran.stdout.contains(&name(*number))).collect::<Vec<_>>()
        };
        assert_eq!(listed().await, numbers().collect::<Vec<_>>(), "{add:?}");
        run_all(&home, remove, numbers().filter(|number| number % 2 == 0)).await;
        assert_eq!(listed().await, numbers().filter(|number| number % 2 == 1).collect::<Vec<_>>(), "{remove:?}");
    }
}
