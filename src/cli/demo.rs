//! `nuncio demo`: a sample repository with a failing test, and the scripted model that mends it with the real tools. Needs no network, no key.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::ask::Answers;
use super::run::{Show, Work};
use super::text::{Look, Text};
use super::{Colours, print};
use crate::api::{Client, Cx, Method, NewSession};
use crate::app::{self, Setup};
use crate::config::Environment;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::patch::{self, Side};
use crate::protocol::acp;

const MEAN: &str = include_str!("demo/mean.sh");
const TEST: &str = include_str!("demo/test.sh");
const SCRIPT: &str = include_str!("demo/script.json");
const PROMPT: &str = "The tests of this repository fail. Find out why, and mend it.";

pub async fn run(environment: Environment, mut setup: Setup, yes: bool, keep: Option<PathBuf>) -> Result<u8> {
    let dir = make_repository(keep)?;
    print(format!("A sample repository: {}\nIts test fails. The prompt: {PROMPT}\n\n", dir.display()))?;
    let script = dir.join(".git").join("demo-script.json");
    write(&script, SCRIPT)?;
    setup.cwd = Some(dir.clone());
    setup.overrides.model = Some(format!("scripted:{}", script.display()));
    let colours = Colours::new(&environment);
    let nuncio = app::nuncio(app::ground(environment, setup)?)?;
    let cx = Cx::new(nuncio.clone(), Arc::new(Client::new("terminal")), CancellationToken::new());
    let made = NewSession::call(cx, acp::NewSessionRequest::new(nuncio.cwd.clone())).await?;
    let id = SessionId::from(&*made.result?.session_id.0);
    let session = nuncio.sessions().await?.get(&id).await?;

    let answers = if yes { Answers::Yes } else { Answers::here() };
    let look = Look { colour: colours.stderr, ..Look::default() };
    let mut work = Work::new(nuncio.clone(), session, 0, Show::Text(Text::new(look, &dir)), answers);
    let worked = work.prompts([PROMPT.to_string()].into()).await;
    nuncio.shut_down().await;
    // The script does not know what to do with a no: what it says then helps nobody.
    let code = if work.denied { 4 } else { worked? };

    let mended = fs::read_to_string(dir.join("mean.sh")).map_err(|error| Error::io("reading mean.sh", error))?;
    if code != 0 || mended == MEAN {
        let why = if code == 4 { "it was not allowed to" } else { "it was stopped" };
        return Err(Error::new(
            if code == 4 { Kind::Forbidden } else { Kind::Cancelled },
            format!("the fault is still there: {why}"),
        )
        .hint("answer its questions with y, or run `nuncio demo --yes`"));
    }
    print(format!(
        "\nWhat it changed:\n{}\nSee the session again:  nuncio sessions show {id}\n",
        patch::unified_diff(Some(Side::text("mean.sh", MEAN)), Some(Side::text("mean.sh", &mended))).text
    ))?;
    Ok(0)
}

fn make_repository(keep: Option<PathBuf>) -> Result<PathBuf> {
    let dir = keep.unwrap_or_else(|| std::env::temp_dir().join(format!("nuncio-demo-{}", uuid::Uuid::now_v7().simple())));
    let dir = std::path::absolute(&dir).map_err(|error| Error::io("resolving the demo's directory", error))?;
    fs::create_dir(&dir).map_err(|error| Error::io(format_args!("making {}", dir.display()), error))?;
    fs::create_dir(dir.join(".git")).map_err(|error| Error::io("making .git", error))?;
    write(&dir.join("mean.sh"), MEAN)?;
    write(&dir.join("test.sh"), TEST)?;
    Ok(dir)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::io(format_args!("writing {}", path.display()), error))
}
