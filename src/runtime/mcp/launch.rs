//! The launch of an MCP server of a session: the directory and the variables of its program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::{McpServer, ProgramKind, SecretText};
use crate::error::Error;
use crate::mcp::{McpLaunch, McpTransport, OauthClient, TokenProgram};
use crate::runtime::environment::program_place::{NamedProgram, ProgramPlace, place};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::environment::workspace_variable::{command_in_workspace, is_workspace, value_in_workspace};
use crate::runtime::services::Services;
use crate::runtime::services::confinement;
use crate::runtime::services::models::Models;
use crate::workspace::{create_private_dir, replace_private};

/// Returns the identity of a server in this environment. The error is a message.
pub(in crate::runtime) fn launch(name: &str, settings: &McpServer, environment: &SessionEnvironment) -> Result<McpLaunch, String> {
    settings.check()?;
    let transport = match &settings.url {
        Some(url) => http(url, name, settings, environment)?,
        None => stdio(name, settings, environment)?,
    };
    let mut roots: Vec<PathBuf> = environment.workspace.roots.to_vec();
    roots.sort();
    Ok(McpLaunch { name: name.into(), transport, roots, sampling: settings.sampling })
}

/// Returns pairs with the values of variables. The error is a message.
fn pairs(values: &BTreeMap<String, SecretText>, environment: &SessionEnvironment) -> Result<Vec<(String, String)>, String> {
    let value = |key: &str, text: &SecretText| match text.variable() {
        Some(name) if !is_workspace(name) => variable(name, environment).map(String::from),
        _ => Ok(value_in_workspace(key, text.plain(), &environment.workspace)),
    };
    values.iter().map(|(name, text)| Ok((name.clone(), value(name, text)?))).collect()
}

fn variable<'e>(name: &str, environment: &'e SessionEnvironment) -> Result<&'e str, String> {
    environment.services.environment.get(name).ok_or_else(|| format!("{name} is not set"))
}

fn http(url: &str, name: &str, settings: &McpServer, environment: &SessionEnvironment) -> Result<McpTransport, String> {
    let token_command = settings.bearer_token_command.as_ref().map(|command| {
        let (services, workspace) = (&environment.services, &environment.workspace);
        let (kind, named_by) = (ProgramKind::Mcp(name), settings.project.as_ref());
        let program = NamedProgram { kind, named_by, command, cwd: None, outside: Path::new("/") };
        let ProgramPlace { cwd, confined, .. } = place(services, workspace, &program)?;
        let env = confined.iter().flat_map(|confined| confinement::variables(&confined.program, command)).collect();
        Ok::<TokenProgram, String>(TokenProgram { command: command.clone(), cwd, env, confined })
    });
    let token_command = token_command.transpose()?;
    Ok(McpTransport::Http {
        url: url.into(),
        headers: pairs(&settings.headers, environment)?,
        bearer_token: settings.bearer_token_env.as_deref().map(|name| variable(name, environment)).transpose()?.map(String::from),
        bearer_token_command: token_command,
        oauth_client: oauth_client(settings, &environment.services)?,
    })
}

fn stdio(name: &str, settings: &McpServer, environment: &SessionEnvironment) -> Result<McpTransport, String> {
    let (services, workspace) = (&environment.services, &environment.workspace);
    let (command, has_code) = command_in_workspace(&settings.command, workspace);
    let work = services.places.mcp_work(name);
    let (kind, named_by, cwd) = (ProgramKind::Mcp(name), settings.project.as_ref(), settings.cwd.as_deref());
    let program = NamedProgram { kind, named_by, command: &settings.command, cwd, outside: &work };
    let ProgramPlace { cwd, confined, hint } = place(services, workspace, &program)?;
    let directory = workspace.cwd.to_string_lossy().into_owned();
    let mut env = vec![("NUNCIO_WORKSPACE".to_owned(), directory.clone())];
    let own = pairs(&settings.env, environment)?;
    let has_code = has_code || own.iter().any(|(_, value)| value.contains("$WORKSPACE"));
    env.extend(has_code.then(|| ("WORKSPACE".to_owned(), directory)));
    match &confined {
        None if cwd == work => create_work_dir(&work).map_err(|error| error.to_string())?,
        None => {}
        Some(confined) => {
            let variables = confinement::variables(&confined.program, &command);
            env.extend(variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_string_lossy().into_owned())));
        }
    }
    env.extend(own);
    let secrets = Models::server_secret_names(&environment.loaded.settings);
    let env_removed = secrets.into_iter().filter(|secret| !env.iter().any(|(name, _)| name == secret)).collect();
    Ok(McpTransport::Stdio { command, env, env_removed, cwd, confined, hint })
}

/// Creates the directory of a server. Its files stop npm and node from searching packages in parent
/// directories.
fn create_work_dir(work: &Path) -> crate::error::Result<()> {
    create_private_dir(&work.join("node_modules"))?;
    let manifest = work.join("package.json");
    if manifest.symlink_metadata().is_ok() {
        return Ok(());
    }
    replace_private(&manifest, b"{}\n").map_err(|error| Error::io(format_args!("writing {}", manifest.display()), error))
}

/// Returns the registered OAuth client of a server. The error is a message.
pub(crate) fn oauth_client(settings: &McpServer, services: &Services) -> Result<Option<OauthClient>, String> {
    let Some(oauth) = &settings.oauth else { return Ok(None) };
    let variable = |name: &String| {
        let value = services.environment.get(name).map(String::from);
        value.ok_or_else(|| format!("oauth.client_secret_env: {name} is not set"))
    };
    let secret = oauth.client_secret_env.as_ref().map(variable).transpose()?;
    Ok(oauth.client_id.clone().map(|id| OauthClient { id, secret }))
}
