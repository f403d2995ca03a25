//! Reports the tokens in the context window by source.

use crate::config::ContextSettings;
use crate::context::{size, system_prompt};
use crate::model::{Model, Request, ToolSpec};
use crate::session::SessionLog;
use crate::session::context_report::{ContextReport, ContextSources};

/// Returns the size of a request to `model` without its messages, in bytes.
pub(in crate::agent) fn overhead(model: &dyn Model, system: &str, tools: &[ToolSpec]) -> usize {
    system.len() + tools_bytes(model, tools)
}

/// Returns the size of the tools in a request, in bytes. It is 0 for a model that cannot call
/// tools, because its requests contain no tools.
fn tools_bytes(model: &dyn Model, tools: &[ToolSpec]) -> usize {
    let tools = tools.iter().filter(|_| model.supports_tools());
    tools.map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len()).sum()
}

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
