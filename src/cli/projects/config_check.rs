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

/// Finds base URLs that are not of HTTP. Other URLs are checked when the settings are read.
fn urls(loaded: &LoadedSettings) -> impl Iterator<Item = Error> {
    let urls = loaded.settings.providers.iter().filter_map(|(name, provider)| Some((name, provider.base_url.as_deref()?)));
    let wrong = urls.filter(|(_, url)| !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)));
    wrong.map(|(name, url)| {
        let message = format!("providers.{name}.base_url: {} is not a URL with the scheme http or https", mask_urls(url));
        Error::invalid_params(message).hint("begin with http:// or https://")
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
