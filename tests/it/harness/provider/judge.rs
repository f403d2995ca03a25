//! Judges the requests that a scripted provider receives, by the rules of the providers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::{Exchange, Log, ReceivedRequest};
use crate::rules::{self, JudgedRequest, Platform};

/// The rules that a provider follows, and what it has refused.
#[derive(Default)]
pub struct Judge {
    pub platform: Option<Platform>,
    lax: BTreeSet<u8>,
    refused: Vec<String>,
    /// Path and body of the requests that were answered with a status of [`FINAL`].
    answered: BTreeSet<(String, String)>,
}

/// HTTP statuses that mean that the provider would refuse the same request again.
const FINAL: &[u16] = &[400, 413, 422];
/// Number of the rule that a refused request is not sent again.
const REPEATED: u8 = 40;

impl Judge {
    pub fn lax(&mut self, rules: &[u8]) {
        let all = rules::RULES.iter().chain(rules::RULES_OF_SEVERAL_REQUESTS);
        let known = |number: &u8| all.clone().any(|(known, _)| known == number);
        assert!(rules.iter().all(known), "unknown rules in {rules:?}");
        self.lax.extend(rules);
    }

    /// Adds the status of the answer to a request, which must not have been refused before.
    pub fn add_answer(&mut self, received: &ReceivedRequest, status: u16) {
        let request = (received.path.clone(), received.text.clone());
        if self.answered.contains(&request) && !self.lax.contains(&REPEATED) {
            let words = format!("rule {REPEATED}, {}: this request was refused before", received.path);
            eprintln!("{words}: {}", received.text);
            self.refused.push(words);
        }
        if FINAL.contains(&status) {
            self.answered.insert(request);
        }
    }

    /// Returns the answer to a request that the provider refuses.
    pub fn refuse(&mut self, received: &ReceivedRequest) -> Option<Exchange> {
        let (protocol, platform, model) = rules::recognize(&received.path, &received.body)?;
        let platform = self.platform.unwrap_or(platform);
        let ReceivedRequest { path, body, text, .. } = received;
        let mut refusals = rules::refusals(&JudgedRequest { protocol, platform, model: &model, path, body, text });
        refusals.retain(|refusal| !self.lax.contains(&refusal.rule));
        let response = rules::response(protocol, platform, refusals.first()?);
        let found: Vec<String> = refusals.iter().map(|refusal| format!("{platform:?} refuses {model}, {refusal}")).collect();
        for refusal in &found {
            eprintln!("{refusal}");
        }
        eprintln!("in {text}");
        self.refused.extend(found);
        Some(response)
    }
}

/// Fails the test at the end of the provider if the provider has refused a request.
pub struct RefusalGuard(pub(super) Arc<Mutex<Log>>);

impl Drop for RefusalGuard {
    fn drop(&mut self) {
        // A second panic would end the process and hide the first.
        if std::thread::panicking() {
            return;
        }
        let refused = self.0.lock().map(|log| log.judge.refused.join("\n")).unwrap_or_default();
        assert!(refused.is_empty(), "the provider refused requests:\n{refused}");
    }
}
