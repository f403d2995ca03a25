//! The settings of the chat: keys, editing as in vi, the status command and the report of the state.

use serde_json::{Value, json};

use super::{SIZE, answer, chat, end};
use harness::Home;
use harness::steps::{bash, bash_call, calls, task};

#[tokio::test]
async fn keys_of_actions_are_chosen_and_listed() {
    let home = Home::new();
    home.config("[chat.keys]\nmode = \"f2\"\nsearch = \"ctrl-l\"\nreprint = \"\"\n");
    let mut terminal = chat(&home, json!([{"text": "an answer\n"}]), &[]).await;
    terminal.say("/keys\r").await;
    let screen = terminal.until_screen("F2            sets the next mode", SIZE).await;
    assert!(
        screen.contains("Ctrl-L        searches the texts") && screen.contains("(no key)      prints the last turns"),
        "{screen}"
    );
    assert!(screen.contains("Ctrl-B        lets the running command"), "{screen}");
    // F2, and no longer Shift-Tab.
    terminal.say("\u{1b}[Z").await;
    terminal.say("\u{1b}OQ").await;
    terminal.until_screen("/help · accept-edits · ", SIZE).await;
    terminal.say("a sent text\r").await;
    terminal.until_screen(" tokens in, ", SIZE).await;
    terminal.say("\u{c}").await;
    terminal.until_screen("▸ a sent text", SIZE).await;
    terminal.say("\u{1b}[27u\u{3}").await;
    end(terminal).await;
}

#[tokio::test]
async fn invalid_keys_are_refused() {
    for (settings, words) in [
        ("[chat.keys]\nmode = \"x\"\n", "use ctrl-x"),
        ("[chat.keys]\nmode = \"ctrl-c\"\n", "it has a fixed meaning"),
        ("[chat.keys]\nmods = \"f2\"\n", "mods"),
        ("[chat.keys]\nmode = \"f2\"\nshow = \"f2\"\n", "f2 has two actions"),
    ] {
        let home = Home::new();
        home.config(settings);
        let ran = home.run(&["config", "check"], "").await;
        assert!(ran.code == 2 && ran.stderr.contains(words), "{settings}: {ran:?}");
    }
}

#[tokio::test]
async fn text_is_edited_as_in_vi() {
    let home = Home::new();
    home.config("[chat]\nediting = \"vim\"\n");
    let mut terminal = chat(&home, json!([]), &[]).await;
    terminal.say("one two three").await;
    terminal.until_screen("> one two three\n", SIZE).await;
    terminal.say("\u{1b}[27u").await;
    terminal.until_screen(" · NORMAL · ", SIZE).await;
    for (keys, text) in [
        ("0dw", "two three"),
        ("wx", "two hree"),
        ("if", "two fhree"),
        ("\u{1b}[27u", "two fhree"),
        ("$b", "two fhree"),
        ("Aend", "two fhreeend"),
        ("\u{1b}[27u", "two fhreeend"),
        ("bD", "two"),
        ("ccnew", "new"),
        ("\u{1b}[27u", "new"),
        ("obelow", "new\n  below"),
        ("\u{1b}[27u", "new\n  below"),
        ("kdd", "below"),
    ] {
        terminal.say(keys).await;
        terminal.until_screen(&format!("> {text}\n"), SIZE).await;
    }
    // A sent text is followed by a new one, which is written.
    terminal.say("\u{3}typed").await;
    let screen = terminal.until_screen("> typed\n", SIZE).await;
    assert!(!screen.contains("NORMAL"), "{screen}");
    terminal.say("\u{3}").await;
    end(terminal).await;
}

/// The command reads the state, its text is data, and one that does not end is stopped.
#[tokio::test]
async fn status_command_shows_its_first_line() {
    let home = Home::new();
    home.put("status.sh", "read -r state; echo \"$state\" >> seen; printf 'mode %s \\033[31mred\\nsecond\\n' \"$(echo \"$state\" | grep -o '\"mode\":\"[a-z-]*\"')\"\n");
    home.config(&format!("[chat]\nstatus_command = [\"sh\", \"{}\"]\n", home.work().join("status.sh").display()));
    let mut terminal = chat(&home, json!([{"text": "an answer\n"}]), &[]).await;
    terminal.until_screen("  mode \"mode\":\"ask\" red\n", SIZE).await;
    terminal.say("\u{1b}[Z").await;
    let screen = terminal.until_screen("  mode \"mode\":\"accept-edits\" red\n", SIZE).await;
    assert!(!screen.contains("second"), "{screen}");
    terminal.say("go\r").await;
    terminal.until_screen(" tokens in, ", SIZE).await;
    end(terminal).await;
    let seen = home.get("seen").unwrap();
    let states: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(states.iter().all(|state| state["sessionId"].as_str().is_some_and(|id| id.starts_with("sess_"))), "{seen}");

    let home = Home::new();
    home.config("[chat]\nstatus_command = [\"sleep\", \"60\"]\n");
    let mut terminal = chat(&home, json!([]), &[]).await;
    terminal.until_screen("status_command: no end within 2 s", SIZE).await;
    end(terminal).await;
    // A project cannot start such a command.
    let home = Home::new();
    home.put(".nuncio/config.toml", "[chat]\nstatus_command = [\"touch\", \"ran\"]\n");
    home.run(&["trust", home.work().to_str().unwrap(), "--yes"], "").await;
    let mut terminal = chat(&home, json!([{"text": "an answer\n"}]), &[]).await;
    terminal.say("go\r").await;
    terminal.until_screen(" tokens in, ", SIZE).await;
    end(terminal).await;
    assert!(home.get("ran").is_none());
}

/// The reports of the Program Status Protocol (OSC 7501), in order.
fn states(shown: &str) -> Vec<&str> {
    shown.split("\u{1b}]7501;state=").skip(1).map(|rest| rest.split([':', '\u{7}']).next().unwrap()).collect()
}

#[tokio::test]
async fn state_is_reported_to_the_terminal() {
    let home = Home::new();
    home.config("[chat]\nprogram_status = \"on\"\n");
    let steps = json!([{"tool_calls": [bash_call("touch made")]}, {"text": "It is made.\n"}, {"error": {"status": 400}}]);
    let mut terminal = chat(&home, steps, &["--title", "My \u{1b}]0;x\u{7}title"]).await;
    terminal.say("go\r").await;
    terminal.until_screen("Allow `touch made`?", SIZE).await;
    answer(&mut terminal, "1").await;
    terminal.until_screen(" tokens in, ", SIZE).await;
    terminal.until_screen("? keys · /help", SIZE).await;
    terminal.say("go\r").await;
    terminal.until_screen("HTTP 400", SIZE).await;
    terminal.until_screen("? keys · /help", SIZE).await;
    let shown = end(terminal).await;
    let mut states = states(&shown);
    // Work can end before a frame shows it.
    states.retain(|state| *state != "working");
    states.dedup();
    assert_eq!(states, ["idle", "blocked", "done", "error", "clear"], "{shown:?}");
    assert!(shown.contains("\u{1b}]7501;state=blocked:kind=permission:app=nuncio:title="), "{shown:?}");
    let home = Home::new();
    let terminal = chat(&home, json!([]), &[]).await;
    assert!(!end(terminal).await.contains("]7501;"));
}

/// A subagent has a state of its own, from its start to its end.
#[tokio::test]
async fn subagents_are_reported_to_the_terminal() {
    let home = Home::new();
    let sub = home.script(json!([bash("until test -e go; do sleep 0.01; done"), {"text": "found"}]));
    home.config(&format!("[chat]\nprogram_status = \"on\"\n\n[roles]\nsubagent = \"{sub}\"\n"));
    let agents = home.data().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("plain.md"), "---\ndescription: Finds things\n---\nFind.\n").unwrap();
    let steps = json!([calls(&[task("plain", "Find it.")]), {"text": "It is found.\n"}]);
    let mut terminal = chat(&home, steps, &["--mode", "auto"]).await;
    terminal.say("go\r").await;
    terminal.until_screen("Find it.", SIZE).await;
    home.put("go", "");
    terminal.until_screen(" tokens in, ", SIZE).await;
    let shown = end(terminal).await;
    let begins = shown.split("\u{1b}]7501;state=working:id=").nth(1).unwrap_or_else(|| panic!("{shown:?}"));
    let id = begins.split(':').next().unwrap();
    assert_eq!(id.len(), 32, "{id}");
    assert_eq!(shown.matches(&format!("]7501;state=clear:id={id}\u{7}")).count(), 1, "{shown:?}");
}
