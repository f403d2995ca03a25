//! The system prompt of a session's requests. It is assembled once and reused while its inputs are
//! unchanged, because providers cache the start of requests. A changed instruction file takes
//! effect when the session is opened again or its model, system prompt, tools or directories
//! change.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::config::owner_name;
use crate::context::instructions::{FoundInstructions, SkippedImport};
use crate::context::{skills, system_prompt};
use crate::error::Result;
use crate::event::{Body, Severity};
use crate::runtime::calls::hooks::RequestHooks;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::{SessionLog, Turn};
use crate::workspace::one_line;

/// The system prompt of one session.
#[derive(Default)]
pub(in crate::agent) struct SystemPrompt {
    kept: Mutex<Option<(Inputs, Arc<str>)>>,
    /// Skipped files that were already reported in a notice.
    reported: Mutex<HashSet<PathBuf>>,
}

/// The inputs of a system prompt. The files that it contains are read once for the same inputs.
struct Inputs {
    environment: Weak<SessionEnvironment>,
    model: String,
    /// The session's own prompt.
    own: Option<String>,
    append: Option<String>,
    /// False for a session of an earlier version, whose notes have no tag.
    has_key: bool,
    /// The tools of the session that nuncio's text is about.
    tools: Vec<&'static str>,
}

impl Inputs {
    fn new(log: &SessionLog, environment: &Arc<SessionEnvironment>, model: &str) -> Inputs {
        let (own, append) = log.state(|state| (state.settings.system_prompt.clone(), state.settings.system_prompt_append.clone()));
        let has_key = log.state(|state| state.history.tag().line().is_some());
        Inputs { own, append, has_key, ..Inputs::without_session(environment, model) }
    }

    fn without_session(environment: &Arc<SessionEnvironment>, model: &str) -> Inputs {
        let table = environment.tools.table();
        let tools = system_prompt::named_tools().filter(|name| table.offers(name)).collect();
        Inputs { environment: Arc::downgrade(environment), model: model.into(), own: None, append: None, has_key: true, tools }
    }
}

impl PartialEq for Inputs {
    fn eq(&self, other: &Inputs) -> bool {
        self.environment.ptr_eq(&other.environment)
            && (&self.model, &self.own, &self.append) == (&other.model, &other.own, &other.append)
            && (self.has_key, &self.tools) == (other.has_key, &other.tools)
    }
}

impl SystemPrompt {
    /// Returns the system prompt of the turn's requests to `model`. Reports instruction files that
    /// were skipped. If a hook failed or was cancelled, the hooks run again in the next turn.
    pub(in crate::agent) async fn text(&self, turn: &Turn, environment: &Arc<SessionEnvironment>, model: &str) -> Result<Arc<str>> {
        let inputs = Inputs::new(&turn.log, environment, model);
        if let Some(text) = self.kept(&inputs) {
            return Ok(text);
        }
        let (text, found) = assemble(&inputs, environment)?;
        self.report_skipped(turn, found).await;
        let (text, complete) = RequestHooks { host: turn, environment, model }.system(text).await?;
        if complete {
            *self.kept.lock() = Some((inputs, text.clone()));
        }
        Ok(text)
    }

    /// Returns the system prompt of the next requests to `model`, outside of a turn.
    pub(in crate::agent) fn preview(
        &self,
        log: &SessionLog,
        environment: &Arc<SessionEnvironment>,
        model: &str,
    ) -> Result<Arc<str>> {
        let inputs = Inputs::new(log, environment, model);
        match self.kept(&inputs) {
            Some(text) => Ok(text),
            None => assemble(&inputs, environment).map(|(text, _)| text),
        }
    }

    fn kept(&self, inputs: &Inputs) -> Option<Arc<str>> {
        let kept = self.kept.lock();
        kept.as_ref().filter(|(known, _)| known == inputs).map(|(_, text)| text.clone())
    }

    /// Emits a notice for the files and directories that were skipped because another user owns
    /// them, and one for skipped imports. Each file is named once.
    async fn report_skipped(&self, turn: &Turn, found: FoundInstructions) {
        let is_new = |path: &PathBuf| self.reported.lock().insert(path.clone());
        let foreign: Vec<&PathBuf> = found.foreign.iter().filter(|path| is_new(path)).collect();
        if !foreign.is_empty() {
            let named = |path: &&PathBuf| one_line(format!("{} (owner: {})", path.display(), owner_name(path)));
            let names: Vec<String> = foreign.iter().map(named).collect();
            let description = format!("{}; `nuncio trust DIR` accepts a directory of another user", names.join(", "));
            turn.emit(Body::notice(Severity::Warning, "Project files owned by another user are ignored", description)).await;
        }
        let imports: Vec<&SkippedImport> = found.skipped.iter().filter(|import| is_new(&import.path)).collect();
        if !imports.is_empty() {
            let lines: Vec<String> =
                imports.iter().map(|import| one_line(format!("{}: {}", import.path.display(), import.why))).collect();
            let title = "Files that instruction files import are skipped";
            turn.emit(Body::notice(Severity::Warning, title, lines.join("\n"))).await;
        }
    }
}

/// Returns the system prompt of a session to which no client gave one.
pub(in crate::agent) fn without_session(environment: &Arc<SessionEnvironment>, model: &str) -> Result<Arc<str>> {
    assemble(&Inputs::without_session(environment, model), environment).map(|(text, _)| text)
}

/// Assembles the system prompt. Also returns the instruction files.
fn assemble(inputs: &Inputs, environment: &SessionEnvironment) -> Result<(Arc<str>, FoundInstructions)> {
    let settings = &environment.loaded.settings;
    let mut base = match inputs.own.as_ref().or(environment.services.overrides.system_prompt.as_ref()) {
        Some(prompt) => prompt.clone(),
        None => system_prompt::base(&settings.prompts, &inputs.model, |tool| inputs.tools.contains(&tool))?,
    };
    if let Some(append) = &inputs.append {
        base = format!("{}\n\n{append}", base.trim_end());
    }
    let found = if settings.instructions.auto_inject {
        environment.services.instruction_search(&environment.workspace.cwd, &settings.instructions.patterns).find()
    } else {
        FoundInstructions::default()
    };
    let skills = skills::find(&environment.services.prompt_dirs(&environment.workspace.cwd));
    Ok((system_prompt::whole(&base, inputs.has_key, &environment.workspace, &found.taken, &skills).into(), found))
}
