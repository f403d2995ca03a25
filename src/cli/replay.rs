//! `nuncio replay`: repeats a recorded session and compares its requests, results and files.
//! `nuncio sessions export --scripted` makes recordings.

mod application;
mod difference;
mod expectation;
pub(super) mod export;
mod mask;
mod normaliser;
mod player;
mod recorded_model;
mod recording;
mod session_log;
mod start_files;
mod workspace;

use std::path::PathBuf;

use self::difference::{differences, shown};
use self::expectation::Expectation;
use self::player::play;
use super::flags::replay_options::ReplayOptions;
use super::terminal::output::print;
use crate::config::Environment;
use crate::error::{Error, Result};
use crate::terminal_text::output_line;

/// Runs `nuncio replay`. Returns exit code 1 if something differs.
pub(super) async fn run(environment: Environment, cwd: Option<PathBuf>, options: ReplayOptions) -> Result<u8> {
    let here = std::env::current_dir().map_err(|error| Error::io("finding the current directory", error))?;
    let dir = here.join(cwd.unwrap_or_default()).join(&options.dir);
    let expected = Expectation::read(&dir);
    let replayed = play(&dir, &environment).await?.expectation;
    if options.update {
        replayed.write(&dir)?;
    }
    let found = match (expected, options.update) {
        (Ok(expected), _) => differences(&expected, &replayed),
        // There are no expectations yet.
        (Err(_), true) => Vec::new(),
        (Err(error), false) => return Err(error),
    };
    let name = options.dir.display();
    if found.is_empty() {
        return print(output_line(&format!("ok   {name}, {} requests", replayed.requests.all().len())) + "\n").map(|()| 0);
    }
    let title = if options.update { "updated" } else { "DIFFERS" };
    print(output_line(&format!("{title} {name}")) + "\n" + &shown(&found))?;
    Ok(u8::from(!options.update))
}
