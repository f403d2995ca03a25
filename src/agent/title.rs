//! The title of a new session by the model of the role `small`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::content::{Part, StopReason, plain_text};
use crate::error::{Error, Result};
use crate::event::{Body, SessionChange};
use crate::limits::TITLE_CHARS_MAX;
use crate::model::{Message, Request};
use crate::options::Thinking;
use crate::runtime::calls::budget::TurnBudget;
use crate::runtime::calls::hooks::RequestHooks;
use crate::runtime::calls::model_query;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::services::model_error;
use crate::session::Turn;

/// How long a turn that is done waits for the title.
const WAIT: Duration = Duration::from_secs(3);
/// Maximum length of the prompt in the request, in bytes.
const PROMPT_BYTES_MAX: usize = 4 << 10;
/// Maximum length of the answer, in bytes. A longer one is not a title.
const ANSWER_BYTES_MAX: usize = 4 * TITLE_CHARS_MAX;
const INSTRUCTIONS: &str = "You write titles of conversations with a coding agent. The message of the user is the first one \
                            of such a conversation: do not answer it. Write a title of at most eight words in its language, \
                            without quotes and without a full stop. Answer with the title alone.";

/// Runs the work of a turn. If the turn gave the session a title, the model of the role `small`
/// writes a better one at the same time.
pub(super) async fn beside(
    turn: &Turn,
    environment: &SessionEnvironment,
    budget: &TurnBudget<'_>,
    mut work: Pin<&mut (dyn Future<Output = Result<StopReason>> + Send)>,
) -> Result<StopReason> {
    let is_command = turn.log.state(|state| state.history.local_command().is_some());
    let (Some(derived), Some(small), false) = (&turn.derived_title, &environment.loaded.settings.roles.small, is_command) else {
        return work.await;
    };
    let mut title = Box::pin(async {
        if let Err(error) = replace(turn, environment, budget, derived, small).await {
            tracing::warn!(model = small, %error, "the model of the role small wrote no title");
        }
    });
    let ended = tokio::select! {
        biased;
        ended = &mut work => ended,
        () = &mut title => return work.await,
    };
    if ended.is_ok() {
        tokio::select! {
            () = turn.cancel.cancelled() => {}
            // When the time is up, the session keeps the title from its prompt.
            _ = tokio::time::timeout(WAIT, title) => {}
        }
    }
    ended
}

/// Asks the model for a title, and replaces the one that was derived from the prompt, unless a
/// client has changed it since.
async fn replace(turn: &Turn, environment: &SessionEnvironment, budget: &TurnBudget<'_>, derived: &str, small: &str) -> Result<()> {
    let (services, settings) = (&environment.services, &environment.loaded.settings);
    let model = services.models.open(small, settings).await.map_err(model_error)?;
    if budget.given_cost().is_some() && services.price(model.id(), settings).await.is_none() {
        return Err(Error::invalid_params("its price is unknown, so the budget cannot limit its cost"));
    }
    model.prepare().await;
    let mut prompt = plain_text(&turn.prompt);
    prompt.truncate(prompt.floor_char_boundary(PROMPT_BYTES_MAX));
    let hooks = RequestHooks { host: turn, environment, model: model.id() };
    let request = Request {
        system: INSTRUCTIONS.into(),
        messages: hooks.messages(Arc::new(vec![Arc::new(Message::User(vec![Part::text(prompt)]))])).await?,
        tools: Arc::new([]),
        thinking: Thinking::Off,
        json_answer: false,
        cache_key: format!("{} title", turn.log.id),
        refused: Arc::default(),
    };
    let (reply, usage) = model_query::receive(&*model, request, ANSWER_BYTES_MAX).await;
    if let Some(usage) = usage {
        model_query::record_usage(turn, environment, &*model, usage).await;
    }
    let title = title_of(&reply.map_err(Error::internal)?.text).ok_or_else(|| Error::internal("the answer is not a title"))?;
    if turn.log.state(|state| state.settings.title.as_deref() == Some(derived)) {
        turn.emit(Body::SessionUpdated { change: SessionChange { title: Some(title), ..Default::default() } }).await;
    }
    Ok(())
}

/// Returns the title that an answer consists of: one line without quotes and marks of Markdown.
fn title_of(answer: &str) -> Option<String> {
    let is_mark = |character: char| character.is_whitespace() || r#""'`*#“”"#.contains(character);
    let shown: String = answer.chars().filter(|character| !character.is_control() || *character == '\n').collect();
    let mut lines = shown.lines().map(|line| line.trim_matches(is_mark)).filter(|line| !line.is_empty());
    let title = lines.next().filter(|_| lines.next().is_none())?;
    (title.chars().count() <= TITLE_CHARS_MAX).then(|| title.to_owned())
}
