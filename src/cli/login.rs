//! `nuncio login` and `nuncio logout`: API keys of providers, in the keyring or in a private file.

use std::io::{IsTerminal, Read};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::errors::INTERRUPTED;
use super::flags::login_flags::LoginOptions;
use super::terminal::lines::TerminalLines;
use super::terminal::output::{print, print_json, print_stderr};
use crate::api::App;
use crate::app::on_signal;
use crate::config::{Settings, most_similar};
use crate::error::{Error, Result};
use crate::limits::KEY_BYTES_MAX;
use crate::model::{Cause, listing};
use crate::runtime::{model_error, provider_names};
use crate::terminal_text::output_line;

/// Runs `nuncio login`. Returns the exit code.
pub(super) async fn login(app: Arc<App>, options: LoginOptions) -> Result<u8> {
    let (models, settings) = (&app.services.models, &app.services.user.settings);
    if options.list {
        return list(&app, options.json);
    }
    let lines = TerminalLines::default();
    let provider = match options.provider {
        Some(provider) => provider,
        None if std::io::stdin().is_terminal() => {
            print_stderr(format!("Providers: {}\nProvider: ", provider_names(settings).join(", ")));
            lines.lock().await.next().await.unwrap_or_default().trim().to_owned()
        }
        None => return Err(Error::invalid_params("the name of a provider is missing").hint("nuncio login anthropic < FILE")),
    };
    check_provider(&provider, settings)?;
    let key = if std::io::stdin().is_terminal() {
        print_stderr(format!("API key of {provider} (it is not shown): "));
        let mut typed = lines.lock().await;
        let key = tokio::select! {
            key = typed.next_hidden() => key,
            // Ends with the display turned on again.
            () = on_signal(CancellationToken::new()) => None,
        };
        print_stderr("\n");
        let Some(key) = key else { return Ok(INTERRUPTED) };
        key
    } else {
        let mut text = String::new();
        let read = std::io::stdin().take(KEY_BYTES_MAX as u64 + 1).read_to_string(&mut text);
        read.map_err(|error| Error::io("reading the key", error))?;
        text
    };
    let key = checked(&key)?;
    let before = models.keys.get(&provider).await.ok().flatten();
    let stored = models.keys.store(&provider, key, !options.file).await?;
    let place = models.keys.place(&stored);
    let source = models.key_source(&provider, settings).unwrap_or_default();
    if !source.starts_with("nuncio login") {
        let note = format!("stored in {place}, but {source} precedes it\n");
        return print(note).map(|()| 0);
    }
    let checked = match options.no_check || !listing::has_list(&provider) {
        true => "not checked".into(),
        false => match check(&app, &provider).await {
            Ok(count) => format!("accepted; {count} models"),
            Err(error) if error.cause == Cause::Authentication => {
                // The key before may be valid.
                match before {
                    Some(before) => drop(models.keys.store(&provider, &before, !options.file).await?),
                    None => drop(models.keys.remove(&provider).await?),
                }
                return Err(model_error(error));
            }
            Err(error) => format!("not checked: {}", output_line(&error.message)),
        },
    };
    print(format!("the API key of {provider} is in {place} ({checked})\n")).map(|()| 0)
}

/// Runs `nuncio logout`. Returns the exit code.
pub(super) async fn logout(app: Arc<App>, provider: Option<String>) -> Result<u8> {
    let keys = &app.services.models.keys;
    let stored = keys.list();
    let provider = match (provider, stored.len()) {
        (Some(provider), _) => provider,
        (None, 1) => stored.keys().next().cloned().unwrap_or_default(),
        (None, 0) => return print("no API key is stored\n").map(|()| 0),
        (None, _) => {
            let names: Vec<&str> = stored.keys().map(String::as_str).collect();
            return Err(
                Error::invalid_params(format!("several API keys are stored: {}", names.join(", "))).hint("name one of them")
            );
        }
    };
    match keys.remove(&provider).await? {
        true => print(format!("removed the API key of {provider}\n")).map(|()| 0),
        false => print(format!("no API key of {provider} is stored\n")).map(|()| 0),
    }
}

/// Asks the provider for its models, which needs a valid key. Returns their number.
async fn check(app: &App, provider: &str) -> Result<usize, crate::model::ModelError> {
    let (models, settings) = (&app.services.models, &app.services.user.settings);
    let endpoint = models.list_endpoint(provider, settings).await?;
    listing::list(&endpoint, &models.clients).await.map(|listed| listed.len())
}

/// Prints the providers that have a key.
fn list(app: &App, json: bool) -> Result<u8> {
    let (models, settings) = (&app.services.models, &app.services.user.settings);
    let sources = models.key_sources(settings);
    if json {
        for (provider, source) in sources {
            print_json(serde_json::json!({ "provider": provider, "source": source }).to_string() + "\n")?;
        }
        return Ok(0);
    }
    if sources.is_empty() {
        return print("no provider has an API key; to store one: nuncio login\n").map(|()| 0);
    }
    let line = |(provider, source): &(String, String)| output_line(&format!("{provider:12} {source}")) + "\n";
    print(sources.iter().map(line).collect::<String>()).map(|()| 0)
}

fn check_provider(provider: &str, settings: &Settings) -> Result<()> {
    let names = provider_names(settings);
    if names.contains(&provider) {
        return Ok(());
    }
    let hint = match most_similar(provider, &names) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => format!("known providers: {}; for another one, set base_url in [providers.NAME]", names.join(", ")),
    };
    Err(Error::invalid_params(format!("provider \"{}\" is unknown", output_line(provider))).hint(hint))
}

/// Returns the key without white space at its ends, if it can be sent in a header.
fn checked(text: &str) -> Result<&str> {
    let key = text.trim();
    if key.is_empty() {
        return Err(Error::invalid_params("the API key is empty"));
    }
    if text.len() > KEY_BYTES_MAX || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::invalid_params("the input is not an API key").hint("give the key alone, in one line"));
    }
    Ok(key)
}
