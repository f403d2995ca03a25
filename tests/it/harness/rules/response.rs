//! The answer to a refused request, in the shape of the provider's errors.

use serde_json::{Value, json};

use super::{Platform, Refusal};
use crate::provider::{Exchange, Protocol};

/// Returns the error with which a platform answers a refused request.
pub fn response(protocol: Protocol, platform: Platform, refusal: &Refusal) -> Exchange {
    let exchange = Exchange::error(refusal.status, &body(protocol, platform, refusal).to_string());
    match protocol {
        Protocol::Bedrock => exchange.header("x-amzn-errortype", "ValidationException"),
        _ => exchange,
    }
}

fn body(protocol: Protocol, platform: Platform, refusal: &Refusal) -> Value {
    let (message, code) = (&refusal.message, refusal.code);
    let anthropic = |message: &str| {
        let kind = if refusal.status == 413 { "request_too_large" } else { "invalid_request_error" };
        json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" })
    };
    let google = json!({ "error": { "code": refusal.status, "message": message, "status": "INVALID_ARGUMENT" } });
    let openai = json!({ "error": {
        "message": message, "type": "invalid_request_error", "param": refusal.place, "code": code,
    }});
    match (protocol, platform) {
        (Protocol::Anthropic, _) => anthropic(message),
        (Protocol::Gemini, _) => google,
        (Protocol::Bedrock, _) => json!({ "message": message }),
        (Protocol::Ollama, _) => json!({ "error": message }),
        (_, Platform::Mistral) => {
            let code = code.unwrap_or("3051");
            json!({ "object": "error", "message": message, "type": "invalid_request_error", "param": null, "code": code })
        }
        (_, Platform::Zai) => json!({ "error": { "code": code.unwrap_or("1210"), "message": message } }),
        (_, Platform::Minimax) => {
            let error = json!({ "type": "bad_request_error", "message": message, "http_code": "400" });
            json!({ "type": "error", "error": error, "request_id": "1" })
        }
        (_, Platform::OpenRouter) => {
            let metadata = json!({ "raw": openai.to_string(), "provider_name": "OpenAI" });
            json!({ "error": { "message": "Provider returned error", "code": refusal.status, "metadata": metadata } })
        }
        (_, Platform::Cerebras) => json!({
            "message": message, "type": "invalid_request_error", "param": refusal.place, "code": code.unwrap_or("wrong_api_format"),
        }),
        _ => openai,
    }
}
