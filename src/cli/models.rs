//! `nuncio models`: lists the models that the configured providers offer.

use std::sync::Arc;

use super::errors::report;
use super::flags::ModelsOptions;
use super::terminal::output::{print, print_json};
use crate::api::{App, ModelList, ModelView, PriceView};
use crate::config::Ability;
use crate::error::{Error, Result};
use crate::runtime::{ModelSource, Refresh, model_error, provider_names};

/// Runs `nuncio models`. Errors of single providers are printed to standard error. Returns exit
/// code 3 if no provider returned a list and none is cached.
pub(crate) async fn run(app: Arc<App>, options: ModelsOptions) -> Result<u8> {
    let (services, settings) = (&app.services, &app.services.user.settings);
    let names = provider_names(settings);
    if let Some(name) = options.providers.iter().find(|name| !names.contains(&name.as_str())) {
        let error = Error::invalid_params(format!("provider \"{name}\" is unknown"));
        return Err(error.hint(format!("known providers: {}", names.join(", "))));
    }
    let default = match services.models.known_default(settings) {
        None if options.providers.is_empty() && !services.has_providers(settings) => {
            Some(services.models.default_id(settings).await.map_err(model_error)?)
        }
        known => known,
    };
    let refresh = if options.refresh { Refresh::All } else { Refresh::Stale };
    let mut lists = services.refresh_lists(settings, &options.providers, refresh).await;
    lists.sort_by(|one, other| one.provider.cmp(&other.provider));
    for error in lists.iter().filter_map(|list| list.error.clone()) {
        report(&model_error(error));
    }
    if !lists.is_empty() && lists.iter().all(|list| list.error.is_some() && list.fetched_ms.is_none()) {
        return Ok(3);
    }
    let mut models = services.offered_models(settings, default.as_deref().unwrap_or_default(), &options.providers).await;
    // A provider that did not return its list may not offer the models of the catalogue.
    models.retain(|model| {
        let failed = lists.iter().any(|list| list.provider == model.provider() && list.error.is_some());
        !failed || model.source != ModelSource::Catalog
    });
    models.sort_by(|one, other| one.provider().cmp(other.provider()));
    let list = ModelList::new(models, lists, default);
    if options.json {
        let text = serde_json::to_string_pretty(&list).map_err(|error| Error::internal(format!("writing the list: {error}")))?;
        print_json(text + "\n")?;
    } else {
        print(table(&list.models))?;
    }
    Ok(0)
}

/// Formats the models as a table with one line per model; `*` marks the default.
fn table(models: &[ModelView]) -> String {
    let heading = ["MODEL", "CONTEXT", "OUTPUT", "PRICE IN/OUT", "ABILITIES", "THINKING"].map(String::from);
    let rows: Vec<(char, [String; 6])> =
        models.iter().map(|model| (if model.is_default { '*' } else { ' ' }, row(model))).collect();
    let rows = [(' ', heading)].into_iter().chain(rows);
    let rows: Vec<(char, [String; 6])> = rows.collect();
    let width = |column: usize| rows.iter().map(|(_, cells)| cells[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |(mark, cells): &(char, [String; 6])| {
        let cells: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{mark} {}", cells.join("  ")).trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn row(model: &ModelView) -> [String; 6] {
    let words = |words: Vec<String>| if words.is_empty() { "-".to_owned() } else { words.join(" ") };
    [
        model.id.clone(),
        tokens(model.context_window),
        tokens(model.max_output_tokens.map(u64::from)),
        model.price.as_ref().map_or("-".to_owned(), price),
        words(model.abilities.iter().flatten().filter_map(|ability| ability_name(*ability)).map(String::from).collect()),
        words(model.thinking.clone()),
    ]
}

/// Returns the name of an ability in the table. Parallel tools are omitted: nearly all models with
/// tools have them.
fn ability_name(ability: Ability) -> Option<&'static str> {
    match ability {
        Ability::Tools => Some("tools"),
        Ability::ParallelTools => None,
        Ability::Images => Some("images"),
        Ability::Pdf => Some("pdf"),
        Ability::Audio => Some("audio"),
    }
}

/// Formats a number of tokens: `200k`, `1.05M`. An unknown number is `-`.
fn tokens(tokens: Option<u64>) -> String {
    match tokens {
        None => "-".to_owned(),
        Some(tokens) if tokens < 1_000 => tokens.to_string(),
        Some(tokens) if tokens < 999_500 => format!("{}k", (tokens + 500) / 1_000),
        Some(tokens) => format!("{}M", ((tokens + 5_000) / 10_000) as f64 / 100.0),
    }
}

/// Dollars per million tokens.
fn price(price: &PriceView) -> String {
    format!("${}/${}", price.input, price.output)
}
