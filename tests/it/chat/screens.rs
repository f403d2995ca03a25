//! Screens of the chat at four widths, as text.

use serde_json::{Value, json};

use super::{chat_in, waiting};
use harness::Home;
use harness::steps::bash_call;

const SIZES: [(u16, u16); 4] = [(20, 40), (24, 80), (26, 120), (30, 200)];

/// Replaces the parts of a screen that differ between runs: paths, ids, times and marks.
fn normalized(screen: &str, home: &Home) -> String {
    let work = home.work();
    let mut text = screen.replace(work.parent().unwrap().to_str().unwrap(), "DIR");
    for (pattern, with) in [
        ("/tmp/[^ \n]*", "DIR…"),
        ("[◐◓◑◒]", "*"),
        ("▸ +[0-9]+ (s|min) ", "▸ AGE "),
        ("pid [0-9]+", "pid N"),
        ("[0-9.]+ s( |$|\n|‹)", "N s$1"),
        ("sess_[0-9a-f]+", "SESSION"),
        ("nuncio [0-9]+[.][0-9.]+", "nuncio VERSION"),
        ("[0-9]+% of 200k", "TOKENS"),
        ("20[0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]", "DATE"),
        ("[0-9.]+k?( of 200k)? tokens( in, [0-9.]+k? out)?", "TOKENS"),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

/// A screen: its name, the steps of the model, the flags, and the keys with the words that the
/// screen shows after them.
type Case<'a> = (&'a str, Value, &'a [&'a str], &'a [(&'a str, &'a str)]);

async fn check(cases: &[Case<'_>]) {
    for (name, steps, flags, keys) in cases {
        let runs = SIZES.map(|size| (size, true)).into_iter().chain([(SIZES[1], false)]);
        let mut coloured = None;
        for (size, colour) in runs {
            let home = Home::new();
            if !colour {
                home.env("NO_COLOR", "1");
            }
            // Whatever repository contains the directories of the tests.
            let made = std::process::Command::new("git").args(["init", "-q", "-b", "main"]).current_dir(home.work()).status();
            assert!(made.unwrap().success());
            home.put("src/lex.rs", "one\ntwo\nthree\n");
            if name.starts_with("review") {
                home.config("[review]\nmode = \"request\"\n");
            }
            std::fs::create_dir(home.data().join("agents")).unwrap();
            std::fs::write(home.data().join("agents/reader.md"), "---\ndescription: Reads\n---\nRead.\n").unwrap();
            let mut terminal = chat_in(&home, steps.clone(), flags, size).await;
            // The state of the session has arrived.
            terminal.until("]2;nuncio: ").await;
            let mut screen = String::new();
            for (typed, words) in *keys {
                terminal.say(typed).await;
                screen = terminal.until_screen(words, size).await;
            }
            let settings = insta::Settings::clone_current();
            let _bound = bind(settings);
            let screen = normalized(&screen, &home);
            // How the first rows wrap depends on the path of the directory.
            let is_shown = *name == "start" && size.1 == 200;
            let styled = normalized(&terminal.styled_screen(size.0, size.1), &home);
            let hides = !is_shown && screen.starts_with("nuncio VERSION");
            let [screen, styled] = [screen, styled].map(|screen| if hides { without_first_rows(&screen) } else { screen });
            match colour {
                true => insta::assert_snapshot!(format!("{name}_{}", size.1), screen),
                // Of Markdown, marks stand in place of attributes.
                false if *name == "answer" => insta::assert_snapshot!("answer_without_colour", screen),
                false => assert_eq!(coloured.as_ref(), Some(&screen), "{name} without colour"),
            }
            assert!(colour || !styled.contains('‹'), "{name} without colour: {styled}");
            if colour && size == SIZES[1] {
                insta::assert_snapshot!(format!("{name}_colour"), styled);
                coloured = Some(screen);
            }
            // Ends the waiting command and the chat.
            home.put("go", "");
            let mut child = terminal.hang_up();
            harness::bounded("the exit", child.wait()).await.unwrap();
        }
    }
}

fn without_first_rows(screen: &str) -> String {
    let (_, rest) = screen.split_once("? keys").unwrap();
    format!("FIRST ROWS{}", &rest[rest.find('\n').unwrap_or(rest.len())..])
}

fn bind(mut settings: insta::Settings) -> insta::internals::SettingsBindDropGuard {
    settings.set_snapshot_path("../cases/screens");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind_to_scope()
}

fn edit() -> Value {
    json!({"name": "edit", "input": {"file_path": "src/lex.rs", "old_string": "two\n", "new_string": "TWO\n"}})
}

const MARKDOWN: &str = "# The cause\n\nThe function `peek` unwraps the *first* character, and an **empty input** has none, so that \
                        it panics before the ~~loop~~ [reader](https://example.org/reader) begins &amp; ends.\n\n\
                        - read the input\n- check that it is not empty, because every later step relies on it\n  \
                        1. first\n\n     second paragraph\n- [ ] to do\n- [x] done\n\n> quoted\n>\n>> twice\n\n\
                        ```rust\nlet first = chars.next();\n```\n\n\
                        | file | lines | what it does |\n|:---|---:|---|\n| lex.rs | 120 | reads every character of the input |\n\
                        \nline<br>break ![image](a.png) <sub>raw</sub>\n";

#[tokio::test]
async fn conversation() {
    needs_linux!("sandbox");
    check(&[
        ("start", json!([]), &[], &[("", "/help")]),
        ("answer", json!([{"text": MARKDOWN}]), &[], &[("why?\r", "tokens in")]),
        ("error", json!([{"error": {"status": 400, "times": 9}}]), &[], &[("go\r", "✗"), ("", "/help")]),
        (
            "failed",
            json!([{"tool_calls": [bash_call("seq 30; exit 3")]}, {"text": "It failed."}]),
            &["--mode", "auto"],
            &[("go\r", "tokens in")],
        ),
        ("diff", json!([{"tool_calls": [edit()]}, {"text": "Changed."}]), &["--mode", "auto"], &[("go\r", "tokens in")]),
    ])
    .await;
}

#[tokio::test]
async fn work() {
    let plan = json!({"name": "plan", "input": {"entries": [
        {"content": "Find the cause", "status": "completed"},
        {"content": "Fix it", "status": "in_progress"},
        {"content": "Run the tests", "status": "pending"},
    ]}});
    let states = ["completed", "completed", "in_progress", "pending", "pending", "pending", "pending"];
    let entry = |(at, status): (usize, &&str)| json!({"content": format!("Step {at}"), "status": status});
    let long_plan = json!({"name": "plan", "input": {"entries": states.iter().enumerate().map(entry).collect::<Vec<_>>()}});
    let lines = bash_call("seq -f 'line %.0f' 5; until test -e go; do sleep 0.1; done");
    let task = json!({"name": "task", "input": {"prompt": "Read the lexer", "agent": "reader"}});
    check(&[
        ("running", json!([{"tool_calls": [waiting()]}]), &["--mode", "auto"], &[("go\r", "\n  started")]),
        (
            "queue",
            json!([{"tool_calls": [waiting()]}]),
            &["--mode", "auto"],
            &[("go\r", "\n  started"), ("and the docs\t", "→ next: and the docs"), ("a draft", "> a draft")],
        ),
        (
            "pinned",
            json!([{"tool_calls": [long_plan]}, {"tool_calls": [lines]}]),
            &["--mode", "auto"],
            &[("go\r", "\n  line 5"), ("do this first\r", "→ now: do this first")],
        ),
        ("plan", json!([{"tool_calls": [plan]}, {"text": "Planned."}]), &[], &[("go\r", "tokens in")]),
        (
            "subagent",
            json!([{"tool_calls": [task]}, {"text": "It has three lines."}]),
            &["--mode", "auto"],
            &[("go\r", "lines.\n\nIt has three"), ("", "? keys · /help")],
        ),
    ])
    .await;
}

#[tokio::test]
async fn requests_and_lists() {
    check(&[
        ("permission", json!([{"tool_calls": [bash_call("rm -rf target")]}]), &[], &[("go\r", "[1] Allow")]),
        ("permission_diff", json!([{"tool_calls": [edit()]}]), &[], &[("go\r", "[1] Allow"), ("\t", "digits answer")]),
        ("review", json!([{"tool_calls": [edit()]}, {"text": "Changed."}]), &["--mode", "auto"], &[("go\r", "Changed.\n┃ Review")]),
        (
            "review_hunks",
            json!([{"tool_calls": [edit()]}, {"text": "Changed."}]),
            &["--mode", "auto"],
            &[
                ("go\r", "Choose hunks"),
                ("\t", "digits answer"),
                ("4", "changes accepted"),
                (" ", "0 of 1 changes"),
                ("", "Enter sends"),
            ],
        ),
        ("completion", json!([]), &[], &[("/mo", "> /mo\n")]),
        ("paths", json!([]), &[], &[("see @lex", "> see @lex\n"), ("", "▸ @src/lex.rs")]),
        (
            "picker",
            json!([{"text": "Done."}]),
            &["--title", "Empty input panics"],
            &[("go\r", "tokens in"), ("/resume\r", "Enter continues")],
        ),
    ])
    .await;
}
