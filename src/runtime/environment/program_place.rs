//! The directories in which hooks and servers of a session run, and whether they run in the
//! project.

use std::path::{Path, PathBuf};

use crate::config::{
    DataPaths, HookSettings, ProgramKind, ProjectProgram, SessionVariables, Settings, files_in_command, script_word,
};
use crate::hooks::CommandHook;
use crate::process::{ProgramConfinement, find_program};
use crate::runtime::environment::workspace_variable::in_workspace;
use crate::runtime::services::Services;
use crate::runtime::services::confinement;
use crate::workspace::{Workspace, real_path};

/// A program that a setting names.
pub(in crate::runtime) struct NamedProgram<'a> {
    pub kind: ProgramKind<'a>,
    /// Set if the project's settings name the program.
    pub named_by: Option<&'a ProjectProgram>,
    pub command: &'a [String],
    /// The directory of the setting.
    pub cwd: Option<&'a Path>,
    /// The directory of a program of the user without `cwd`.
    pub outside: &'a Path,
}

/// The directory and the confinement of a program that a setting names.
pub(in crate::runtime) struct ProgramPlace {
    pub cwd: PathBuf,
    /// Set if the program runs in the project, confined.
    pub confined: Option<ProgramConfinement>,
    /// A sentence for messages about failures.
    pub hint: Option<String>,
}

/// Returns the place of a program. A program that the project names runs confined, by default in
/// the session's directory; so does one of the user that runs in the project, or that runs a file
/// of it. Without `cwd`, the user's other programs run in `outside`, because the files of a project
/// decide what usual launchers and interpreters run. The error is a message.
pub(in crate::runtime) fn place(
    services: &Services,
    workspace: &Workspace,
    program: &NamedProgram<'_>,
) -> Result<ProgramPlace, String> {
    let text = program.cwd.map(|cwd| in_workspace(&cwd.to_string_lossy(), workspace));
    let cwd = text.as_deref().map(|text| workspace.resolve(text));
    if let (Some(given), Some(cwd)) = (program.cwd, &cwd) {
        let is_of_project = given.is_relative() || given.to_string_lossy().contains("$WORKSPACE");
        let is_shown_inside = workspace.roots.iter().any(|root| cwd.path.starts_with(root));
        if is_of_project && !cwd.inside && (program.named_by.is_none() || is_shown_inside) {
            return Err(format!("not started: cwd = \"{}\" is outside of the project: {}", given.display(), cwd.real.display()));
        }
    }
    let base = cwd.as_ref().map_or(program.outside, |cwd| &cwd.path);
    let reason = match &cwd {
        _ if program.named_by.is_some() => None,
        Some(cwd) if cwd.inside => Some(String::new()),
        None if is_inside(workspace, base) => Some(format!("; {} is in the project", base.display())),
        _ => file_inside(services, workspace, program.command, base).map(|file| format!("; {} is in the project", file.display())),
    };
    let in_project = || ProjectProgram::new(&services.places, &services.user.settings.trust, &workspace.cwd, program.kind, false);
    let confined = program.named_by.cloned().or_else(|| reason.is_some().then(in_project));
    let hint = match (&confined, &cwd) {
        (Some(confined), _) => Some(confined.hint() + &reason.unwrap_or_default()),
        (None, Some(_)) => None,
        (None, None) => Some(format!(
            "it runs in {}, outside of the project: if it needs the project's directory, set cwd = \"$WORKSPACE\"",
            base.display()
        )),
    };
    let default = if confined.is_some() { &workspace.cwd } else { program.outside };
    let cwd = cwd.map_or_else(|| default.into(), |cwd| cwd.path);
    Ok(ProgramPlace { cwd, confined: confined.map(|program| confinement::confined(program, &workspace.named_roots)), hint })
}

/// Returns whether a path, or the file to which it leads, is in the project.
fn is_inside(workspace: &Workspace, path: &Path) -> bool {
    let inside = |path: &Path| workspace.resolve(&path.to_string_lossy()).inside;
    inside(path) || path.parent().is_some_and(inside)
}

/// Returns the program of a command, or another file that it names, if it is in the project.
fn file_inside(services: &Services, workspace: &Workspace, command: &[String], base: &Path) -> Option<PathBuf> {
    let words: Vec<String> = command.iter().map(|word| in_workspace(word, workspace)).collect();
    let search = services.environment.get("PATH").unwrap_or_default();
    let program = words.first().and_then(|program| find_program(program, search, base));
    program.into_iter().chain(files_in_command(base, &words)).find(|file| is_inside(workspace, file))
}

/// Returns the files that the commands of the user's settings name. A change of such a file changes
/// the executed code.
pub(in crate::runtime) fn named_by_user(settings: &Settings, places: &DataPaths, workspace: &Workspace) -> Vec<PathBuf> {
    let beside = places.file.parent().unwrap_or(Path::new("/"));
    let hooks = settings.hooks.iter().map(|hook| (&hook.command, hook.cwd.clone().unwrap_or_else(|| beside.into())));
    let servers = settings.mcp.iter().map(|(name, server)| {
        let cwd = server.cwd.clone().unwrap_or_else(|| places.mcp_work(name));
        (&server.command, cwd)
    });
    let bearer = settings.mcp.values().filter_map(|server| server.bearer_token_command.as_ref());
    let keys = settings.providers.values().filter_map(|provider| provider.api_key_command.as_ref());
    let tokens = bearer.chain(keys).map(|command| (command, PathBuf::from("/")));
    let files = hooks.chain(servers).chain(tokens).flat_map(|(command, cwd)| {
        let words: Vec<String> = command.iter().map(|word| in_workspace(word, workspace)).collect();
        files_in_command(&workspace.cwd.join(in_workspace(&cwd.to_string_lossy(), workspace)), &words)
    });
    files.collect()
}

pub(in crate::runtime) fn command_hook(
    settings: &HookSettings,
    services: &Services,
    workspace: &Workspace,
    secrets: &[String],
    variables: &SessionVariables,
) -> CommandHook {
    let outside = services.places.file.parent().unwrap_or(Path::new("/"));
    let (kind, named_by, cwd) = (ProgramKind::Hook, settings.project.as_ref(), settings.cwd.as_deref());
    let program = NamedProgram { kind, named_by, command: &settings.command, cwd, outside };
    let place = match place(services, workspace, &program) {
        Ok(place) => place,
        Err(message) => return CommandHook::new(settings, "/".into(), secrets, services.launcher.clone()).refused(message),
    };
    let mut hook = CommandHook::new(settings, place.cwd, secrets, services.launcher.clone()).variables(variables);
    if let Some(mut confined) = place.confined {
        if settings.project.is_none() {
            confined.sandbox.readable.extend(own_scripts(&settings.command, &services.places));
        }
        hook = hook.confined(&confined, confinement::variables(&confined.program, &settings.command));
    }
    hook.hint(place.hint)
}

/// Returns the program and the script of a command if they lie next to the user's settings, in a
/// directory that a confined program cannot read.
fn own_scripts(command: &[String], places: &DataPaths) -> Vec<PathBuf> {
    let words = [Some(0), script_word(command)].into_iter().flatten().filter_map(|index| command.get(index));
    let files = words.map(Path::new).filter(|word| word.is_absolute() && word.is_file());
    let real = files.filter_map(|file| file.canonicalize().ok());
    let below = real_path(&places.config);
    real.filter(|file| file.starts_with(&below)).collect()
}
