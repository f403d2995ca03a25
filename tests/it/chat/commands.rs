//! The commands of the chat, and commands of the shell.

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use super::{SIZE, answer, chat, completed, end};
use crate::providers::lists::OK;
use harness::steps::bash_call;
use harness::{Home, Site};

#[tokio::test]
async fn commands_show_and_change_the_session() {
    let home = Home::new();
    home.config("[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"true\", \"checked\"]\n");
    let mut terminal = chat(&home, json!([{"text": "The answer."}]), &["--title", "First"]).await;
    terminal.say("/cost\r").await;
    terminal.until_screen("cost       not known: no usage was reported", SIZE).await;
    terminal.say("go\r").await;
    terminal.until_screen("The answer.\n", SIZE).await;
    for (typed, words) in [
        ("/status\r", "title      First"),
        ("/rename Second one\r", "> \n"),
        ("/status\r", "title      Second one"),
        ("/cost\r", "cost       not known: the price"),
        ("/permissions\r", "ask    bash"),
        ("/mcp\r", "no MCP server"),
        ("/hooks\r", "tool.execute.before: true checked"),
        ("/doctor\r", "ok   model     scripted:"),
        ("/thinking high\r", "thinking high"),
        ("/memory project Use tabs.\r", "added to "),
        ("/memory somewhere x\r", "project or user"),
        ("\u{3}/copy\r", "copied"),
        ("/rename\r", "the argument is missing"),
        ("\u{3}/export talk.txt\r", "wrote "),
        ("/export talk.txt\r", "File exists"),
        ("\u{3}/diff\r", "git found no repository"),
        ("/nosuch\r", "/help lists the commands"),
        ("\u{3}/model\r", "scripted:"),
    ] {
        terminal.say(typed).await;
        terminal.until_screen(words.trim_start_matches("> \n"), SIZE).await;
    }
    assert_eq!(home.get("AGENTS.md").unwrap(), "- Use tabs.\n");
    let talk = home.get("talk.txt").unwrap();
    assert!(talk.contains("> go\n") && talk.contains("The answer.\n"), "{talk}");
    let shown = end(terminal).await;
    // Lines of the log do not go to the terminal.
    assert!(!shown.contains("WARN"), "{shown:?}");
    // The base64 of "The answer."
    assert!(shown.contains("\u{1b}]52;c;VGhlIGFuc3dlci4=\u{7}"), "{shown:?}");
    assert!(shown.contains("\u{1b}]2;nuncio: Second one\u{7}"), "{shown:?}");
    let link = |name: &str| format!("\u{1b}]8;;file://{}\u{1b}\\", home.work().join(name).display());
    assert!(shown.contains(&link("talk.txt")) && shown.contains(&link("AGENTS.md")), "{shown:?}");
}

#[tokio::test]
async fn shell_command_shows_its_output_and_adds_it_to_the_conversation() {
    let home = Home::new();
    let steps = json!([{"expect": "$ echo out; exit 3\nout\n", "text": "seen"}]);
    let mut terminal = chat(&home, steps, &[]).await;
    terminal.say("!!echo private\r").await;
    terminal.until_screen("$ echo private\n  private\n", SIZE).await;
    terminal.say("!echo out; exit 3\r").await;
    terminal.until_screen("  out\n  [exit code 3]\n", SIZE).await;
    // Esc stops a command.
    terminal.say("!!sleep 60\r").await;
    terminal.until_screen("$ sleep 60  ", SIZE).await;
    terminal.say("\u{1b}").await;
    terminal.until_screen("$ sleep 60\n  [stopped]\n", SIZE).await;
    terminal.say("what happened?\r").await;
    terminal.until_screen("seen\n", SIZE).await;
    let shown = end(terminal).await;
    let messages = completed(&home, &shown).await;
    assert!(messages.contains("echo out") && !messages.contains("private"), "{messages}");
}

#[tokio::test]
async fn diff_shows_changes_and_new_files() {
    needs_linux!("sandbox");
    let home = Home::new();
    let mut terminal = chat(&home, json!([]), &["--mode", "auto"]).await;
    let commands = [
        "git init -q . && git config user.email a@b && git config user.name a",
        "echo one > old.txt && git add . && git commit -qm one && echo committed",
        "echo two > old.txt && echo three > new.txt && echo changed",
    ];
    for command in commands {
        terminal.say(&format!("!!{command}\r")).await;
        terminal.until_screen(&format!("$ {}", &command[..20]), SIZE).await;
    }
    terminal.until_screen("\n  changed\n", SIZE).await;
    terminal.say("/diff\r").await;
    let screen = terminal.until_screen("+three", SIZE).await;
    assert!(screen.contains("-one\n") && screen.contains("+two\n"), "{screen}");
    end(terminal).await;
}

/// `/memory project` follows no symlink out of the project.
#[tokio::test]
async fn memory_stays_in_the_project() {
    for (target, words) in [
        ("../outside.md", "outside of the project"),
        ("../missing.md", "outside of the project"),
        ("../../../../../../../../tmp/missing-dir/x.md", "outside of the project"),
        ("link", "outside of the project"),
        ("CLAUDE.md", "added to "),
        ("new.md", "added to "),
    ] {
        let home = Home::new();
        let outside = home.put("../outside.md", "outside\n");
        home.put("CLAUDE.md", "Be brief.\n");
        std::os::unix::fs::symlink(&outside, home.work().join("link")).unwrap();
        std::os::unix::fs::symlink(target, home.work().join("AGENTS.md")).unwrap();
        let mut terminal = chat(&home, json!([]), &[]).await;
        terminal.say("/memory project Use tabs.\r").await;
        let screen = terminal.until_screen(words, SIZE).await;
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "outside\n", "{target}: {screen}");
        assert!(!outside.with_file_name("missing.md").exists(), "{target}");
        let read = |name: &str| home.get(name).unwrap_or_default();
        match target {
            "CLAUDE.md" => assert_eq!(read("CLAUDE.md"), "Be brief.\n- Use tabs.\n"),
            "new.md" => assert_eq!(read("new.md"), "- Use tabs.\n"),
            _ => {}
        }
        terminal.say("\u{3}").await;
        end(terminal).await;
    }
}

#[tokio::test]
async fn login_asks_for_a_key_on_the_terminal_of_the_chat() {
    let (home, site) = (Home::new(), Site::start().await);
    let provider = |name: &str| format!("[providers.{name}]\nbase_url = \"{}\"\n", site.url(&format!("/{name}")));
    home.config(&["one", "two"].map(provider).concat());
    site.page("/one/models", "401 Unauthorized", "{}");
    site.page("/two/models", OK, json!({"data": [{"id": "a"}, {"id": "b"}]}).to_string());
    let mut terminal = chat(&home, json!([{"text": "an answer"}]), &[]).await;
    terminal.say("a draft").await;
    terminal.until_screen("> a draft", SIZE).await;
    terminal.say("\u{3}/login one\r").await;
    terminal.until("API key of one (it is not shown): ").await;
    terminal.say("sk-wrong\n").await;
    terminal.until_screen("401", SIZE).await;
    terminal.until_screen("? keys · /help", SIZE).await;
    assert!(!home.data().join("keys.json").exists() || !stored(&home).contains("sk-wrong"));
    terminal.say("/login two\r").await;
    terminal.until("API key of two (it is not shown): ").await;
    terminal.say("sk-right\n").await;
    terminal.until_screen("accepted; 2 models", SIZE).await;
    assert!(stored(&home).contains("sk-right"));
    // The chat has the terminal again, in its own mode.
    terminal.until_screen("? keys · /help", SIZE).await;
    terminal.say("go\r").await;
    terminal.until_screen("an answer\n", SIZE).await;
    let shown = end(terminal).await;
    assert!(!shown.contains("sk-"), "{shown}");
}

fn stored(home: &Home) -> String {
    std::fs::read_to_string(home.data().join("keys.json")).unwrap()
}

#[tokio::test]
async fn control_c_ends_the_program_on_the_terminal_and_not_the_chat() {
    let home = Home::new();
    home.config("[providers.one]\nbase_url = \"http://127.0.0.1:1\"\n");
    let mut terminal = chat(&home, json!([{"text": "an answer"}]), &[]).await;
    terminal.say("/login one\r").await;
    terminal.until("API key of one (it is not shown): ").await;
    // A terminal sends the signal of Ctrl-C to all programs in its foreground.
    let group = Pid::from_raw(i32::try_from(terminal.pid).unwrap()).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    terminal.until_times("\u{1b}[?2004h", 2).await;
    // The chat may receive it long after the program.
    kill_process_group(group, Signal::INT).unwrap();
    terminal.say("go\r").await;
    terminal.until_screen("an answer\n", SIZE).await;
    end(terminal).await;
}

#[tokio::test]
async fn rule_that_an_answer_added_is_shown_and_removed() {
    let home = Home::new();
    let steps = json!([{"tool_calls": [bash_call("echo a > a")]}, {"text": "one\n"}, {"tool_calls": [bash_call("echo a > a")]}, {"text": "two"}]);
    let mut terminal = chat(&home, steps, &[]).await;
    terminal.say("go\r").await;
    terminal.until_screen("Allow `echo a > a`?", SIZE).await;
    // Always in the directory.
    answer(&mut terminal, "5").await;
    terminal.until_screen("you allowed it (Always allow this command in this directory", SIZE).await;
    terminal.until_screen("? keys · /help", SIZE).await;
    terminal.say("/permissions\r").await;
    terminal.until_screen("1   allow  bash `echo a > a` · your settings, in ", SIZE).await;
    terminal.say("/permissions remove 2\r").await;
    terminal.until_screen("there is no rule 2", SIZE).await;
    terminal.say("\u{3}/permissions remove 1\r").await;
    terminal.until_screen("removed: allow  bash", SIZE).await;
    terminal.say("again\r").await;
    terminal.until_screen("> again", SIZE).await;
    terminal.until_screen("Allow `echo a > a`?", SIZE).await;
    terminal.say("\u{1b}").await;
    terminal.until_screen("cancelled", SIZE).await;
    terminal.say("\u{3}").await;
    end(terminal).await;
}
