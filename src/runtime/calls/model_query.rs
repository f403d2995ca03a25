//! Requests to a model that do not contain the conversation and are not part of it. MCP servers
//! send them to the session's model (`sampling/createMessage`).

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call_host::{CallHost, CallOutcome, ServedCall};
use super::hooks::RequestHooks;
use super::permission::Check;
use crate::config::AccessKind;
use crate::content::{ModelQuery, ModelReply, Part, StopReason, ToolContent, ToolKind, ToolLabel, Usage, plain_text};
use crate::event::{Body, UsageUpdate};
use crate::model::{Block, Chunk, Message, Model, Request};
use crate::options::Thinking;
use crate::permission::Access;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::services::model_error;
use crate::toolkit::{AnyCall, PreparedCall, ToolContext, ToolError, ToolOutput, mcp_tool_names};

/// Estimated size of a token of the answer to an MCP server, in bytes.
const MCP_SAMPLING_TOKEN_BYTES: usize = 4;

/// Asks for permission, and sends the request. The error is a message.
pub(in crate::runtime) async fn answer(
    call: &ServedCall<'_>,
    query: ModelQuery,
    ended: &CancellationToken,
) -> Result<ModelReply, String> {
    if let Some(refused) = refusal(call, &query, ended).await {
        return Err(refused);
    }
    let allowed = call.host.allows_request(call.environment, ended).await;
    if !allowed.map_err(|error| error.message)? {
        return Err("the budget is used up".into());
    }
    let model = call.environment.model().ok_or("no model is in use")?;
    let limit = query.max_tokens as usize * MCP_SAMPLING_TOKEN_BYTES;
    let (system, messages) = (query.system, query.messages.into_iter());
    let messages = messages.map(|message| match message.by_model {
        true => Message::Assistant(vec![Block::Text { text: plain_text(&message.parts), state: None }]),
        false => Message::User(message.parts),
    });
    let hooks = RequestHooks { host: call.host, environment: call.environment, model: model.id() };
    let messages = hooks.messages(Arc::new(messages.map(Arc::new).collect())).await;
    let request = Request {
        system: system.into(),
        messages: messages.map_err(|error| error.message)?,
        tools: Arc::new([]),
        thinking: Thinking::Off,
        json_answer: false,
        cache_key: call.id.to_string(),
        refused: Arc::default(),
    };
    let (reply, usage) = tokio::select! {
        biased;
        () = ended.cancelled() => return Err("the tool call has ended".into()),
        received = receive(&*model, request, limit) => received,
    };
    if let Some(usage) = usage {
        record_usage(call.host, call.environment, &*model, usage).await;
    }
    reply
}

/// Checks the rules and the mode, and asks if necessary. Returns why the request is refused.
async fn refusal(call: &ServedCall<'_>, query: &ModelQuery, ended: &CancellationToken) -> Option<String> {
    let mut context = call.context.clone();
    context.cancel = ended.clone();
    let name = mcp_tool_names(&[(&query.server, "sampling")]).remove(0);
    let title = format!("{}: request to the model", query.server);
    let access = Access { kind: AccessKind::Mcp, ..Access::none() };
    let shown = Box::new(QueryCall(ToolContent::text(text(query))));
    let mut prepared = PreparedCall::new(&name, ToolKind::Other, title.clone(), access, &context.workspace, Value::Null, shown);
    prepared.definition = Some(query.identity.clone());
    let default = call.environment.loaded.settings.permissions.default;
    let (mode, remembered) = call.host.permissions(default);
    let check = Check {
        call: &ServedCall { context: &context, ..*call },
        label: &ToolLabel { name, title, category: Some(prepared.access.category()) },
        automatic: false,
        prepared: &prepared,
        mode,
        unconfined: false,
        rules: &call.environment.rules(&remembered),
        default,
    };
    match check.decide().await.err()? {
        CallOutcome::Denied(why) | CallOutcome::Failed(why) | CallOutcome::InvalidInput(why) => Some(why),
        CallOutcome::Completed(_) | CallOutcome::Cancelled => Some("the tool call was cancelled".into()),
    }
}

/// Formats the whole request as a text.
fn text(query: &ModelQuery) -> String {
    let part = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        _ => "[image]".into(),
    };
    let system = Some(format!("system: {}", query.system)).filter(|_| !query.system.is_empty());
    let messages = query.messages.iter().map(|message| {
        let role = if message.by_model { "assistant" } else { "user" };
        format!("{role}: {}", message.parts.iter().map(part).collect::<Vec<_>>().join("\n"))
    });
    system.into_iter().chain(messages).collect::<Vec<_>>().join("\n\n")
}

/// Presents a sampling request as a tool call, for the permission check. Never run.
struct QueryCall(ToolContent);

impl AnyCall for QueryCall {
    fn preview<'a>(&'a self, _: &'a ToolContext) -> BoxFuture<'a, Result<Vec<ToolContent>, ToolError>> {
        Box::pin(async { Ok(vec![self.0.clone()]) })
    }

    fn run<'a>(self: Box<Self>, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Err(ToolError::cancelled()) })
    }
}

/// Records the usage of a request that is not part of the conversation.
pub(crate) async fn record_usage(host: &dyn CallHost, environment: &SessionEnvironment, model: &dyn Model, usage: Usage) {
    let id = model.id().to_owned();
    let cost = environment.services.price(&id, &environment.loaded.settings).await.map(|price| price.cost(&usage));
    // The context is that of the conversation.
    let context_window = environment.model().map_or(0, |model| model.context_window());
    let context_tokens = host.context_tokens();
    host.emit(Body::UsageUpdated(UsageUpdate { model: id, usage, cost, context_tokens, context_window, aside: true })).await;
}

/// Receives an answer of at most `limit` bytes. Also returns its usage.
pub(crate) async fn receive(model: &dyn Model, request: Request, limit: usize) -> (Result<ModelReply, String>, Option<Usage>) {
    let (mut text, mut stop, mut usage) = (String::new(), StopReason::EndTurn, None::<Usage>);
    let mut so_far = None;
    let mut stream = model.stream(request);
    let error = loop {
        match stream.next().await {
            Some(Ok(Chunk::Text(more))) => {
                text += &more;
                if text.len() > limit {
                    text.truncate(text.floor_char_boundary(limit));
                    stop = StopReason::MaxTokens;
                    break None;
                }
            }
            Some(Ok(Chunk::Usage(more))) => {
                so_far = None;
                *usage.get_or_insert_default() += more;
            }
            Some(Ok(Chunk::UsageSoFar(usage))) => so_far = Some(usage),
            Some(Ok(Chunk::Retry { .. })) => text.clear(),
            Some(Ok(Chunk::Stop(reason))) => {
                stop = reason;
                break None;
            }
            Some(Ok(
                Chunk::Thinking(_)
                | Chunk::BlockEnd { .. }
                | Chunk::CallInput { .. }
                | Chunk::ToolCall { .. }
                | Chunk::Notice { .. }
                | Chunk::Refused { .. }
                | Chunk::Truncated { .. },
            )) => {}
            Some(Err(error)) => break Some(model_error(error).message),
            None => break Some("the answer was interrupted".into()),
        }
    };
    if let Some(more) = so_far {
        *usage.get_or_insert_default() += more;
    }
    let reply = match error {
        Some(error) => Err(format!("the model failed: {error}")),
        None => Ok(ModelReply { model: model.id().into(), text, stop }),
    };
    (reply, usage)
}
