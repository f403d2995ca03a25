//! What the gate looks at and what it says: the pure part, the same for a call of a turn and for one by hand.

use std::path::Path;
use std::sync::Arc;

use crate::config::{AccessKind, Policy};
use crate::content::{PermissionOption, PermissionOptionKind, ToolKind};
use crate::permission::paths::{Hidden, Place};
use crate::permission::rules::{Decision, Mode, Rules, Subject, asks_about};
use crate::permission::shell::Line;
use crate::tools::Prepared;
use crate::workspace::{Except, Placed, Workspace};

/// The call as rules see it, its paths without symlinks.
pub fn subject<'a>(prepared: &'a Prepared, workspace: &Workspace) -> Subject<'a> {
    let access = &prepared.access;
    let place = |placed: &Placed| {
        let guarded = access.kind == AccessKind::Write && workspace.is_protected(&placed.real);
        let readable = access.kind == AccessKind::Read && placed.artifact;
        let inside = (placed.inside || readable) && !guarded;
        Place { real: placed.real.clone(), written: placed.path.clone(), cwd: workspace.cwd.clone(), inside, guarded }
    };
    let paths = prepared.placed.iter().map(place).collect();
    let line = access.command.as_deref().map(|command| Line::read(&access.environment, command));
    Subject { tool: &prepared.name, kind: access.kind, paths, line }
}

/// What rules keep a call that may run from seeing.
pub fn hidden(rules: &Rules, prepared: &Prepared, workspace: &Workspace) -> Option<Except> {
    if prepared.kind != ToolKind::Search {
        return None;
    }
    let asked = asks_about(rules, &subject(prepared, workspace));
    Hidden::of(rules, &prepared.name, &workspace.cwd, asked).map(|hidden| Arc::new(move |real: &Path| hidden.hides(real)) as Except)
}

/// What the model is told of a decision that denies.
pub fn denial(decision: &Decision, mode: Mode) -> String {
    debug_assert_eq!(decision.policy, Policy::Deny);
    match (&decision.rule, mode) {
        (Some(_), _) => "denied by a rule of the settings".into(),
        (None, Mode::Plan) => "denied by the mode plan, in which nothing is changed or run".into(),
        (None, mode) => format!("denied by the mode {}", mode.id()),
    }
}

/// What may be answered; `always` is for this session, and for no more than what was asked.
pub fn options(subject: &Subject<'_>) -> Vec<PermissionOption> {
    let what = match (&subject.line, subject.paths.as_slice()) {
        (Some(_), _) => "this command".to_string(),
        (None, [place]) => format!("{} on {}", subject.tool, place.shown().display()),
        (None, _) => subject.tool.to_string(),
    };
    let option = |id: &str, name: String, kind| PermissionOption { option_id: id.into(), name, kind };
    vec![
        option("allow_once", "Allow".into(), PermissionOptionKind::AllowOnce),
        option("allow_always", format!("Always allow {what} in this session"), PermissionOptionKind::AllowAlways),
        option("reject_once", "Reject".into(), PermissionOptionKind::RejectOnce),
        option("reject_always", format!("Always reject {what} in this session"), PermissionOptionKind::RejectAlways),
    ]
}
