//! `nuncio demo`: a scripted model fixes a failing test in a sample repository, with the real
//! tools. Needs neither a network nor a key.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::ask::Answers;
use super::run::{Show, Work};
use super::text::{Look, Text};
use super::{Colours, print};
use crate::api::{CallContext, Client, Method, NewSession};
use crate::app::{self, Setup};
use crate::config::Environment;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::patch::{self, Side};
use crate::protocol::acp;

const MEAN: &str = include_str!("demo/mean.sh");
const TEST: &str = include_str!("demo/test.sh");
const SCRIPT: &str = include_str!("demo/script.json");
const PROMPT: &str = "The tests of this repository fail. Find the cause and fix it.";

/// Creates the repository, runs the prompt and prints the change. Fails with `Forbidden` if a call
/// was denied.
pub async fn run(environment: Environment, mut setup: Setup, yes: bool, keep: Option<PathBuf>) -> Result<u8> {
    let dir = make_repository(keep)?;
    print(format!("A sample repository: {}\nIts test fails. Prompt: {PROMPT}\n\n", dir.display()))?;
    let script = dir.join(".git").join("demo-script.json");
    write(&script, SCRIPT)?;
    setup.cwd = Some(dir.clone());
    setup.overrides.model = Some(format!("scripted:{}", script.display()));
    let colours = Colours::new(&environment);
    let nuncio = app::nuncio(app::ground(environment, setup)?)?;
    let cx = CallContext::new(nuncio.clone(), Arc::new(Client::new("terminal")), CancellationToken::new());
    let created = NewSession::call(cx, acp::NewSessionRequest::new(nuncio.cwd.clone())).await?;
    let id = SessionId::from(&*created.result?.session_id.0);
    let session = nuncio.sessions().await?.get(&id).await?;

    let answers = if yes { Answers::Yes } else { Answers::for_terminal() };
    let look = Look { colour: colours.stderr, ..Look::default() };
    let mut work = Work::new(nuncio.clone(), session, 0, Show::Text(Text::new(look, &dir)), answers);
    let result = work.prompts([PROMPT.to_string()].into()).await;
    nuncio.shut_down().await;
    // The script does not expect a denied call: its error would be misleading.
    let code = if work.denied { 4 } else { result? };

    let fixed = fs::read_to_string(dir.join("mean.sh")).map_err(|error| Error::io("reading mean.sh", error))?;
    if code != 0 || fixed == MEAN {
        let why = if code == 4 { "a tool call was denied" } else { "the turn was stopped" };
        return Err(Error::new(if code == 4 { Kind::Forbidden } else { Kind::Cancelled }, format!("the test still fails: {why}"))
            .hint("answer the questions with y, or run `nuncio demo --yes`"));
    }
    print(format!(
        "\nWhat it changed:\n{}\nShow the session again:  nuncio sessions show {id}\n",
        patch::unified_diff(Some(Side::text("mean.sh", MEAN)), Some(Side::text("mean.sh", &fixed))).text
    ))?;
    Ok(0)
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
