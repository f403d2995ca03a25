//! Benchmarks of the conversation that models see: building it from events, and pruning it.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use nuncio::event::Event;
use nuncio::internal::context::history::History;
use serde_json::{Value, json};

/// The events of `turns` turns. Each turn calls a tool whose output has about `output` bytes.
fn events(turns: usize, output: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for turn in 0..turns {
        let call = format!("call_{turn}");
        let text: String = (0..output / 12).map(|number| format!("{:>10} ", number * 7919 + turn)).collect();
        let tool = json!({"toolCallId": call, "name": "read", "title": "read a file"});
        let with = |fields: Value| {
            let mut body = tool.clone();
            body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
            body
        };
        let message = |id: &str, role: &str, text: &str| json!({"type": "message.completed", "messageId": format!("{id}_{turn}"), "role": role, "parts": [{"type": "text", "text": text}]});
        let step =
            |step: u32, outcome: &str| json!({"type": "step.completed", "step": step, "model": "test/model", "outcome": outcome});
        let bodies = [
            json!({"type": "turn.started"}),
            message("user", "user", "Read the next file."),
            json!({"type": "step.started", "step": 1, "model": "test/model"}),
            with(json!({"type": "tool.started", "kind": "read", "input": {"file_path": format!("{turn}.txt")}})),
            step(1, "tool_calls"),
            with(json!({"type": "tool.completed", "status": "completed", "output": [{"type": "text", "text": text}]})),
            json!({"type": "step.started", "step": 2, "model": "test/model"}),
            message("answer", "assistant", "It has numbers."),
            step(2, "end_turn"),
            json!({"type": "turn.completed", "stopReason": "end_turn"}),
        ];
        for body in bodies {
            let seq = events.len() as u64 + 1;
            let event = json!({"sessionId": "sess", "seq": seq, "turnId": format!("turn_{turn}"), "atMs": 1, "body": body});
            events.push(serde_json::from_value(event).expect("an event"));
        }
    }
    events
}

fn fold(events: &[Event]) -> History {
    let mut history = History::default();
    events.iter().for_each(|event| history.apply(event));
    history
}

fn history(criterion: &mut Criterion) {
    let long = events(1_000, 200);
    criterion.bench_function("messages of 10,000 events", |bencher| bencher.iter(|| black_box(fold(&long).messages().len())));

    // 500 kB of tool outputs, of which all but those of the two newest turns are pruned.
    let large = fold(&events(50, 10_000));
    let outputs: Vec<Value> = (0..48).map(|turn| json!({"toolCallId": format!("call_{turn}"), "chars": 10_000})).collect();
    let body = json!({"type": "context.pruned", "outputs": outputs, "tokens": 120_000});
    let pruned: Event =
        serde_json::from_value(json!({"sessionId": "sess", "seq": 501, "atMs": 1, "body": body})).expect("an event");
    criterion.bench_function("messages of 500 kB", |bencher| bencher.iter(|| black_box(large.messages().len())));
    criterion.bench_function("prune 500 kB and build the messages", |bencher| {
        let work = |mut history: History| {
            history.apply(&pruned);
            history.messages().len()
        };
        bencher.iter_batched(|| large.clone(), work, BatchSize::SmallInput)
    });
}

criterion_group!(benches, history);
criterion_main!(benches);
