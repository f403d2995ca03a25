//! The confinement of checks that nuncio runs by itself.

use std::path::PathBuf;

use crate::config::{ProgramKind, ProjectProgram, SandboxMode};
use crate::process::{ProgramConfinement, Sandbox};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::services::confinement::{confined, variables};
use crate::toolkit::{CheckConfinement, ToolContext};

/// Confines the checks of a call. The user's `[sandbox]` settings and the grant of the project's
/// checks apply, but no mode turns the sandbox off. The error is a message: without Landlock,
/// checks do not run.
pub(in crate::runtime) fn apply(context: &mut ToolContext, environment: &SessionEnvironment) -> Result<(), String> {
    if !Sandbox::is_available() {
        return Err("the checks were not run: this system cannot confine them, because its kernel has no Landlock, or it is \
                    turned off"
            .into());
    }
    let (services, settings) = (&environment.services, &environment.loaded.settings.sandbox);
    let directory = &environment.workspace.cwd;
    let mut program = ProjectProgram::new(&services.places, &services.user.settings.trust, directory, ProgramKind::Check, false);
    program.grant.network |= settings.network;
    let variables = variables(&program, &[]);
    let writable: &[PathBuf] = if settings.mode == Some(SandboxMode::ReadOnly) { &[] } else { &environment.writable };
    let ProgramConfinement { sandbox, program } = confined(program, writable);
    context.sandbox = Some(sandbox);
    context.check_confinement = Some(CheckConfinement { variables, hint: program.hint() });
    Ok(())
}
