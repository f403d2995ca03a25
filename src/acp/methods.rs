//! The methods as ACP defines them. A request is read by the types of ACP, which ignore what they
//! do not know, and then has the form of the method's params.

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::api::{CallContext, InitializeResult, MethodKind, MethodRow, MethodTypes, Reply, deserialize, object, standalone};
use crate::error::{Error, Result};
use crate::protocol::acp;

/// A method as ACP defines it. `session/fork` is missing, because its `cwd` is optional here.
struct AcpMethod {
    name: &'static str,
    types: MethodTypes,
    /// Reads params by their type, and writes them again.
    read: fn(&Value) -> Result<Value>,
}

impl AcpMethod {
    const fn new<P: Serialize + DeserializeOwned + JsonSchema, R: JsonSchema>(name: &'static str) -> AcpMethod {
        AcpMethod { name, types: MethodTypes::new::<P, R>(), read: read::<P> }
    }
}

static METHODS: [AcpMethod; 17] = [
    AcpMethod::new::<acp::InitializeRequest, InitializeResult>("initialize"),
    AcpMethod::new::<acp::AuthenticateRequest, acp::AuthenticateResponse>("authenticate"),
    AcpMethod::new::<acp::LogoutRequest, acp::LogoutResponse>("logout"),
    AcpMethod::new::<acp::AuthStatusRequest, acp::AuthStatusResponse>("auth/status"),
    AcpMethod::new::<acp::NewSessionRequest, acp::NewSessionResponse>("session/new"),
    AcpMethod::new::<acp::LoadSessionRequest, acp::LoadSessionResponse>("session/load"),
    AcpMethod::new::<acp::ResumeSessionRequest, acp::ResumeSessionResponse>("session/resume"),
    AcpMethod::new::<acp::ListSessionsRequest, acp::ListSessionsResponse>("session/list"),
    AcpMethod::new::<acp::CloseSessionRequest, acp::CloseSessionResponse>("session/close"),
    AcpMethod::new::<acp::DeleteSessionRequest, acp::DeleteSessionResponse>("session/delete"),
    AcpMethod::new::<acp::ArchiveSessionRequest, acp::ArchiveSessionResponse>("session/archive"),
    AcpMethod::new::<acp::UnarchiveSessionRequest, acp::UnarchiveSessionResponse>("session/unarchive"),
    AcpMethod::new::<acp::SetSessionTitleRequest, acp::SetSessionTitleResponse>("session/set_title"),
    AcpMethod::new::<acp::SetSessionModeRequest, acp::SetSessionModeResponse>("session/set_mode"),
    AcpMethod::new::<acp::SetSessionConfigOptionRequest, acp::SetSessionConfigOptionResponse>("session/set_config_option"),
    AcpMethod::new::<acp::PromptRequest, acp::PromptResponse>("session/prompt"),
    AcpMethod::new::<acp::CancelNotification, ()>("session/cancel"),
];

/// Runs a call like [`MethodRow::run`]. The params and the result have the form of ACP.
pub(crate) fn run(
    row: &'static MethodRow,
    cx: CallContext,
    params: Value,
) -> impl Future<Output = Result<Reply<Value>>> + Send + 'static {
    let params = cx.client.require_role(row.role).and_then(|()| flat(row, params));
    // Boxed, because the future of a call is large, and transports hold it in theirs.
    let call = params.map(|params| Box::pin(row.run(cx, params)));
    async move {
        let mut reply = call.map_err(|error| row.nest_error(error))?.await.map_err(|error| row.nest_error(error))?;
        reply.result = reply.result.map_err(|error| row.nest_error(error));
        reply.result.iter_mut().for_each(|result| row.nest_result(result));
        Ok(reply)
    }
}

/// Converts params from the form of ACP.
fn flat(row: &MethodRow, params: Value) -> Result<Value> {
    if !row.is_acp() {
        return Ok(params);
    }
    let mut params = object(params)?;
    if let Some(method) = METHODS.iter().find(|method| method.name == row.name) {
        complete(row.name, &mut params);
        let given = Value::Object(params);
        let read = (method.read)(&given);
        if !read.as_ref().is_ok_and(|read| is_kept(&given, read)) {
            method.types.check(&given)?;
        }
        params = object(read?)?;
    }
    row.flatten_params(&mut params)?;
    Ok(Value::Object(params))
}

/// Returns whether lists and numbers were read as such, and not as the fields of an object or the
/// index of a variant. A list that was shortened, because ACP drops invalid items, is not compared.
fn is_kept(given: &Value, read: &Value) -> bool {
    match (given, read) {
        (Value::Array(_), Value::Object(_)) | (Value::Number(_), Value::String(_)) => false,
        (Value::Array(given), Value::Array(read)) => {
            given.len() == read.len() && given.iter().zip(read).all(|(given, read)| is_kept(given, read))
        }
        (Value::Object(given), Value::Object(read)) => given.iter().all(|(name, given)| {
            let is_nested = given.is_object() || given.is_array() || given.is_number();
            !is_nested || read.get(name).is_none_or(|read| is_kept(given, read))
        }),
        _ => true,
    }
}

fn read<P: Serialize + DeserializeOwned>(params: &Value) -> Result<Value> {
    let params: P = deserialize("", params)?;
    serde_json::to_value(params).map_err(|error| Error::internal(error.to_string()))
}

/// Returns the schemas of the params and the result of a method in the form of ACP.
pub(crate) fn schemas(row: &MethodRow) -> (Schema, Schema) {
    match METHODS.iter().find(|method| method.name == row.name) {
        Some(method) => method.types.standalone(),
        None => {
            let (mut params, mut result) = row.types.standalone();
            if let Some(Value::Object(fields)) = params.get_mut("properties").filter(|_| row.is_acp()) {
                fields.retain(|name, _| !row.meta.params.contains(&name.as_str()));
                fields.insert("_meta".into(), json!({ "type": ["object", "null"], "additionalProperties": true }));
            }
            if row.kind == MethodKind::Turn {
                result = standalone(acp::PromptResponse::json_schema);
            }
            (params, result)
        }
    }
}

/// Adds what clients may omit although ACP's types require it, and rounds a version that is written
/// with a fraction: serializers of languages with only floating-point numbers write 1 as `1.0`.
fn complete(method: &str, params: &mut Map<String, Value>) {
    match method {
        "initialize" => {
            let version = params.get("protocolVersion").filter(|version| version.is_f64()).and_then(Value::as_f64);
            if let Some(version) = version.filter(|version| version.fract() == 0.0 && *version >= 0.0) {
                params.insert("protocolVersion".into(), (version as u64).into());
            }
        }
        "session/new" | "session/load" => drop(params.entry("mcpServers").or_insert_with(|| json!([]))),
        _ => {}
    }
}
