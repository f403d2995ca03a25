//! `nuncio doctor`: checks the settings, the model and the programs that nuncio uses.

use std::result::Result as StdResult;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;

use super::doctor_programs::{self, Finding};
use crate::api::App;
use crate::app::{self, Bootstrap};
use crate::cli::projects::config::with_project;
use crate::cli::terminal::output::print;
use crate::config::LoadedSettings;
use crate::content::Part;
use crate::error::Result;
use crate::model::{Chunk, Message, Model, ModelError, Request, Retry};
use crate::options::Thinking;
use crate::store::Store;
use crate::terminal_text::output_line;

/// How long `doctor` waits for the first event of a model.
const DOCTOR_MODEL: Duration = Duration::from_secs(30);

/// The checks so far.
#[derive(Default)]
struct Report {
    failures: u32,
    /// The lines, unless they are printed at once.
    lines: Option<String>,
}

impl Report {
    /// Adds the line of a check, or prints it.
    fn line(&mut self, name: &str, finding: impl Into<Finding>) -> Result<()> {
        let (mark, text) = match finding.into() {
            Finding::Ok(text) => ("ok  ", text),
            Finding::Note(text) => ("note", text),
            Finding::Fail(text) => {
                self.failures += 1;
                ("FAIL", text)
            }
        };
        let line = format!("{mark} {name:9} {}\n", output_line(&text));
        match &mut self.lines {
            Some(lines) => lines.push_str(&line),
            None => print(line)?,
        }
        Ok(())
    }
}

/// Prints one line per check: `ok` with the finding, `note` if something optional is missing, or
/// `FAIL` with the error. Returns exit code 1 if a check failed.
pub(crate) async fn doctor(bootstrap: Bootstrap) -> Result<u8> {
    let mut report = Report::default();
    report.line(
        "nuncio",
        Finding::Ok(format!("{} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH)),
    )?;
    report.line(
        "settings",
        with_project(&bootstrap).map(|loaded| settings_line(&bootstrap, &loaded)).map_err(|error| error.to_string()),
    )?;
    let data = bootstrap.places.data.clone();
    let store = Store::open(&data, bootstrap.loaded.settings.store.postgres()).await;
    report.line("store", store.map(|store| store.place()).map_err(|error| error.to_string()))?;
    let app: Arc<_> = app::build(bootstrap)?;
    check(&app, &mut report).await?;
    app.shut_down().await;
    Ok(u8::from(report.failures > 0))
}

/// Returns the lines about a running application.
pub(in crate::cli) async fn lines(app: &Arc<App>) -> Result<String> {
    let mut report = Report { lines: Some(String::new()), ..Report::default() };
    check(app, &mut report).await?;
    Ok(report.lines.unwrap_or_default())
}

/// Checks the keys, the model and the programs of an application.
async fn check(app: &Arc<App>, report: &mut Report) -> Result<()> {
    let (models, settings) = (&app.services.models, &app.services.user.settings);
    for (provider, source) in models.key_sources(settings) {
        report.line("key", Finding::Ok(format!("{provider}: from {source}")))?;
    }
    let model = match models.default_id(settings).await {
        Ok(id) => match models.open(&id, settings).await {
            Ok(model) => {
                model.prepare().await;
                probe(&*model).await.map(|answer| format!("{id} ({}): {answer}", model_line(&*model, models.found_at(&id))))
            }
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    report.line(
        "model",
        model.map_err(|error| format!("{}{}", error.message, error.hint.map(|hint| format!(": {hint}")).unwrap_or_default())),
    )?;
    let shell = app.services.launcher.spawn(&crate::process::Command::shell("command -v bash || command -v sh", &app.cwd));
    report.line("shell", shell_line(shell).await)?;
    // Invalid settings were reported.
    if let Ok(loaded) = app.services.settings(&app.cwd) {
        for (name, finding) in doctor_programs::check(app, &loaded).await {
            report.line(name, finding)?;
        }
    }
    Ok(())
}

/// Sends one short request and waits until the answer starts, which verifies the base URL, the key
/// and the model's name. The request is not retried: a busy provider is a failure.
async fn probe(model: &dyn Model) -> StdResult<&'static str, ModelError> {
    if model.id().starts_with("scripted:") {
        return Ok("a script");
    }
    let stream = model.stream(Request {
        system: "".into(),
        messages: Arc::new(vec![Arc::new(Message::User(vec![Part::text("Answer with the word ok.")]))]),
        tools: Arc::new([]),
        thinking: Thinking::Off,
        json_answer: false,
        cache_key: "doctor".into(),
        refused: std::sync::Arc::default(),
    });
    let failed = |why: String| ModelError::new(Retry::Never, why);
    let chunks = stream.filter(|chunk| {
        let usage = matches!(chunk, Ok(Chunk::Usage(_) | Chunk::UsageSoFar(_)));
        async move { !usage }
    });
    match tokio::time::timeout(DOCTOR_MODEL, std::pin::pin!(chunks).next()).await {
        Ok(Some(Ok(Chunk::Retry { reason, .. }))) => Err(failed(reason)),
        Ok(Some(Ok(_))) => Ok("answers"),
        Ok(Some(Err(error))) => Err(error),
        Ok(None) => Err(failed(format!("{}: the model returned an empty answer", model.id()))),
        Err(_) => Err(failed(format!("{}: no answer within {} s", model.id(), DOCTOR_MODEL.as_secs()))),
    }
}

/// Describes a model. `base_url` is the address of a detected local server.
fn model_line(model: &dyn Model, base_url: Option<&str>) -> String {
    let server = base_url.map(|base_url| format!("a local server at {base_url}"));
    let tools = (!model.supports_tools()).then(|| "its chat template has no tools".to_owned());
    let parts = [server, Some(format!("{} tokens", model.context_window())), tools];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn settings_line(bootstrap: &Bootstrap, loaded: &LoadedSettings) -> String {
    let file = &bootstrap.places.file;
    let user = if file.exists() { file.display().to_string() } else { format!("defaults ({} does not exist)", file.display()) };
    if loaded.ignored.is_empty() { user } else { format!("{user}; not used of this project: {}", loaded.ignored.join(", ")) }
}

async fn shell_line(spawned: Result<crate::process::Child>) -> StdResult<String, String> {
    let mut child = spawned.map_err(|error| error.to_string())?;
    let mut output = Vec::new();
    while child.output.read(&mut output).await.map_err(|error| error.to_string())? > 0 {}
    child.wait().await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output).trim().to_string())
}
