//! Reports the tokens in the context window by source.

use super::request::tools_bytes;
use crate::config::ContextSettings;
use crate::context::{size, system_prompt};
use crate::model::{Model, Request};
use crate::session::SessionLog;
use crate::session::context_report::{ContextReport, ContextSources};

/// Reports the tokens of `request` to `model` by source.
pub(in crate::agent) fn report(
    log: &SessionLog,
    settings: &ContextSettings,
    model: &dyn Model,
    request: &Request,
) -> ContextReport {
    let (system, tools) = (request.system.len(), tools_bytes(model, &request.tools));
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
    let compact_at = settings.compact_at_tokens(context_window);
    ContextReport { model: model.id().into(), context_window, tokens, measured, compact_at, sources }
}
