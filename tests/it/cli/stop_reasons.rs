//! `nuncio run` reports refused and truncated answers in its output and its exit code.

use harness::provider::Exchange;
use harness::provider::session;
use harness::wires::WIRES;

#[tokio::test]
async fn refused_and_truncated_answers_are_errors() {
    let mut silent = Vec::new();
    for wire in WIRES {
        let cases = [(wire.refusal, "refus"), (wire.max_tokens, "token")];
        for (events, word) in cases.into_iter().filter(|(events, _)| !events.is_empty()) {
            for flags in [&["run", "go"][..], &["run", "--plain", "go"]] {
                let (home, provider, name) = session::home(wire, vec![Exchange::events(events)]).await;
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
