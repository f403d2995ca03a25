//! What the gate looks at and what it says: the pure part, the same for a call of a turn and for one by hand.

use std::path::Path;
use std::sync::Arc;

use crate::config::{AccessKind, Policy};
use crate::content::{PermissionOption, PermissionOptionKind, ToolKind};
use crate::permission::paths::{Hidden, Place};
use crate::permission::rules::{Decision, Mode, Rules, Subject, asks_about, decide};
use crate::permission::shell::{Line, assignment, decides_what_runs};
use crate::tools::{Prepared, Reach, ToolContext};
use crate::web::Address;
use crate::workspace::{Except, Placed};

/// The call as rules see it, its paths without symlinks.
pub fn subject<'a>(prepared: &'a Prepared, context: &ToolContext) -> Subject<'a> {
    let (access, workspace) = (&prepared.access, &context.workspace);
    let place = |placed: &Placed| {
        let guarded = access.kind == AccessKind::Write && workspace.is_protected(&placed.real);
        let readable = access.kind == AccessKind::Read && placed.artifact;
        let inside = (placed.inside || readable) && !guarded;
        Place { real: placed.real.clone(), written: placed.path.clone(), cwd: workspace.cwd.clone(), inside, guarded }
    };
    let paths: Vec<Place> = prepared.placed.iter().map(place).collect();
    let line = access.command.as_deref().map(|command| Line::read(&(left_behind(context) + &access.environment), command));
    let here = prepared.placed.first().map_or_else(|| context.start.cwd.clone(), |cwd| cwd.real.clone());
    let elsewhere = (line.is_some() && paths.is_empty() && here != workspace.cwd).then(|| here.clone());
    let file = |path: &str| place(&workspace.resolve(&here.join(path).to_string_lossy()));
    let writes = line.iter().flat_map(Line::writes).map(|path| path.map(file)).collect();
    Subject { tool: &prepared.name, kind: access.kind, paths, line, writes, elsewhere, url: access.url.as_deref() }
}

/// What earlier commands exported and this one would run differently with, as a shell would write it before it.
fn left_behind(context: &ToolContext) -> String {
    let exported = context.start.exported.iter().map(|(name, value)| {
        (name.to_string_lossy(), value.as_ref().map_or_else(Default::default, |value| value.to_string_lossy()))
    });
    exported.filter(|(name, _)| decides_what_runs(name)).map(|(name, value)| assignment(&name, &value)).collect()
}

/// What rules keep a call that may run from seeing.
pub fn hidden(rules: &Rules, prepared: &Prepared, context: &ToolContext) -> Option<Except> {
    if prepared.kind != ToolKind::Search {
        return None;
    }
    let asked = asks_about(rules, &subject(prepared, context));
    Hidden::of(rules, &prepared.name, &context.workspace.cwd, asked)
        .map(|hidden| Arc::new(move |real: &Path| hidden.hides(real)) as Except)
}

/// Where a call that may run may be redirected: to what it would be allowed by itself, and where it would be asked about, on the host that was
/// asked about already.
pub fn reach(rules: &Rules, mode: Mode, default: Policy, prepared: &Prepared) -> Option<Reach> {
    let asked = Address::parse(prepared.access.url.as_deref()?).ok()?;
    let (rules, tool) = (rules.clone(), prepared.name.clone());
    Some(Arc::new(move |next: &Address| {
        let url = Some(next.as_str());
        let subject = Subject {
            tool: &tool,
            kind: AccessKind::Network,
            paths: Vec::new(),
            line: None,
            writes: Vec::new(),
            elsewhere: None,
            url,
        };
        match decide(&rules, mode, default, &subject).policy {
            Policy::Allow => true,
            Policy::Ask => next.host() == asked.host(),
            Policy::Deny => false,
        }
    }))
}

/// Whether the model may read the files of a call: then it may be told what is wrong with the call, and nobody need be asked about it.
pub fn may_read(rules: &Rules, mode: Mode, default: Policy, subject: &Subject<'_>) -> bool {
    let read = Subject { tool: "read", kind: AccessKind::Read, ..subject.clone() };
    decide(rules, mode, default, &read).policy == Policy::Allow
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
        (None, _) if subject.url.is_some() => "this address".to_string(),
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
