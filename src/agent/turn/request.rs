//! The next model request of a session, and the size of the parts that are no messages.

use crate::agent::environment::SessionEnvironment;
use crate::model::{Model, Request, ToolSpec};
use crate::options::OptionValue;
use crate::session::SessionLog;

/// Builds the next request from the conversation in `log`.
pub(in crate::agent) fn request(log: &SessionLog, environment: &SessionEnvironment, system: &str) -> Request {
    let (messages, thinking) = log.state(|state| (state.history.messages(), state.thinking.clone()));
    let thinking = thinking.or(environment.services.overrides.thinking.map(OptionValue::Known));
    Request {
        system: system.into(),
        messages,
        tools: environment.tools.table().specs(),
        thinking: thinking.and_then(|level| level.known()).unwrap_or_default(),
        cache_key: log.id.to_string(),
    }
}

/// Returns the size of the tools in a request, in bytes. It is 0 for a model that cannot call
/// tools, because its requests contain no tools.
pub(in crate::agent) fn tools_bytes(model: &dyn Model, tools: &[ToolSpec]) -> usize {
    let tools = tools.iter().filter(|_| model.supports_tools());
    tools.map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len()).sum()
}
