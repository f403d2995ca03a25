//! The directories in which hooks and servers of a session run.

use std::path::{Path, PathBuf};

use super::confinement;
use super::services::Services;
use crate::config::{HookSettings, ProgramKind, ProjectProgram, SessionVariables};
use crate::hooks::CommandHook;
use crate::process::Confined;
use crate::workspace::Workspace;

/// Stands for the session's directory in settings.
const WORKSPACE: &str = "$WORKSPACE";

/// Replaces `$WORKSPACE` in a setting.
pub(super) fn in_workspace(text: &str, workspace: &Workspace) -> String {
    text.replace(WORKSPACE, &workspace.cwd.to_string_lossy())
}

/// Where a program runs that a setting names.
pub(super) struct ProgramPlace {
    pub cwd: PathBuf,
    /// Set if the program runs in the project, confined.
    pub confined: Option<Confined>,
    /// A sentence for messages about failures.
    pub hint: Option<String>,
}

/// Returns the place of a program. A program that the project names runs confined, by default in
/// the session's directory; so does one of the user with a `cwd` in the project. Without `cwd`, the
/// user's programs run in `outside`, because the files of a project decide what usual launchers and
/// interpreters run.
pub(super) fn place(
    services: &Services,
    workspace: &Workspace,
    kind: ProgramKind<'_>,
    named_by: Option<&ProjectProgram>,
    cwd: Option<&Path>,
    outside: &Path,
) -> ProgramPlace {
    let cwd = cwd.map(|cwd| workspace.cwd.join(in_workspace(&cwd.to_string_lossy(), workspace)));
    let real = cwd.as_deref().map(|cwd| std::fs::canonicalize(cwd).unwrap_or_else(|_| cwd.into()));
    let inside = real.is_some_and(|real| workspace.roots.iter().any(|root| real.starts_with(root)));
    let program = match named_by {
        Some(program) => Some(program.clone()),
        None if inside => Some(ProjectProgram::new(&services.places, &services.user.settings.trust, &workspace.cwd, kind, false)),
        None => None,
    };
    let hint = match (&program, &cwd) {
        (Some(program), _) => Some(program.hint()),
        (None, Some(_)) => None,
        (None, None) => Some(format!(
            "it runs in {}, outside of the project: if it needs the project's directory, set cwd = \"{WORKSPACE}\"",
            outside.display()
        )),
    };
    let default = if program.is_some() { &workspace.cwd } else { outside };
    let cwd = cwd.unwrap_or_else(|| default.into());
    ProgramPlace { cwd, confined: program.map(|program| confinement::confined(program, &workspace.roots)), hint }
}

/// Creates the hook of a setting.
pub(super) fn command_hook(
    settings: &HookSettings,
    services: &Services,
    workspace: &Workspace,
    secrets: &[String],
    variables: &SessionVariables,
) -> CommandHook {
    let outside = services.places.file.parent().unwrap_or(Path::new("/"));
    let place = place(services, workspace, ProgramKind::Hook, settings.project.as_ref(), settings.cwd.as_deref(), outside);
    let mut hook = CommandHook::new(settings, place.cwd, secrets, services.launcher.clone()).variables(variables);
    if let Some(mut confined) = place.confined {
        // Scripts next to the user's settings, in a directory that a confined program cannot read.
        let scripts = settings.command.iter().map(PathBuf::from).filter(|word| word.is_absolute() && word.is_file());
        confined.sandbox.readable.extend(scripts.filter_map(|script| script.canonicalize().ok()));
        hook = hook.confined(&confined, confinement::variables(&confined.program, &settings.command));
    }
    hook.hint(place.hint)
}
