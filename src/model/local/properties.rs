//! The properties of a model that its server reports. Each kind of server has its own API.

use serde_json::{Value, json};

use super::api::{LocalApi, Unavailable};
use crate::model::catalog::LOCAL_CONTEXT_WINDOW;
use crate::model::endpoint::{Endpoint, Protocol};
use crate::model::reported::Properties;

/// The properties, and whether they are final: a model that is not loaded yet may get another
/// window.
pub(super) type Report = Result<(Properties, bool), Unavailable>;

/// Asks a server. Its list of models shows of which kind it is.
pub(super) async fn query(server: &LocalApi<'_>, endpoint: &Endpoint) -> Report {
    let model = endpoint.model.as_str();
    if endpoint.protocol == Protocol::Ollama {
        return ollama(server, model, true).await;
    }
    let (list, version) = tokio::join!(server.get::<Value>("/v1/models", &[]), server.get::<Value>("/api/version", &[]));
    let list = list?.unwrap_or_default();
    let entry = entry(&list["data"], "id", model).unwrap_or(&Value::Null);
    match entry["owned_by"].as_str() {
        Some("llamacpp") => llamacpp(server, entry).await,
        Some("organization_owner") => lmstudio(server, model).await,
        Some("koboldcpp") => koboldcpp(server).await,
        _ if version.ok().flatten().is_some_and(|version| version["version"].is_string()) => ollama(server, model, false).await,
        // vLLM, and servers that use its field.
        _ => Ok((Properties { context_window: entry["max_model_len"].as_u64(), ..Properties::default() }, true)),
    }
}

/// Finds the list entry of a model. A server with one model accepts any name.
fn entry<'a>(list: &'a Value, field: &str, model: &str) -> Option<&'a Value> {
    let list = list.as_array()?;
    let named = |entry: &&Value| {
        entry[field] == model || entry["aliases"].as_array().is_some_and(|aliases| aliases.iter().any(|alias| alias == model))
    };
    list.iter().find(named).or(list.first().filter(|_| list.len() == 1))
}

/// Queries llama.cpp (tools/server/README.md) for the window of one slot, and for tools in the chat
/// template. A server with several models (router mode) lists them with a status.
async fn llamacpp(server: &LocalApi<'_>, entry: &Value) -> Report {
    let status = entry.pointer("/status/value").and_then(Value::as_str);
    let listed = Properties { context_window: entry.pointer("/meta/n_ctx").and_then(Value::as_u64), ..Properties::default() };
    if status.is_some_and(|status| status != "loaded") {
        return Ok((listed, false));
    }
    let name = entry["id"].as_str().unwrap_or_default();
    let query = [("model", name)];
    let props: Value = server.get("/props", if status.is_some() { &query } else { &[] }).await?.unwrap_or_default();
    let window = props.pointer("/default_generation_settings/n_ctx").and_then(Value::as_u64);
    let tools = props.pointer("/chat_template_caps/supports_tools").and_then(Value::as_bool);
    let context_window = window.filter(|window| *window > 0).or(listed.context_window);
    Ok((Properties { context_window, tools, thinking: None }, true))
}

/// Queries LM Studio (lmstudio.ai/docs/developer/rest/endpoints). The first request loads a model,
/// so the window of a model that is not loaded is preliminary.
async fn lmstudio(server: &LocalApi<'_>, model: &str) -> Report {
    let list: Value = server.get("/api/v0/models", &[]).await?.unwrap_or_default();
    let entry = entry(&list["data"], "id", model).unwrap_or(&Value::Null);
    let loaded = entry["loaded_context_length"].as_u64();
    let largest = entry["max_context_length"].as_u64().map(|tokens| tokens.min(LOCAL_CONTEXT_WINDOW));
    // Models without this capability also support tools: LM Studio writes the tools in a generic
    // format. So the absence of the capability is not reported as `Some(false)`.
    let tools = entry["capabilities"].as_array().is_some_and(|list| list.iter().any(|name| name == "tool_use"));
    Ok((Properties { context_window: loaded.or(largest), tools: tools.then_some(true), thinking: None }, loaded.is_some()))
}

/// Queries KoboldCpp (lite.koboldai.net/koboldcpp_api) for the context window.
async fn koboldcpp(server: &LocalApi<'_>) -> Report {
    let answer: Value = server.get("/api/extra/true_max_context_length", &[]).await?.unwrap_or_default();
    Ok((Properties { context_window: answer["value"].as_u64(), ..Properties::default() }, true))
}

/// Queries Ollama (docs.ollama.com/api). With `native`, requests set the window. The window of a
/// loaded model is used if it is large enough, because Ollama would load the model again for
/// another window. Without `native`, the window is known only for a loaded model.
async fn ollama(server: &LocalApi<'_>, model: &str, native: bool) -> Report {
    let body = json!({ "model": model });
    let (show, running) = tokio::join!(server.post::<Value>("/api/show", &body), server.get::<Value>("/api/ps", &[]));
    let (show, running) = (show?.unwrap_or_default(), running.ok().flatten().unwrap_or_default());
    let latest = format!("{model}:latest");
    let loaded =
        running["models"].as_array().into_iter().flatten().find(|entry| entry["name"] == model || entry["name"] == *latest);
    let loaded = loaded.and_then(|entry| entry["context_length"].as_u64()).filter(|tokens| *tokens > 0);
    let info = show["model_info"].as_object();
    let trained = info.and_then(|info| info.iter().find(|(name, _)| name.ends_with(".context_length"))?.1.as_u64());
    // Do not limit a model of Ollama's cloud, which always has its largest window.
    let largest = if show["remote_host"].is_string() { u64::MAX } else { LOCAL_CONTEXT_WINDOW };
    let wanted = trained.map(|tokens| tokens.min(largest));
    let can = |name: &str| show["capabilities"].as_array().map(|list| list.iter().any(|capability| capability == name));
    let context_window = match native {
        true => loaded.filter(|loaded| *loaded >= wanted.unwrap_or(LOCAL_CONTEXT_WINDOW)).or(wanted),
        false => loaded,
    };
    Ok((Properties { context_window, tools: can("tools"), thinking: can("thinking") }, native || loaded.is_some()))
}
