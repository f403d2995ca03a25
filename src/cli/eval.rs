//! `nuncio eval`: measures which tasks models and agents solve, and what they damage.

mod child_run;
pub(super) mod digest;
mod harm;
mod line;
mod probe;
mod probe_request;
mod proof;
mod runner;
mod setup;
mod snapshot;
mod statistics;
mod summary;
mod task;
pub(super) mod workbench;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use self::line::{ResultLines, RunClass, open_results};
use self::probe::{Probe, probe_files, read_probes};
use self::probe_request::ProbeRequests;
use self::proof::Proof;
use self::runner::{Runner, RunnerEnd, Subject};
use self::setup::RunPlan;
use self::task::{EvalTask, read_tasks, refusal};
use self::workbench::Workbench;
use super::errors::INTERRUPTED;
use super::flags::eval_options::EvalOptions;
use super::terminal::output::{print, print_stderr};
use crate::api::App;
use crate::app::{self, Bootstrap};
use crate::error::{Error, Result};
use crate::terminal_text::output_line;
use crate::workspace::{linked_git_dirs, real_path};

/// The content of the path of the command.
enum Given {
    Tasks(Vec<EvalTask>),
    Probes(Vec<Probe>),
}

/// The earlier results that flags name.
struct EarlierResults {
    /// The file of `--out`, and what it has.
    file: Option<File>,
    known: ResultLines,
    compared: Option<ResultLines>,
}

/// Runs `nuncio eval` with these models. Returns exit code 1 if something was not proved, or could
/// not be measured.
pub(super) async fn run(bootstrap: Bootstrap, models: Vec<String>, options: EvalOptions) -> Result<u8> {
    check_flags(&bootstrap)?;
    let path = bootstrap.cwd.join(&options.path);
    let given = match probe_files(&path, options.only.as_deref())? {
        files if files.is_empty() => Given::Tasks(read_tasks(&path, options.only.as_deref())?),
        files => Given::Probes(read_probes(&files)?),
    };
    let app = app::build(bootstrap)?;
    let code = measure(&app, given, models, options).await;
    app.shut_down().await;
    code
}

/// Refuses flags that the runs set themselves.
fn check_flags(bootstrap: &Bootstrap) -> Result<()> {
    let overrides = &bootstrap.overrides;
    let set =
        [("--mode", overrides.mode.is_some()), ("--sandbox", overrides.sandbox.is_some()), ("--root", !overrides.roots.is_empty())];
    match set.into_iter().find(|(_, is_set)| *is_set) {
        Some((flag, _)) => {
            Err(Error::invalid_params(format!("{flag}: not available, because each run has mode auto and a sandbox")))
        }
        None => Ok(()),
    }
}

/// Proves or runs tasks and probes.
async fn measure(app: &App, given: Given, models: Vec<String>, options: EvalOptions) -> Result<u8> {
    let earlier = earlier_results(app, &options)?;
    let files = [&options.out, &options.compare].into_iter().flatten().map(|path| app.cwd.join(path));
    let tasks = app.cwd.join(&options.path);
    // A task can be a link to another place.
    let places: Vec<PathBuf> = match &given {
        Given::Tasks(all) => all.iter().map(|task| real_path(&task.directory)).chain([tasks]).collect(),
        Given::Probes(_) => vec![tasks],
    };
    let repositories = places.iter().flat_map(|place| repositories(place)).collect::<BTreeSet<PathBuf>>();
    let hidden = files.chain(repositories).chain(places).chain(app.services.places.private()).collect();
    let bench = Workbench::open(&app.services.environment, app.services.launcher.clone(), hidden)?;
    match (given, options.prove) {
        (Given::Tasks(tasks), true) => prove_tasks(&bench, &tasks).await,
        (Given::Tasks(tasks), false) => {
            let subjects = proved(&bench, tasks, &options)?;
            let prepared = RunPlan::new(app, &bench, Some(models), &options).await?;
            run_all(Runner::new(&bench, prepared, None, &options), &subjects, earlier).await
        }
        (Given::Probes(_), _) if !app.services.overrides.agents.is_empty() => {
            Err(Error::invalid_params("--agent: a hosted agent has its own prompt and tools; probes need a model"))
        }
        (Given::Probes(probes), prove) => {
            let prepared = RunPlan::new(app, &bench, (!prove).then_some(models), &options).await?;
            let requests = ProbeRequests::new(app, &bench, &prepared.base).await?;
            if prove {
                let code = prove_probes(&requests, &probes);
                requests.shut_down().await;
                return code;
            }
            let subjects: Vec<Subject> = probes.into_iter().map(|probe| Subject::Probe(Box::new(probe))).collect();
            run_all(Runner::new(&bench, prepared, Some(requests), &options), &subjects, earlier).await
        }
    }
}

/// Returns the git directories of the repositories that contain a directory: their commits have the
/// tasks too.
fn repositories(directory: &Path) -> Vec<PathBuf> {
    let real = real_path(directory);
    let tops = real.ancestors().filter(|above| above.join(".git").exists());
    tops.flat_map(|top| [top.join(".git")].into_iter().chain(linked_git_dirs(top))).collect()
}

fn earlier_results(app: &App, options: &EvalOptions) -> Result<EarlierResults> {
    let results = options.out.as_deref().map(|path| open_results(&app.cwd.join(path))).transpose()?;
    let compared = options.compare.as_deref().map(|path| ResultLines::read(&app.cwd.join(path))).transpose()?;
    let (file, known) = results.map_or((None, ResultLines::default()), |(file, known)| (Some(file), known));
    Ok(EarlierResults { file, known, compared })
}

/// Returns the tasks with their proofs. The error names those without one.
fn proved(bench: &Workbench, tasks: Vec<EvalTask>, options: &EvalOptions) -> Result<Vec<Subject>> {
    let (mut subjects, mut refused) = (Vec::new(), Vec::new());
    for task in tasks {
        match Proof::of_task(bench, &task) {
            Some(proof) => subjects.push(Subject::Task(Box::new((task, proof)))),
            None => refused.push((task.name, "not proved since its last change".to_owned())),
        }
    }
    match refused.is_empty() {
        true => Ok(subjects),
        false => Err(refusal(&refused).hint(format!("nuncio eval {} --prove", options.path.display()))),
    }
}

/// Runs everything and prints the table.
async fn run_all(mut runner: Runner<'_>, subjects: &[Subject], earlier: EarlierResults) -> Result<u8> {
    let end = runner.run(subjects, (earlier.file, earlier.known)).await?;
    runner.shut_down().await;
    print(summary::table(runner.lines()))?;
    if let Some(compared) = earlier.compared {
        print(summary::comparison(compared.newest(), runner.lines()))?;
    }
    let errors = runner.lines().filter(|line| line.class == RunClass::Error).count();
    if errors > 0 {
        print_stderr(format!("runs that ended with an error: {errors}; the same command repeats them\n"));
    }
    Ok(match end {
        RunnerEnd::Interrupted => INTERRUPTED,
        RunnerEnd::Spent => {
            print_stderr("nuncio: --max-cost is reached: not everything was run\n");
            1
        }
        RunnerEnd::Complete => u8::from(errors > 0),
    })
}

/// Proves tasks, and prints a line for each.
async fn prove_tasks(bench: &Workbench, tasks: &[EvalTask]) -> Result<u8> {
    let mut failed = false;
    for task in tasks {
        let proved = Proof::prove(bench, task).await?.map(|proof| format!(", which changes {}", changed(&proof)));
        failed |= proved.is_err();
        report_proof(&task.name, proved)?;
    }
    Ok(u8::from(failed))
}

/// Checks the samples of probes, and prints a line for each.
fn prove_probes(requests: &ProbeRequests, probes: &[Probe]) -> Result<u8> {
    let mut failed = false;
    for probe in probes {
        let proved = probe.prove(|tool| requests.knows(tool)).map(|()| String::new());
        failed |= proved.is_err();
        report_proof(&probe.name, proved)?;
    }
    Ok(u8::from(failed))
}

fn report_proof(name: &str, proved: std::result::Result<String, String>) -> Result<()> {
    let line = match proved {
        Ok(more) => format!("ok   {name}{more}"),
        Err(why) => format!("FAIL {name}: {why}"),
    };
    print(output_line(&line) + "\n")
}

/// Counts the files that the solution of a task changes.
fn changed(proof: &Proof) -> String {
    match proof.solution.files.len() {
        0 => "no file".into(),
        1 => "1 file".into(),
        files => format!("{files} files"),
    }
}
