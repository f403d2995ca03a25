//! The rows that a turn takes, and what is omitted on the alternate screen.

use serde_json::{Value, json};

use super::{chat_in, end, session};
use harness::Home;
use harness::steps::bash_call;

const SIZES: [(u16, u16); 4] = [(60, 40), (60, 80), (60, 120), (60, 200)];

/// Maximum number of rows of one call, paste or output.
const ROWS_MAX: usize = 20;

const SUM: &str = "\"\"\"Sums.\"\"\"\n\ndef mean(values):\n    total = sum(values)\n    return total / (len(values) - 1)\n\n\n\
                   def median(values):\n    ordered = sorted(values)\n    return ordered[len(ordered) // 2]\n\n\nprint(mean([1, 3]))\n";
const TEST: &str = "for i in $(seq 24); do echo \"case $i\"; done\nif grep -q 'len(values) - 1' src/sum.py; then\n  \
                    echo 'FAIL mean: expected 2, got 4.0'; exit 1\nfi\necho 'ok   mean: expected 2, got 2.0'\n";

/// The five calls that fix a failing test.
fn fix() -> Value {
    let edit = json!({"file_path": "src/sum.py", "old_string": "(len(values) - 1)", "new_string": "len(values)"});
    json!([
        {"thinking": "The test fails.\nI look why.", "text": "I will run the tests first.", "tool_calls": [bash_call("sh test.sh")]},
        {"tool_calls": [{"name": "read", "input": {"file_path": "src/sum.py"}}]},
        {"tool_calls": [{"name": "grep", "input": {"pattern": "mean"}}]},
        {"tool_calls": [{"name": "edit", "input": edit}]},
        {"tool_calls": [bash_call("sh test.sh")]},
        {"text": "Fixed: `mean` in src/sum.py:5 divided by one value too few."},
    ])
}

/// Replaces the times and amounts of a screen.
fn normalized(screen: &str) -> String {
    let mut text = screen.to_owned();
    for (pattern, with) in [
        (" · [0-9.]+ s( |$|\n)", " · N s$1"),
        ("[0-9.]+k? tokens in, [0-9.]+k? out", "TOKENS"),
        ("sess_[0-9a-f]+", "SESSION"),
        ("scripted:[^ \n]*( · mode)?", "MODEL$1"),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

/// The rows of the turn: those below the first rows of the chat and above the composer.
fn turn(screen: &str) -> String {
    let end = screen.rfind("\n>\n").unwrap_or(screen.len());
    let start = screen.find("? keys\n\n").map_or(0, |at| at + "? keys\n\n".len());
    normalized(screen[start.min(end)..end].trim_start_matches('\n'))
}

fn snapshot(name: String, text: String) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../cases/screens");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn home_with_a_test() -> Home {
    let home = Home::new();
    home.put("src/sum.py", SUM);
    home.put("test.sh", TEST);
    home
}

#[tokio::test]
async fn five_call_fix_takes_at_most_26_rows() {
    needs_linux!("sandbox");
    for size in SIZES {
        let mut with_colours = None;
        for colour in [true, false] {
            let home = home_with_a_test();
            if !colour {
                home.env("NO_COLOR", "1");
            }
            let mut terminal = chat_in(&home, fix(), &["--mode", "auto"], size).await;
            terminal.say("Fix the failing test\r").await;
            let screen = terminal.until_screen("tokens in", size).await;
            let rows = turn(&screen);
            assert!(rows.lines().count() <= 26 || size.1 < 80, "{rows}");
            // Without colours, only inline code differs.
            let rows = rows.replace('`', "");
            let shown = end(terminal).await;
            let sequences = ["\u{1b}[35mreturn\u{1b}[0m", "\u{1b}[31m-\u{1b}[0m", "\u{1b}[31m✗\u{1b}[0m"];
            assert!(sequences.iter().all(|sequence| shown.contains(sequence) == colour), "{shown:?}");
            assert_eq!(with_colours.get_or_insert_with(|| rows.clone()), &rows);
        }
        snapshot(format!("fix_{}", size.1), with_colours.unwrap());
    }
}

#[tokio::test]
async fn run_uses_the_same_rows_and_names_the_command_that_shows_the_rest() {
    needs_linux!("sandbox");
    let home = home_with_a_test();
    let terminal = home.terminal(&["run", "--model", &home.script(fix()), "--mode", "auto", "Fix the failing test"]);
    terminal.resize(60, 200);
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0);
    let session = format!("sess_{}", &shown.split_once("session sess_").unwrap().1[..32]);
    let plain = vt100_rows(&shown);
    assert!(plain.contains(&format!("  … 20 lines: nuncio sessions show {session}\n")), "{plain}");
    let whole = home.run(&["sessions", "show", &session], "").await.stdout;
    assert!((1..=24).all(|number| whole.contains(&format!("  case {number}\n"))) && whole.contains("return ordered["), "{whole}");
}

fn vt100_rows(shown: &str) -> String {
    let mut parser = vt100::Parser::new(200, 200, 0);
    parser.process(shown.replace('\n', "\r\n").as_bytes());
    let rows: Vec<String> = parser.screen().rows(0, 200).map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n")
}

/// What takes too much space without folding, the words at its end, and lines of the middle that
/// only the alternate screen shows.
#[tokio::test]
async fn long_texts_take_few_rows_and_are_shown_whole_on_request() {
    needs_linux!("sandbox");
    let size = (60, 80);
    let lines: String = (0..500).map(|number| format!("line {number:04}\n")).collect();
    let write = json!({"name": "write", "input": {"file_path": "new.txt", "content": lines}});
    let output = bash_call("seq -f 'line %04g' 0 399");
    let failing = bash_call("seq -f 'line %04g' 0 399; exit 3");
    let cases = [
        ("write", json!([{"tool_calls": [write]}, {"text": "done"}]), "go", "● Write new.txt +500\n", 500),
        ("output", json!([{"tool_calls": [output]}, {"text": "done"}]), "go", "· exit 0 ·", 400),
        ("failure", json!([{"tool_calls": [failing]}, {"text": "done"}]), "go", "· exit 3 ·", 400),
        ("thought", json!([{"thinking": lines, "text": "done"}]), "go", "▸ thought\n", 500),
        ("paste", json!([{"text": "done"}]), "PASTE", "> line 0000\n", 10_000),
    ];
    for (name, steps, prompt, words, count) in cases {
        let home = Home::new();
        let mut terminal = chat_in(&home, steps, &["--mode", "auto"], size).await;
        if prompt == "PASTE" {
            let pasted: Vec<String> = (0..count).map(|number| format!("line {number:04}")).collect();
            terminal.say(&format!("\u{1b}[200~{}\u{1b}[201~", pasted.join("\n"))).await;
            terminal.until_screen("[paste 1", size).await;
        } else {
            terminal.say(prompt).await;
        }
        terminal.say("\r").await;
        let screen = terminal.until_screen("tokens in", size).await;
        let rows = turn(&screen);
        assert!(rows.contains(words), "{name}: {rows}");
        // The prompt, the answer, the usage and the blank rows between them are not of the cell.
        assert!(rows.lines().count() <= ROWS_MAX + 8, "{name}: {rows}");
        // Each line is on the alternate screen.
        terminal.say("\u{f}").await;
        terminal.until_screen("Esc", size).await;
        for number in [0, count / 2, count - 1] {
            terminal.say(&format!("/line {number:04}\r")).await;
            if number < count - 1 {
                terminal.say("g").await;
            }
            terminal.say("n").await;
            terminal.until_screen(&format!("line {number:04}\n"), size).await;
        }
        terminal.say("\u{1b}").await;
        terminal.until_screen("/help", size).await;
        end(terminal).await;
    }
}

/// The text is shown at once, and with the colours of its syntax when they are known.
#[tokio::test]
async fn texts_that_are_shown_whole_have_the_colours_of_their_syntax() {
    let (size, home) = ((24, 80), Home::new());
    let content: String = (0..60).map(|number| format!("let name_{number} = \"text {number}\";\n")).collect();
    let write = json!({"name": "write", "input": {"file_path": "made.rs", "content": content}});
    let steps = json!([{"tool_calls": [write]}, {"text": "Written."}]);
    let mut terminal = chat_in(&home, steps, &["--mode", "auto"], size).await;
    terminal.say("write it\r").await;
    terminal.until_screen("tokens in", size).await;
    terminal.say("\u{f}").await;
    terminal.until("\u{1b}[32m\"text 0\"").await;
    // A row is found although its words have several colours.
    terminal.say("/let name_41 = \"text\r").await;
    terminal.say("n").await;
    terminal.until_screen("let name_41 = \"text 41\";\n", size).await;
    terminal.say("\u{1b}").await;
    terminal.until_screen("/help", size).await;
    end(terminal).await;
}

#[tokio::test]
async fn second_ctrl_o_shows_the_conversation() {
    needs_linux!("sandbox");
    let (size, home) = ((24, 80), home_with_a_test());
    let mut terminal = chat_in(&home, fix(), &["--mode", "auto"], size).await;
    terminal.say("Fix the failing test\r").await;
    terminal.until_screen("tokens in", size).await;
    terminal.say("\u{f}").await;
    terminal.until_screen("case 12", size).await;
    terminal.say("\u{f}").await;
    terminal.until_screen("divided by one value too few", size).await;
    terminal.say("/ordered = sorted\r").await;
    terminal.say("g").await;
    terminal.say("n").await;
    terminal.until_screen("ordered = sorted(values)", size).await;
    terminal.say("q").await;
    terminal.until_screen("/help", size).await;
    let shown = end(terminal).await;
    assert!(!session(&shown).is_empty());
}

#[tokio::test]
async fn answers_to_requests_stand_under_their_calls() {
    needs_linux!("sandbox");
    let (size, home) = ((50, 100), Home::new());
    home.put("README.md", "text\n");
    let read = json!({"name": "read", "input": {"file_path": "README.md"}});
    let steps = json!([{"tool_calls": [bash_call("touch one"), read, bash_call("touch two")]}, {"text": "done"}]);
    let mut terminal = chat_in(&home, steps, &[], size).await;
    terminal.say("go\r").await;
    for (title, key) in [("touch one", "1"), ("touch two", "3")] {
        terminal.until_screen(&format!("Allow `{title}`?"), size).await;
        terminal.say("\t").await;
        terminal.until_screen("digits answer", size).await;
        terminal.say(key).await;
    }
    let screen = normalized(&terminal.until_screen("tokens in", size).await);
    assert!(screen.contains("● touch one · exit 0 · N s\n  you allowed it\n"), "{screen}");
    assert!(screen.contains("✗ touch two\n  you denied it\n"), "{screen}");
    assert!(screen.contains("● Read README.md 1 line\n"), "{screen}");
    terminal.say("\u{4}").await;
    terminal.end().await;
}

#[tokio::test]
async fn own_command_shows_its_output_while_it_runs_and_once_after_it() {
    let (size, home) = ((24, 80), Home::new());
    let steps = json!([{"text": "seen"}]);
    let mut terminal = chat_in(&home, steps, &[], size).await;
    terminal.say("!for i in 1 2 3 4 5; do echo line $i; done; until test -e go; do sleep 0.01; done; echo end\r").await;
    terminal.until_screen("  line 5\n>", size).await;
    home.put("go", "");
    let screen = terminal.until_screen("[exit code 0]", size).await;
    assert_eq!(screen.matches("  line 3\n").count(), 1, "{screen}");
    // Esc keeps the output so far.
    terminal.say("!echo partial; sleep 60\r").await;
    terminal.until_screen("  partial\n>", size).await;
    terminal.say("\u{1b}").await;
    let screen = terminal.until_screen("[stopped]", size).await;
    assert!(screen.contains("$ echo partial; sleep 60\n  partial\n  [stopped]"), "{screen}");
    terminal.say("go\r").await;
    let screen = terminal.until_screen("tokens in", size).await;
    assert_eq!(screen.matches("partial\n").count(), 1, "{screen}");
    end(terminal).await;
}

#[tokio::test]
async fn retries_are_one_row() {
    let (size, home) = ((24, 80), Home::new());
    let steps = json!([{"error": {"status": 529, "times": 3}}, {"text": "done"}]);
    let mut terminal = chat_in(&home, steps, &[], size).await;
    terminal.say("go\r").await;
    let screen = terminal.until_screen("tokens in", size).await;
    assert_eq!(screen.matches("! the model request failed ").count(), 1, "{screen}");
    end(terminal).await;
}

#[tokio::test]
async fn marks_are_ascii_where_the_locale_is_not_utf8() {
    needs_linux!("sandbox");
    let (size, home) = ((60, 80), home_with_a_test());
    home.env("LC_ALL", "C");
    let mut terminal = chat_in(&home, fix(), &["--mode", "auto"], size).await;
    terminal.say("Fix the failing test\r").await;
    let screen = terminal.until_screen("tokens in", size).await;
    assert!(
        screen.is_ascii() && screen.contains("x sh test.sh - exit 1 - ") && screen.contains("  ... 20 lines (Ctrl-O)"),
        "{screen}"
    );
    end(terminal).await;
}
