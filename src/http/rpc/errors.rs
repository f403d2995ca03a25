//! Errors of `/rpc`. Errors created by jsonrpsee are converted to nuncio's format.

use jsonrpsee::types::error as theirs;
use jsonrpsee::types::{ErrorObject, ErrorObjectOwned};
use serde_json::Value;

use crate::error::{Error, KINDS, Kind};
use crate::rpc::message::error_object;

pub(crate) fn rpc_error(error: &Error) -> ErrorObjectOwned {
    let object = error_object(error);
    ErrorObjectOwned::owned(error.kind.row().rpc, error.to_string(), Some(object["data"].clone()))
}

/// Converts an error created by jsonrpsee. Its implementation-defined codes (above -32600) are not
/// looked up in nuncio's error table, where they have other meanings.
pub(crate) fn from_jsonrpsee(error: &ErrorObject<'_>) -> Error {
    let kind = match error.code() {
        theirs::OVERSIZED_REQUEST_CODE
        | theirs::OVERSIZED_RESPONSE_CODE
        | theirs::TOO_BIG_BATCH_REQUEST_CODE
        | theirs::TOO_BIG_BATCH_RESPONSE_CODE => Kind::TooLarge,
        theirs::TOO_MANY_SUBSCRIPTIONS_CODE | theirs::SERVER_IS_BUSY_CODE => Kind::Overloaded,
        code => KINDS.iter().find(|row| row.rpc == code && code <= -32600).map_or(Kind::Internal, |row| row.kind),
    };
    let more = error.data().and_then(|data| serde_json::from_str::<String>(data.get()).ok());
    Error::new(kind, more.map_or_else(|| error.message().into(), |more| format!("{}: {more}", error.message())))
}

/// Converts the error in a response that was created by jsonrpsee. None for any other response.
pub(crate) fn converted(response: &Value) -> Option<ErrorObjectOwned> {
    let error = response.get("error").filter(|error| error["data"]["code"].is_null())?;
    let error: ErrorObjectOwned = serde_json::from_value(error.clone()).ok()?;
    Some(rpc_error(&from_jsonrpsee(&error)))
}
