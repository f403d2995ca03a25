//! The next model request of a session, and a report of its tokens by source.

use crate::context::{size, system_prompt};
use crate::model::{Model, Request};
use crate::options::OptionValue;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::SessionLog;
use crate::session::context_report::{ContextReport, ContextSources};

/// Builds the next request from the conversation in `log`.
pub(in crate::agent) fn request(log: &SessionLog, environment: &SessionEnvironment, system: &str) -> Request {
    let (messages, refused, thinking) =
        log.state(|state| (state.history.messages(), state.refused.clone(), state.settings.thinking.clone()));
    let thinking = thinking.or(environment.services.overrides.thinking.map(OptionValue::Known));
    Request {
        system: system.into(),
        messages,
        tools: environment.tools.table().specs(),
        thinking: thinking.and_then(|level| level.known()).unwrap_or_default(),
        json_answer: environment.services.overrides.json_answer,
        cache_key: log.id.to_string(),
        refused,
    }
}

/// Returns the size of the tools in a request, in bytes. It is 0 for a model that cannot call
/// tools, because its requests contain no tools.
pub(in crate::agent) fn tools_bytes(model: &dyn Model, environment: &SessionEnvironment) -> usize {
    if model.supports_tools() { environment.tools.table().spec_bytes() } else { 0 }
}

/// Reports the tokens of `request` to `model` by source.
pub(in crate::agent) fn report(
    log: &SessionLog,
    environment: &SessionEnvironment,
    model: &dyn Model,
    request: &Request,
) -> ContextReport {
    let (system, tools) = (request.system.len(), tools_bytes(model, environment));
    let instructions = system_prompt::instructions_bytes(&request.system);
    let [files, tool_results, messages] = size::by_source(&request.messages);
    let bytes = [system - instructions, tools, instructions, files, tool_results, messages];
    let (tokens, measured) = log.state(|state| {
        let usage = state.history.usage();
        (usage.tokens(system + tools, state.history.bytes()), usage.is_measured())
    });
    let all = bytes.iter().sum::<usize>().max(1) as f64;
    let [system, tools, instructions, files, tool_results, _] = bytes.map(|bytes| (tokens as f64 * bytes as f64 / all) as u64);
    let messages = tokens.saturating_sub(system + tools + instructions + files + tool_results);
    let context_window = model.context_window();
    let free = context_window.saturating_sub(tokens);
    let sources = ContextSources { system, tools, instructions, files, tool_results, messages, free };
    let compact_at = environment.loaded.settings.context.compact_at_tokens(context_window);
    ContextReport { model: model.id().into(), context_window, tokens, measured, compact_at, sources }
}
