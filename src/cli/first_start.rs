//! The first start: no model is set up. Says where models were searched, and what to do.

use crate::api::App;
use crate::hub::{self, KNOWN};
use crate::model::providers::PROVIDERS;
use crate::terminal_text::output_line;

/// Returns the lines for a user who has no model, `None` if there is one.
pub(super) async fn guide(app: &App) -> Option<String> {
    let services = &app.services;
    services.models.default_id(&services.user.settings).await.err()?;
    let remote: Vec<&str> =
        PROVIDERS.iter().filter(|provider| !provider.local).filter_map(|provider| provider.key_env.first().copied()).collect();
    let local: Vec<&str> = PROVIDERS.iter().filter(|provider| provider.local).map(|provider| provider.name).collect();
    let path = services.environment.get("PATH").unwrap_or_default();
    let installed = KNOWN.iter().filter(|known| {
        let program = (known.settings)().command_line().into_iter().next().unwrap_or_default();
        hub::find(&program, path).is_some()
    });
    let installed: Vec<&str> = installed.map(|known| known.name).collect();
    let agents = match installed.first() {
        Some(first) => format!("{} installed; to use one: nuncio agents add {first}", installed.join(", ")),
        None => format!("none of {} is installed", KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")),
    };
    let (first, others) = remote.split_at(remote.len().min(3));
    Some(format!(
        "No model is set up. nuncio looked for:\n  \
         API keys       {} and {} others: none is set\n  \
         local servers  {}: none answers\n  \
         other agents   {}\n\
         To begin: export {}=…, or start a local server. Without a model: nuncio demo\n",
        first.join(", "),
        others.len(),
        local.join(", "),
        output_line(&agents),
        first.first().copied().unwrap_or_default(),
    ))
}
