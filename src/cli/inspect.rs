//! `nuncio config` and `nuncio doctor`.

use std::sync::Arc;

use futures_util::StreamExt;

use super::config_check::findings;
use super::errors::{exit_code, report};
use super::flags::ConfigCommand;
use super::output::print;
use crate::app::{self, Bootstrap};
use crate::config::{Loaded, load_project, mask_urls};
use crate::content::Part;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Chunk, Message, Model, ModelError, Request, Retry, providers};
use crate::options::Thinking;
use crate::store::Store;

fn with_project(bootstrap: &Bootstrap) -> Result<Loaded> {
    let loaded = load_project(&bootstrap.loaded, &bootstrap.places, &bootstrap.cwd, &bootstrap.environment, &bootstrap.overrides)?;
    loaded.check_tools(&bootstrap.tools.known(), &bootstrap.places, &bootstrap.cwd)?;
    Ok(loaded)
}

/// Runs `nuncio config`.
pub(crate) fn config(bootstrap: &Bootstrap, command: Option<ConfigCommand>) -> Result<u8> {
    match command.unwrap_or(ConfigCommand::Show) {
        ConfigCommand::Path => print(format!("{}\n", bootstrap.places.file.display()))?,
        ConfigCommand::Check => {
            let loaded = with_project(bootstrap)?;
            for name in &loaded.ignored {
                print(format!("not used: {name} of this project (to use it: nuncio trust {})\n", bootstrap.cwd.display()))?;
            }
            if let (Some(why), false) = (loaded.distrusted, loaded.ignored.is_empty()) {
                print(format!("the settings of this project cannot grant permissions: {why}\n"))?;
            }
            let findings = findings(bootstrap, &loaded);
            if !findings.is_empty() {
                findings.iter().for_each(report);
                return Ok(exit_code(&findings[0]));
            }
            print("the settings are valid\n")?;
        }
        ConfigCommand::Show => {
            let loaded = with_project(bootstrap)?;
            let text = toml::to_string_pretty(&loaded.settings)
                .map_err(|error| Error::internal(format!("serializing the settings: {error}")))?;
            print(mask_urls(&text))?;
            for (name, origin) in &loaded.origins {
                print(format!("# {name}: {origin}\n"))?;
            }
        }
    }
    Ok(0)
}

/// Prints one line per check: `ok` with the finding, or `FAIL` with the error. Returns exit code 1
/// if a check failed.
pub(crate) async fn doctor(bootstrap: Bootstrap) -> Result<u8> {
    let mut failures = 0;
    let mut line = |name: &str, result: std::result::Result<String, String>| {
        let (mark, text) = match result {
            Ok(text) => ("ok  ", text),
            Err(text) => {
                failures += 1;
                ("FAIL", text)
            }
        };
        print(format!("{mark} {name:9} {text}\n"))
    };
    line("nuncio", Ok(format!("{} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH)))?;
    line("settings", with_project(&bootstrap).map(|loaded| settings_line(&bootstrap, &loaded)).map_err(|error| error.to_string()))?;
    let data = bootstrap.places.data.clone();
    line("store", Store::open(&data).map(|_| data.join("nuncio.db").display().to_string()).map_err(|error| error.to_string()))?;
    for provider in providers::PROVIDERS.iter().filter(|provider| !provider.local) {
        let found = provider.key_env.iter().find(|name| bootstrap.environment.get(name).is_some());
        if let Some(name) = found {
            line("key", Ok(format!("{}: ${name} is set", provider.name)))?;
        }
    }
    let app: Arc<_> = app::build(bootstrap)?;
    let (models, settings) = (&app.services.models, &app.services.user.settings);
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
    line(
        "model",
        model.map_err(|error| format!("{}{}", error.message, error.hint.map(|hint| format!(": {hint}")).unwrap_or_default())),
    )?;
    let shell = app.services.launcher.spawn(&crate::process::Command::shell("command -v bash || command -v sh", &app.cwd));
    line("shell", shell_line(shell).await)?;
    Ok(if failures > 0 { 1 } else { 0 })
}

/// Sends one short request and waits until the answer starts, which verifies the base URL, the key
/// and the model's name. The request is not retried: a busy provider is a failure.
async fn probe(model: &dyn Model) -> std::result::Result<&'static str, ModelError> {
    if model.id().starts_with("scripted:") {
        return Ok("a script");
    }
    let stream = model.stream(Request {
        system: String::new(),
        messages: vec![Arc::new(Message::User(vec![Part::text("Answer with the word ok.")]))],
        tools: Arc::new([]),
        thinking: Thinking::Off,
        cache_key: "doctor".into(),
    });
    let failed = |why: String| ModelError::new(Retry::Never, why);
    let chunks = stream.filter(|chunk| {
        let usage = matches!(chunk, Ok(Chunk::Usage(_) | Chunk::UsageSoFar(_)));
        async move { !usage }
    });
    match tokio::time::timeout(limits::DOCTOR_MODEL, std::pin::pin!(chunks).next()).await {
        Ok(Some(Ok(Chunk::Retry { reason, .. }))) => Err(failed(reason)),
        Ok(Some(Ok(_))) => Ok("answers"),
        Ok(Some(Err(error))) => Err(error),
        Ok(None) => Err(failed(format!("{}: the model returned an empty answer", model.id()))),
        Err(_) => Err(failed(format!("{}: no answer within {} s", model.id(), limits::DOCTOR_MODEL.as_secs()))),
    }
}

/// Describes a model. `base_url` is the address of a detected local server.
fn model_line(model: &dyn Model, base_url: Option<&str>) -> String {
    let server = base_url.map(|base_url| format!("a local server at {base_url}"));
    let tools = (!model.supports_tools()).then(|| "its chat template has no tools".to_owned());
    let parts = [server, Some(format!("{} tokens", model.context_window())), tools];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn settings_line(bootstrap: &Bootstrap, loaded: &Loaded) -> String {
    let file = &bootstrap.places.file;
    let user = if file.exists() { file.display().to_string() } else { format!("defaults ({} does not exist)", file.display()) };
    if loaded.ignored.is_empty() { user } else { format!("{user}; not used of this project: {}", loaded.ignored.join(", ")) }
}

async fn shell_line(spawned: Result<crate::process::Child>) -> std::result::Result<String, String> {
    let mut child = spawned.map_err(|error| error.to_string())?;
    let mut output = Vec::new();
    while child.output.read(&mut output).await.map_err(|error| error.to_string())? > 0 {}
    child.wait().await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output).trim().to_string())
}
