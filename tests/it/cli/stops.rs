//! `nuncio run` with an answer that is none, or not the whole: it says so, and its code does.

use crate::models::wires::WIRES;
use crate::provider::Exchange;
use crate::providers;

#[tokio::test]
async fn a_refusal_and_a_cut_answer_do_not_look_like_success() {
    let mut silent = Vec::new();
    for wire in WIRES {
        for (events, word) in [(wire.refusal, "refus"), (wire.max_tokens, "token")] {
            for flags in [&["run", "go"][..], &["run", "--plain", "go"]] {
                let (home, provider, name) = providers::home(wire, vec![Exchange::events(events)]).await;
                let ran = home.run(flags, "").await;
                if ran.code != 1 || !ran.stderr.to_lowercase().contains(word) {
                    silent.push(format!("{name}, {word}: {ran:?}"));
                }
                provider.finish().await;
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}
