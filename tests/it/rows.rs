//! Our own methods (`_nuncio/…`), through the ACP door: the same rows are served on the others.

mod files;
mod message;
mod permission;
mod status;
mod view;

use serde_json::Value;

use crate::harness::Agent;

/// Each call with the word that its error says, all `invalid_params` unless a code is given.
async fn refused(agent: &mut Agent, cases: &[(&str, Value, i64, &str)]) {
    for (method, params, code, word) in cases {
        let error = agent.request(method, params.clone()).await.expect_err(&format!("{method} {params}"));
        let message = error["message"].as_str().unwrap();
        assert!(error["code"] == *code && message.contains(word), "{method} {params}: {error} does not say {word:?}");
    }
}
