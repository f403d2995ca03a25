//! Makes the results of a server readable. A content that is unknown or malformed is replaced by a
//! note, and a malformed item of a list is omitted; the rest of the result is used.

use std::borrow::Cow;

use rmcp::model::{
    ContentBlock, JsonRpcMessage, JsonRpcResponse, Prompt, Resource, ResourceContents, ResourceTemplate, ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::tool_list;
use crate::content::shortened;
use crate::workspace::one_line;

/// Maximum size of the reason in a note, in bytes.
const REASON_BYTES_MAX: usize = 200;

/// A transport whose results are readable.
pub(super) struct ReadableResults<T>(pub T);

impl<T: Transport<RoleClient>> Transport<RoleClient> for ReadableResults<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.0.send(item)
    }

    /// Receives the next message. Cancel safe if the transport is.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut message = self.0.receive().await?;
        // rmcp returns a result that it cannot read as a custom result.
        if let JsonRpcMessage::Response(JsonRpcResponse { result, .. }) = &mut message
            && let ServerResult::CustomResult(custom) = result
        {
            repair(&mut custom.0);
            if let Ok(readable) = ServerResult::deserialize(&custom.0) {
                *result = readable;
            }
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.0.close()
    }
}

/// Repairs the fields of a result that have the names of the protocol.
fn repair(result: &mut Value) {
    let Some(fields) = result.as_object_mut() else { return };
    fields.retain(|name, value| match name.as_str() {
        "_meta" => value.is_object(),
        "nextCursor" | "description" => value.is_string(),
        _ => true,
    });
    for (name, value) in fields.iter_mut() {
        let repaired = match name.as_str() {
            "content" => items(value).into_iter().map(block).collect(),
            "contents" => items(value).into_iter().map(resource).collect(),
            "messages" => items(value).into_iter().flat_map(messages).collect(),
            "prompts" => readable_items::<Prompt>(value),
            "resources" => readable_items::<Resource>(value),
            "resourceTemplates" => readable_items::<ResourceTemplate>(value),
            "isError" if !value.is_boolean() => {
                *value = json!(*value == "true" || *value == 1);
                continue;
            }
            _ => continue,
        };
        *value = Value::Array(repaired);
    }
    tool_list::omit_unusable(result);
}

/// Takes the items of a list. One item may stand without a list.
fn items(list: &mut Value) -> Vec<Value> {
    match list.take() {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        item => vec![item],
    }
}

/// Takes the items of a list that can be read.
fn readable_items<T: DeserializeOwned>(list: &mut Value) -> Vec<Value> {
    let read = |item| match readable::<T>(item) {
        Ok(item) => Some(item),
        Err((item, error)) => {
            tracing::warn!(%error, name = item["name"].as_str(), "an item of a list of an MCP server is malformed");
            None
        }
    };
    items(list).into_iter().filter_map(read).collect()
}

/// Returns a value that can be read, perhaps without the fields that every content can do without;
/// otherwise the value, and why it cannot be read.
fn readable<T: DeserializeOwned>(value: Value) -> Result<Value, (Value, String)> {
    let read = |value: &Value| T::deserialize(value).map(drop);
    let Err(error) = read(&value) else { return Ok(value) };
    let mut plain = value;
    plain.as_object_mut().into_iter().for_each(|fields| fields.retain(|name, _| name != "_meta" && name != "annotations"));
    match read(&plain) {
        Ok(()) => Ok(plain),
        Err(_) => Err((plain, one_line(shortened(error.to_string(), REASON_BYTES_MAX)))),
    }
}

/// Returns a readable block of contents.
fn block(block: Value) -> Value {
    let block = match block {
        Value::String(text) => json!({"type": "text", "text": text}),
        block => block,
    };
    readable::<ContentBlock>(block).unwrap_or_else(|(block, error)| {
        let note = match block["type"].as_str() {
            Some(kind @ ("text" | "image" | "audio" | "resource" | "resource_link")) => format!("[{kind} omitted: {error}]"),
            Some(kind) => {
                format!("[content of the unknown type {:?} omitted]", one_line(shortened(kind.to_owned(), REASON_BYTES_MAX)))
            }
            None => "[content without a type omitted]".into(),
        };
        json!({"type": "text", "text": note})
    })
}

/// Returns readable contents of a resource.
fn resource(contents: Value) -> Value {
    readable::<ResourceContents>(contents).unwrap_or_else(|(contents, error)| {
        let uri = contents["uri"].as_str().unwrap_or_default();
        json!({"uri": uri, "text": format!("[contents omitted: {error}]")})
    })
}

/// Returns readable messages of a prompt: one for each block of a message's content.
fn messages(mut message: Value) -> Vec<Value> {
    let role = if message["role"] == "assistant" { "assistant" } else { "user" };
    let mut content = match message.as_object_mut() {
        Some(fields) => fields.remove("content").unwrap_or_default(),
        None => message,
    };
    items(&mut content).into_iter().map(|content| json!({"role": role, "content": block(content)})).collect()
}
