//! Adds a description of the session's git repository to its first model request, as an event, so
//! that later requests contain the same text.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::config::Policy;
use crate::content::plain_text;
use crate::context::bundle::{self, RepositoryFacts};
use crate::context::manifests::{MANIFESTS, entry_points};
use crate::error::Result;
use crate::event::{Body, Notice, REPOSITORY, Severity};
use crate::limits;
use crate::options::Mode;
use crate::permission::hidden::Hidden;
use crate::permission::rules::Rules;
use crate::runtime::calls::permission;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::Turn;
use crate::toolkit::{PreparedCall, ToolContext};
use crate::workspace::{PathFilter, one_line, read_small_text};

/// Maximum number of entries of the top directory in the description.
const BUNDLE_ENTRIES_MAX: usize = 200;
/// Maximum number of languages in the description.
const BUNDLE_LANGUAGES_MAX: usize = 6;
/// Maximum number of files in the description that fit the prompt.
const BUNDLE_RELEVANT_MAX: usize = 40;
/// Maximum size of the state of the repository in the event, in bytes of JSON.
const STATE_BYTES_MAX: usize = 32 << 10;

/// Adds the description if this is the first request of a session in a git repository. The event
/// also has the commit and the changed files, from which a recording of the session starts.
pub(in crate::agent) async fn add(turn: &Turn, environment: &Arc<SessionEnvironment>) -> Result<()> {
    let tokens = environment.loaded.settings.context.bundle_tokens;
    let first = turn.log.state(|state| state.history.is_unanswered_without(bundle::START));
    if tokens == 0 || !first || environment.foreign_repository.is_some() || !is_in_repository(environment) {
        return Ok(());
    }
    let (facts, state) = Box::pin(Reader::new(turn, environment).facts(plain_text(&turn.prompt))).await;
    let Some(note) = bundle::text(&facts, tokens) else { return Ok(()) };
    let details = state.filter(|state| state.to_string().len() <= STATE_BYTES_MAX).map(Box::new);
    let title = "A description of the repository was added to the request";
    let (code, note) = (Some(REPOSITORY.into()), Some(note));
    turn.commit(Body::Notice(Notice { code, note, details, ..Notice::new(Severity::Info, title) })).await?;
    Ok(())
}

/// Describes the top of the session's directory if it is in no git repository.
pub(in crate::agent) async fn directory(turn: &Turn, environment: &SessionEnvironment) -> Option<String> {
    let tokens = environment.loaded.settings.context.bundle_tokens;
    if tokens == 0 || is_in_repository(environment) {
        return None;
    }
    let reader = Reader::new(turn, environment);
    let _stop = reader.context.cancel.clone().drop_guard();
    let (top, entry_points) = tokio::time::timeout(limits::BUNDLE_TIME, reader.top()).await.ok().flatten()?;
    bundle::text(&RepositoryFacts { top, entry_points, ..RepositoryFacts::default() }, tokens)
}

fn is_in_repository(environment: &SessionEnvironment) -> bool {
    environment.workspace.cwd.ancestors().any(|dir| dir.join(".git").exists())
}

/// Reads the parts of the repository that a model may read without a permission request.
struct Reader<'a> {
    environment: &'a SessionEnvironment,
    rules: Rules,
    mode: Mode,
    context: ToolContext,
}

impl<'a> Reader<'a> {
    fn new(turn: &Turn, environment: &'a SessionEnvironment) -> Reader<'a> {
        let (mode, remembered) = turn.permissions(environment.loaded.settings.permissions.default);
        let rules = environment.rules(&remembered);
        let mut context = environment.tool_context();
        context.cancel = turn.cancel.child_token();
        context.sandbox = environment.sandbox(mode);
        context.path_filter = filter(&rules, &environment.workspace.cwd);
        Reader { environment, rules, mode, context }
    }

    /// Collects the facts that are found within [`limits::BUNDLE_TIME`], and the state of the
    /// repository.
    async fn facts(&self, prompt: String) -> (RepositoryFacts, Option<Value>) {
        // Ends the work that is not finished in time.
        let _stop = self.context.cancel.clone().drop_guard();
        let bound = limits::BUNDLE_TIME;
        let (git, files, top) = tokio::join!(
            tokio::time::timeout(bound, self.git()),
            tokio::time::timeout(bound, self.files(prompt, Instant::now() + bound * 4 / 5)),
            tokio::time::timeout(bound, self.top()),
        );
        let (languages, files) = files.ok().flatten().unwrap_or_default();
        let (top, entry_points) = top.ok().flatten().unwrap_or_default();
        let (git, state) = git.ok().flatten().unzip();
        (RepositoryFacts { git: git.unwrap_or_default(), languages, top, entry_points, files }, state)
    }

    /// Prepares a call that needs no permission request; `None` if it needs one or is denied.
    fn prepare_allowed(&self, tool: &str, input: Value) -> Option<PreparedCall> {
        let call = self.environment.tools.table().prepare(tool, input, &self.context).ok()?;
        let request = permission::request(&call, &self.context);
        let default = self.environment.loaded.settings.permissions.default;
        let allowed = permission::evaluate(&self.rules, self.mode, default, &call, &request).policy == Policy::Allow;
        allowed.then_some(call)
    }

    /// Returns the lines about branch and changed files, and the same as data.
    async fn git(&self) -> Option<(Vec<String>, Value)> {
        let output = self.prepare_allowed("git_status", json!({}))?.run(&self.context).await.ok()?;
        Some((plain_text(&output.parts).lines().map(str::to_owned).collect(), output.details))
    }

    /// Describes the languages of the project, and finds the files that fit the prompt.
    async fn files(&self, prompt: String, until: Instant) -> Option<(Vec<String>, Vec<String>)> {
        self.prepare_allowed("repo_map", json!({}))?;
        self.prepare_allowed("read", json!({"file_path": "."}))?;
        let (tools, context) = (self.environment.tools.table(), self.context.clone());
        let survey = self.context.search(move || Ok(tools.survey(&prompt, &context, until, BUNDLE_RELEVANT_MAX)));
        let survey = survey.await.ok()?;
        let more = if survey.partial { " or more" } else { "" };
        let mut languages: Vec<String> =
            survey.languages.iter().take(BUNDLE_LANGUAGES_MAX).map(|(name, count)| format!("{name}: {count}")).collect();
        if !languages.is_empty() {
            languages = vec![format!("{} (all: {}{more})", languages.join(", "), survey.files)];
        }
        let file = |file: crate::tools::RelevantFile| {
            let path = one_line(file.path.display().to_string());
            // Each definition is a line as it stands in the file: models copy it to old_string.
            file.definitions.iter().fold(path, |lines, definition| format!("{lines}\n    {definition}"))
        };
        Some((languages, survey.relevant.into_iter().map(file).collect()))
    }

    /// Lists the entries of the session's directory, and the entry points in its manifests.
    async fn top(&self) -> Option<(Vec<String>, Vec<String>)> {
        self.prepare_allowed("list", json!({}))?;
        let readable: Vec<&str> =
            MANIFESTS.into_iter().filter(|name| self.prepare_allowed("read", json!({"file_path": name})).is_some()).collect();
        let (context, cwd) = (self.context.clone(), self.environment.workspace.cwd.clone());
        let read = self.context.read_blocking(move || {
            let (mut entries, mut names) = (Vec::new(), Vec::new());
            context.walk(&cwd).depth_max(1).in_order(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                entries.push(one_line(name.clone()) + if entry.kind.is_dir() { "/" } else { "" });
                names.push(name);
                entries.len() < BUNDLE_ENTRIES_MAX
            });
            let mut points = Vec::new();
            for manifest in readable.into_iter().filter(|name| names.iter().any(|found| found == name)) {
                let text = read_small_text(&cwd.join(manifest)).unwrap_or_default();
                points.extend(entry_points(manifest, &text).into_iter().map(|line| one_line(format!("{manifest}: {line}"))));
            }
            Ok((entries, points))
        });
        read.await.ok()
    }
}

/// Hides the files that a model may not list or read without a permission request.
fn filter(rules: &Rules, cwd: &Path) -> Option<PathFilter> {
    let filters: Vec<Hidden> =
        ["read", "list", "grep"].iter().filter_map(|tool| Hidden::from_rules(rules, tool, cwd, false)).collect();
    (!filters.is_empty()).then(|| Arc::new(move |real: &Path| filters.iter().any(|hidden| hidden.hides(real))) as PathFilter)
}
