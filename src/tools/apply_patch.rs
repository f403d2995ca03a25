//! `apply_patch`: changes several files, all of them or none.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{AccessKind, AccessShape};
use crate::content::{Location, ToolContent, ToolKind};
use crate::patch::apply_patch::{FilePatch, Hunk, Operation, PatchOutcome, apply, parse};
use crate::permission::Access;
use crate::toolkit::change::{self, ChangePlan, FileSnapshot, PlannedChange};
use crate::toolkit::overwrite;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::workspace::{ResolvedPath, Workspace};

pub(super) struct ApplyPatch;

/// The description for models.
const DESCRIPTION: &str =
    "Changes, adds, moves and deletes files, never over an existing one: applies the whole patch or nothing. \
     Either a unified diff, or this form, in which unchanged lines begin with a space:
*** Begin Patch
*** Update File: PATH
*** Move to: NEW PATH (optional)
@@ a line above the hunk (optional)
 unchanged line
-old line
+new line
*** Add File: PATH
+line
*** Delete File: PATH
*** End Patch";

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(description = DESCRIPTION)]
pub(super) struct ApplyPatchInput {
    #[serde(alias = "input", alias = "diff", alias = "patch_text", alias = "patchText")]
    patch: String,
}

/// The details of the result of an `apply_patch` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ApplyPatchDetails {
    files: Vec<PatchedFile>,
}

/// A file that a patch changed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchedFile {
    /// After a move, the new path.
    file_path: PathBuf,
    kind: PatchKind,
    /// The larger of the numbers of removed and added lines.
    lines_changed: usize,
    /// Unified diff.
    diff: String,
    /// The path before a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<PathBuf>,
}

/// How a patch changed a file.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PatchKind {
    Add,
    Delete,
    Move,
    Update,
}

impl PatchKind {
    fn from_change(change: &PlannedChange) -> PatchKind {
        match (&change.from, &change.old.bytes, &change.new) {
            (Some(_), ..) => PatchKind::Move,
            (None, None, _) => PatchKind::Add,
            (None, Some(_), None) => PatchKind::Delete,
            (None, Some(_), Some(_)) => PatchKind::Update,
        }
    }

    fn name(self) -> &'static str {
        match self {
            PatchKind::Add => "add",
            PatchKind::Delete => "delete",
            PatchKind::Move => "move",
            PatchKind::Update => "update",
        }
    }
}

impl Tool for ApplyPatch {
    type Input = ApplyPatchInput;
    type Details = ApplyPatchDetails;
    const NAME: &'static str = "apply_patch";
    const LABEL: &'static str = "Apply patch";
    const ALIASES: &'static [&'static str] = &["patch"];
    const KIND: ToolKind = ToolKind::Edit;
    const PROPERTIES: ToolProperties = ToolProperties { edits_files: true, shows_content: true, ..ToolProperties::NONE };
    const ACCESS: &'static [AccessShape] = AccessShape::WRITE;

    fn title(&self, input: &ApplyPatchInput, workspace: &Workspace) -> String {
        let paths = paths(&input.patch);
        let shown = |path: &String| workspace.show(&workspace.resolve(path).path);
        match paths.as_slice() {
            [] => "Apply a patch".into(),
            [path] => format!("Patch {}", shown(path)),
            [path, rest @ ..] => format!("Patch {} and {} more", shown(path), rest.len()),
        }
    }

    fn locations(&self, input: &ApplyPatchInput, workspace: &Workspace) -> Vec<Location> {
        paths(&input.patch).iter().map(|path| Location { path: workspace.resolve(path).path, line: None }).collect()
    }

    /// Declares write access to the paths of the patch. A patch that cannot be parsed accesses
    /// nothing.
    fn access(&self, input: &ApplyPatchInput) -> Access {
        match paths(&input.patch) {
            paths if paths.is_empty() => Access::none(),
            paths => Access { kind: AccessKind::Write, paths, ..Access::none() },
        }
    }

    async fn preview(&self, input: &ApplyPatchInput, context: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        let input = input.clone();
        change::preview(context, move |context| plan(&input, context)).await
    }

    async fn run(&self, input: ApplyPatchInput, context: &ToolContext) -> Result<ToolOutput<ApplyPatchDetails>, ToolError> {
        let paths = paths(&input.patch);
        change::run(context, paths.iter().map(String::as_str), move |context| plan(&input, context)).await
    }
}

/// Returns all paths that the patch names; none if it cannot be parsed.
fn paths(patch: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for file in parse(patch).unwrap_or_default() {
        paths.push(file.path);
        if let Operation::Update { move_to: Some(path), .. } = file.operation {
            paths.push(path);
        }
    }
    paths
}

fn plan(input: &ApplyPatchInput, context: &ToolContext) -> Result<ChangePlan<ApplyPatchDetails>, ToolError> {
    let mut changes = Vec::new();
    for file in parse(&input.patch).map_err(|why| ToolError(format!("{why}; nothing was changed")))? {
        let path = file.path.clone();
        let added = add_change(&mut changes, file, context);
        added.map_err(|why| ToolError(format!("{path}: {}; nothing was changed", why.0)))?;
    }
    // A patch may add a file and delete it again, which is no change.
    changes.retain(|change: &PlannedChange| change.old.bytes.is_some() || change.new.is_some());
    let lines: Vec<String> = changes.iter().map(|change| format!("{}\n", describe(change))).collect();
    let files = changes.iter().map(details).collect();
    Ok(ChangePlan { text: format!("applied the patch:\n{}", lines.concat()), details: ApplyPatchDetails { files }, changes })
}

/// Adds the change of one section of a patch to `changes`. Several sections may change the same
/// file; each applies to the result of the one before.
fn add_change(changes: &mut Vec<PlannedChange>, file: FilePatch, context: &ToolContext) -> Result<(), ToolError> {
    let resolved = context.workspace.resolve(&file.path);
    let before = changes.iter().position(|change| concerns(change, &resolved));
    let twice = || ToolError::new("the patch moves this file and changes it again; put all of its changes into one section");
    if let Some(before) = before
        && (changes[before].from.is_some() || matches!(file.operation, Operation::Update { move_to: Some(_), .. }))
    {
        return Err(twice());
    }
    let partly = !matches!(&file.operation, Operation::Add { .. })
        && !matches!(&file.operation, Operation::Delete { hunks } if hunks.is_empty());
    let current = match before {
        Some(_) => FileSnapshot::default(),
        None if partly => change::current_text(&resolved, context)?,
        None => change::current(&resolved, context)?,
    };
    let bytes = before.map_or(&current.bytes, |before| &changes[before].new);
    let there = |why: &str| bytes.as_deref().ok_or_else(|| ToolError::new(why));
    let (new, to, line) = match file.operation {
        Operation::Add { .. } if bytes.is_some() => {
            return Err(ToolError::new("the file exists; update it, or delete it before the patch adds it"));
        }
        Operation::Add { content } => {
            overwrite::check_numbers(&resolved, &content, context)?;
            (Some(content.into_bytes()), None, None)
        }
        Operation::Delete { hunks } => {
            let content = there("the file does not exist, so it cannot be deleted")?;
            if hunks.is_empty() && before.is_none() {
                overwrite::check(&resolved, &current, context)?;
            }
            if !hunks.is_empty() && !patched(content, &hunks)?.bytes.is_empty() {
                return Err(ToolError::new("the file has lines that the patch does not remove, so it is not deleted"));
            }
            (None, None, None)
        }
        Operation::Update { move_to, hunks } => {
            let content = there("the file does not exist")?;
            let PatchOutcome { bytes, line } = patched(content, &hunks)?;
            let to = move_to.map(|path| context.workspace.resolve(&path)).filter(|to| to.real != resolved.real);
            if to.is_none() && bytes == content {
                return Err(ToolError::new("the hunks change nothing"));
            }
            (Some(bytes), to, line)
        }
    };
    match (before, to) {
        (Some(before), _) => changes[before].new = new,
        (None, Some(to)) if changes.iter().any(|change| concerns(change, &to)) => return Err(twice()),
        (None, Some(to)) => {
            // A directory is an error.
            if change::current(&to, context)?.bytes.is_some() {
                let shown = context.workspace.show(&to.path);
                return Err(ToolError(format!(
                    "{shown} exists, so no file is moved there; delete it first, or choose another path"
                )));
            }
            let from = Some((resolved.clone(), context.workspace.show(&resolved.path)));
            changes.push(PlannedChange { from, line, ..PlannedChange::new(to, context, current, new) });
        }
        (None, None) => changes.push(PlannedChange { line, ..PlannedChange::new(resolved, context, current, new) }),
    }
    Ok(())
}

fn concerns(change: &PlannedChange, resolved: &ResolvedPath) -> bool {
    change.resolved.real == resolved.real || change.from.as_ref().is_some_and(|(from, _)| from.real == resolved.real)
}

fn patched(content: &[u8], hunks: &[Hunk]) -> Result<PatchOutcome, ToolError> {
    apply(content, hunks).map_err(ToolError)
}

fn describe(change: &PlannedChange) -> String {
    let (kind, shown) = (PatchKind::from_change(change).name(), &change.shown);
    match (&change.from, change.line) {
        (Some((_, from)), _) => format!("{kind} {from} to {shown}"),
        (None, Some(line)) => format!("{kind} {shown} at line {line}"),
        (None, None) => format!("{kind} {shown}"),
    }
}

fn details(change: &PlannedChange) -> PatchedFile {
    let diff = change.diff();
    PatchedFile {
        file_path: change.resolved.path.clone(),
        kind: PatchKind::from_change(change),
        lines_changed: diff.removed.max(diff.added),
        diff: diff.text,
        from: change.from.as_ref().map(|(from, _)| from.path.clone()),
    }
}
