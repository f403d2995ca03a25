//! Errors of `/rpc`. Errors of jsonrpsee itself are converted to the format of all other errors.

use jsonrpsee::types::error as theirs;
use jsonrpsee::types::{ErrorObject, ErrorObjectOwned};
use serde_json::Value;

use crate::error::{Error, KINDS, Kind};
use crate::rpc::message::error_object;

/// An error as the error object of a response.
pub(crate) fn rpc_error(error: &Error) -> ErrorObjectOwned {
    let object = error_object(error);
    ErrorObjectOwned::owned(error.kind.row().rpc, error.to_string(), Some(object["data"].clone()))
}

/// Converts an error of jsonrpsee itself. Its codes up to -32005 have other meanings here.
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

/// Converts the error of a response that jsonrpsee built. None if it is not such a response.
pub(crate) fn converted(response: &Value) -> Option<ErrorObjectOwned> {
    let error = response.get("error").filter(|error| error["data"]["code"].is_null())?;
    let error: ErrorObjectOwned = serde_json::from_value(error.clone()).ok()?;
    Some(rpc_error(&from_jsonrpsee(&error)))
}
