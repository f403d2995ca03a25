//! A model that answers several requests keeps the encoded start of the conversation: each request
//! has the bytes that a new model would send, whatever happened to the conversation in between.

use std::sync::Arc;

use harness::provider::{Exchange, Provider};
use harness::wires::WIRES;
use nuncio::content::Part;
use nuncio::internal::model::{Block, Message, Request, Thinking, ToolResult};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::{ask, open, request};
use crate::random::property;

/// A change of the conversation before a request.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// A turn with text.
    Turn,
    /// A turn with a call and its result, which may have the id of an earlier call.
    Call { id: u8 },
    /// Two messages of the user in a row.
    Messages,
    /// The result of an old call is replaced by a short text, as pruning does.
    Prune(usize),
    /// A summary replaces the conversation.
    Compaction,
    /// The last answer is taken back.
    TakeBack,
    /// Another thinking level.
    Level(bool),
    /// A provider refused a part of the conversation.
    Refusal(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => Just(Change::Turn),
        4 => (0..3_u8).prop_map(|id| Change::Call { id }),
        1 => Just(Change::Messages),
        1 => (0..20_usize).prop_map(Change::Prune),
        1 => Just(Change::Compaction),
        1 => Just(Change::TakeBack),
        1 => any::<bool>().prop_map(Change::Level),
        1 => (0..20_usize).prop_map(Change::Refusal),
    ]
}

fn user(text: String) -> Arc<Message> {
    Arc::new(Message::User(vec![Part::text(text)]))
}

fn answer(blocks: Vec<Block>) -> Arc<Message> {
    Arc::new(Message::Assistant(blocks))
}

fn apply(change: Change, number: usize, request: &mut Request) {
    let messages = Arc::make_mut(&mut request.messages);
    let text = |text: String| Block::Text { text, state: None };
    match change {
        Change::Turn => messages.extend([answer(vec![text(format!("answer {number}"))]), user(format!("prompt {number}"))]),
        Change::Call { id } => {
            let input = json!({"path": format!("file {number}")});
            let call =
                Block::ToolCall { id: format!("call_{id}").into(), name: "read".into(), input, input_text: None, state: None };
            let output = vec![Part::text(format!("content {number}"))];
            let result = ToolResult { id: format!("call_{id}").into(), name: "read".into(), output, failed: id == 2 };
            messages.extend([answer(vec![text("I read.".into()), call]), Arc::new(Message::ToolResults(vec![result]))]);
        }
        Change::Messages => messages.extend([user(format!("and {number}")), user("more".into())]),
        Change::Prune(at) => {
            let mut results = messages.iter_mut().filter(|message| matches!(***message, Message::ToolResults(_)));
            if let Some(message) = results.nth(at % 3)
                && let Message::ToolResults(results) = Arc::make_mut(message)
            {
                results[0].output = vec![Part::text("pruned")];
            }
        }
        Change::Compaction => *messages = vec![user(format!("summary {number}"))],
        Change::TakeBack => {
            let last = messages.iter().rposition(|message| matches!(**message, Message::Assistant(_)));
            messages.truncate(last.unwrap_or(messages.len()).max(1));
        }
        Change::Level(high) => request.thinking = if high { Thinking::High } else { Thinking::Off },
        Change::Refusal(at) => {
            request.refused = Arc::new([format!("digest {at}")].into());
        }
    }
}

#[test]
fn each_request_has_the_bytes_of_a_new_model() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for wire in WIRES {
        proptest!(property("kept messages", 40), |(changes in vec(change(), 1..16))| {
            let bodies = runtime.block_on(async {
                let provider = Provider::start(wire.protocol, Vec::new()).await;
                provider.otherwise(Exchange::events(wire.plain));
                let kept = open(wire, &provider.base_url);
                let mut next = request(vec![Message::User(vec![Part::text("begin")])]);
                for (number, change) in changes.iter().enumerate() {
                    apply(*change, number, &mut next);
                    for model in [&kept, &open(wire, &provider.base_url)] {
                        assert_eq!(ask(model.as_ref(), next.clone()).await.error, None);
                    }
                }
                provider.finish_unchecked().await.into_iter().map(|received| received.body.to_string()).collect::<Vec<_>>()
            });
            for (pair, change) in bodies.chunks(2).zip(&changes) {
                prop_assert_eq!(&pair[0], &pair[1], "{:?}", change);
            }
        });
    }
}
