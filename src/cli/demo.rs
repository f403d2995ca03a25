//! `nuncio demo`: a scripted model fixes a failing test in a sample repository, with the real
//! tools. Needs neither a network nor a key.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::chat;
use super::errors::DENIED;
use super::flags::run_options::ChatOptions;
use super::prompt_runner::PromptRunner;
use super::prompt_runner::runner_output::RunnerOutput;
use super::terminal::ask::Approver;
use super::terminal::output::{Colours, print};
use super::terminal::renderer::{RenderOptions, TerminalRenderer};
use crate::api::{App, NewSessionParams};
use crate::app::{self, CommonArgs, on_signal};
use crate::client::SessionClient;
use crate::config::Environment;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::patch::{self, Side};
use crate::task;

const MEAN: &str = include_str!("demo/mean.sh");
const TEST: &str = include_str!("demo/test.sh");
const SCRIPT: &str = include_str!("demo/script.json");
const PROMPT: &str = "The tests of this repository fail. Find the cause and fix it.";

/// Creates the repository, runs the prompt and prints the change. Fails with `Forbidden` if a tool
/// call was denied.
pub(crate) async fn run(environment: Environment, mut args: CommonArgs, yes: bool, keep: Option<PathBuf>) -> Result<u8> {
    let dir = make_repository(keep)?;
    print(format!("A sample repository: {}\nIts test fails. Prompt: {PROMPT}\n\n", dir.display()))?;
    let script = dir.join(".git").join("demo-script.json");
    write(&script, SCRIPT)?;
    args.cwd = Some(dir.clone());
    args.overrides.model = Some(format!("scripted:{}", script.display()));
    let (colours, in_chat) = (Colours::new(&environment), is_in_chat(yes, &environment));
    let app = app::build(app::bootstrap(environment, args)?)?;
    let (id, code) = match in_chat {
        true => {
            let options = ChatOptions { words: vec![PROMPT.into()], ..ChatOptions::default() };
            let id = chat::converse(&app, options, colours).await;
            app.shut_down().await;
            (id?, 0)
        }
        false => run_prompt(app, yes, colours).await?,
    };

    let fixed = fs::read_to_string(dir.join("mean.sh")).map_err(|error| Error::io("reading mean.sh", error))?;
    if code != 0 || fixed == MEAN {
        let why = if code == DENIED { "a tool call was denied" } else { "the demo was stopped" };
        return Err(Error::new(
            if code == DENIED { Kind::Forbidden } else { Kind::Cancelled },
            format!("the test still fails: {why}"),
        )
        .hint("allow the calls, or run `nuncio demo --yes`"));
    }
    print(format!(
        "\nChanges:\n{}\nShow the session again:  nuncio sessions show {id}\n",
        patch::unified_diff(Some(Side::text("mean.sh", MEAN)), Some(Side::text("mean.sh", &fixed))).text
    ))?;
    Ok(0)
}

/// Returns whether the demo runs in the chat: on a terminal of the chat, unless every call is
/// allowed.
pub(crate) fn is_in_chat(yes: bool, environment: &Environment) -> bool {
    !yes && chat::check_terminal(&ChatOptions::default(), environment).is_ok()
}

/// Runs the prompt. Returns the session, and exit code 4 if a tool call was denied.
async fn run_prompt(app: Arc<App>, yes: bool, colours: Colours) -> Result<(SessionId, u8)> {
    let client = SessionClient::new(app.clone(), "terminal");
    let session = client.begin(NewSessionParams::default()).await?;
    let id = session.0.clone();
    let approver = if yes { Approver::Yes } else { Approver::for_terminal() };
    let options = RenderOptions { colour: colours.stderr, ..RenderOptions::default() };
    let renderer = TerminalRenderer::new(options, &app.cwd);
    let output = RunnerOutput {
        json: false,
        answers: true,
        renderer,
        status_line: false,
        watched: false,
        is_kept: false,
        ascii: colours.ascii,
    };
    let interrupted = CancellationToken::new();
    task::spawn(on_signal(interrupted.clone()));
    let mut runner = PromptRunner::new(client, session, output, approver, interrupted).await?;
    let result = runner.prompts([PROMPT.to_string()].into()).await;
    let denied = runner.denied();
    drop(runner);
    app.shut_down().await;
    // Ignore the result if a call was denied: the script does not expect denied calls, so its error
    // would be misleading.
    Ok((id, if denied { DENIED } else { result? }))
}

fn make_repository(keep: Option<PathBuf>) -> Result<PathBuf> {
    let dir = keep.unwrap_or_else(|| std::env::temp_dir().join(format!("nuncio-demo-{}", uuid::Uuid::now_v7().simple())));
    let dir = std::path::absolute(&dir).map_err(|error| Error::io("resolving the directory of the demo", error))?;
    fs::create_dir(&dir).map_err(|error| Error::io(format_args!("creating {}", dir.display()), error))?;
    fs::create_dir(dir.join(".git")).map_err(|error| Error::io("creating .git", error))?;
    write(&dir.join("mean.sh"), MEAN)?;
    write(&dir.join("test.sh"), TEST)?;
    Ok(dir)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::io(format_args!("writing {}", path.display()), error))
}
