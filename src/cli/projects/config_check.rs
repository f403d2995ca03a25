//! `nuncio config check`: settings that are well-formed and have no effect.

use std::path::Path;

use crate::app::Bootstrap;
use crate::config::{HookSettings, LoadedSettings, NATIVE, below_home, mask_urls, most_similar};
use crate::error::Error;
use crate::process::find_program;

/// Returns the settings that have no effect, each as an error with a hint.
pub(in crate::cli) fn findings(bootstrap: &Bootstrap, loaded: &LoadedSettings) -> Vec<Error> {
    let hooks = loaded.settings.hooks.iter().enumerate();
    let hooks = hooks.filter_map(|(index, hook)| missing_program(bootstrap, index, hook));
    allowed_agents(loaded).chain(urls(loaded)).chain(hooks).chain(granted_directories(bootstrap)).collect()
}

/// Finds names in `agents.allowed` that no agent has.
fn allowed_agents(loaded: &LoadedSettings) -> impl Iterator<Item = Error> {
    let agents = &loaded.settings.agents;
    let names: Vec<&str> = agents.agents.keys().map(String::as_str).collect();
    let unknown = agents.allowed.iter().filter(|name| *name != NATIVE && !agents.agents.contains_key(*name));
    unknown.map(move |name| {
        let define = || format!("define it in [agents.{name}], or remove it");
        let hint = most_similar(name, &names).map_or_else(define, |nearest| format!("did you mean `{nearest}`?"));
        Error::invalid_params(format!("agents.allowed: the agent {name} is not defined")).hint(hint)
    })
}

/// Finds URLs whose scheme is wrong. Those of MCP servers are checked when settings are read.
fn urls(loaded: &LoadedSettings) -> impl Iterator<Item = Error> {
    const HTTP: &[&str] = &["http", "https"];
    let settings = &loaded.settings;
    let own: [(&str, Option<&str>, &[&str]); 4] = [
        ("update.url", settings.update.url.as_deref(), HTTP),
        ("telemetry.otlp_endpoint", settings.telemetry.otlp_endpoint.as_deref(), HTTP),
        ("cluster.address", settings.cluster.address.as_deref(), &["https"]),
        ("store.url", settings.store.postgres(), &["postgres", "postgresql"]),
    ];
    let own = own.into_iter().filter_map(|(setting, url, schemes)| Some((setting.to_owned(), url?.to_owned(), schemes)));
    let providers = settings.providers.iter();
    let providers =
        providers.filter_map(|(name, provider)| Some((format!("providers.{name}.base_url"), provider.base_url.clone()?, HTTP)));
    let urls: Vec<(String, String, &[&str])> = providers.chain(own).collect();
    let is_wrong = |(_, url, schemes): &(String, String, &[&str])| {
        let scheme = url.split_once("://").filter(|(_, rest)| !rest.is_empty()).map(|(scheme, _)| scheme);
        !scheme.is_some_and(|scheme| schemes.contains(&scheme))
    };
    urls.into_iter().filter(is_wrong).map(|(setting, url, schemes)| {
        let message = format!("{setting}: {} is not a URL with the scheme {}", mask_urls(&url), schemes.join(" or "));
        let begin: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
        Error::invalid_params(message).hint(format!("begin with {}", begin.join(" or ")))
    })
}

/// Finds directories in `trust` that do not exist, whose grants have no effect.
fn granted_directories(bootstrap: &Bootstrap) -> impl Iterator<Item = Error> {
    let home = bootstrap.places.home.as_deref().unwrap_or(Path::new("/"));
    let missing = bootstrap.loaded.settings.trust.keys().filter(|directory| !below_home(directory, home).is_dir());
    missing.map(|directory| {
        Error::invalid_params(format!("trust.\"{}\": there is no such directory", directory.display())).hint("correct the path")
    })
}

/// Returns an error if the program of a hook does not exist.
fn missing_program(bootstrap: &Bootstrap, index: usize, hook: &HookSettings) -> Option<Error> {
    let program = hook.command.first()?;
    let path = bootstrap.environment.get("PATH").unwrap_or_default();
    if find_program(program, path, &bootstrap.cwd).is_some() {
        return None;
    }
    let hint = if program.contains('/') { "correct the path" } else { "install it, or give its path" };
    Some(Error::invalid_params(format!("hooks[{index}].command: the program {program} does not exist")).hint(hint))
}
