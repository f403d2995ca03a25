//! `nuncio eval`: measures which tasks models and agents solve, and what they damage.

mod child_run;
mod digest;
mod harm;
mod line;
pub(super) mod options;
mod proof;
mod runner;
mod snapshot;
mod statistics;
mod summary;
mod task;
mod workbench;

use std::path::PathBuf;

use self::line::{ResultLines, open_results};
use self::options::EvalOptions;
use self::proof::Proof;
use self::runner::{ProvedTask, Runner};
use self::task::{Task, read_tasks, refusal};
use self::workbench::Workbench;
use super::errors::INTERRUPTED;
use super::terminal::output::print;
use crate::api::App;
use crate::app::{self, Bootstrap};
use crate::error::{Error, Result};
use crate::terminal_text::output_line;

/// Runs `nuncio eval` with these models. Returns exit code 1 if a task cannot be proved.
pub(super) async fn run(bootstrap: Bootstrap, models: Vec<String>, options: EvalOptions) -> Result<u8> {
    check_flags(&bootstrap)?;
    let tasks = read_tasks(&bootstrap.cwd.join(&options.path), options.only.as_deref())?;
    let app = app::build(bootstrap)?;
    let code = run_tasks(&app, &tasks, models, options).await;
    app.shut_down().await;
    code
}

/// Refuses flags that the runs set themselves.
fn check_flags(bootstrap: &Bootstrap) -> Result<()> {
    let overrides = &bootstrap.overrides;
    let set = [
        ("--mode", overrides.mode.is_some()),
        ("--sandbox", overrides.sandbox.is_some()),
        ("--root", !overrides.roots.is_empty()),
    ];
    match set.into_iter().find(|(_, is_set)| *is_set) {
        Some((flag, _)) => Err(Error::invalid_params(format!("{flag}: not available, because each run has mode auto and a sandbox"))),
        None => Ok(()),
    }
}

async fn run_tasks(app: &App, tasks: &[Task], models: Vec<String>, options: EvalOptions) -> Result<u8> {
    let results = options.out.as_deref().map(|path| open_results(&app.cwd.join(path))).transpose()?;
    let earlier = options.compare.as_deref().map(|path| ResultLines::read(&app.cwd.join(path))).transpose()?;
    let files = [&options.out, &options.compare].into_iter().flatten().map(|path| app.cwd.join(path));
    let hidden: Vec<PathBuf> =
        files.chain([app.cwd.join(&options.path)]).chain(app.services.places.private()).collect();
    let bench = Workbench::open(&app.services.environment, app.services.launcher.clone(), hidden)?;
    if options.prove {
        return prove(&bench, tasks).await;
    }
    let (mut proved, mut refused) = (Vec::new(), Vec::new());
    for task in tasks {
        match Proof::of_task(&bench, task) {
            Some(proof) => proved.push(ProvedTask { task, proof }),
            None => refused.push((task.name.clone(), "not proved since its last change".to_owned())),
        }
    }
    if !refused.is_empty() {
        return Err(refusal(&refused).hint(format!("nuncio eval {} --prove", options.path.display())));
    }
    let mut runner = Runner::new(app, &bench, models, &options).await?;
    let (file, known) = results.map_or((None, ResultLines::default()), |(file, known)| (Some(file), known));
    let interrupted = runner.run(&proved, (file, known)).await?;
    print(summary::table(runner.lines()))?;
    if let Some(earlier) = earlier {
        print(summary::comparison(earlier.0.values(), runner.lines()))?;
    }
    Ok(if interrupted { INTERRUPTED } else { 0 })
}

/// Proves tasks, and prints a line for each.
async fn prove(bench: &Workbench, tasks: &[Task]) -> Result<u8> {
    let mut failed = false;
    for task in tasks {
        let line = match Proof::prove(bench, task).await? {
            Ok(proof) => format!("ok   {}: {} files in its solution", task.name, proof.solution.files.len()),
            Err(why) => {
                failed = true;
                format!("FAIL {}: {why}", task.name)
            }
        };
        print(output_line(&line) + "\n")?;
    }
    Ok(u8::from(failed))
}
