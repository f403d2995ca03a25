//! Deviations of real servers from their protocol, as streams of events. None of them may cost a
//! second request.

use std::sync::Arc;

use harness::provider::Protocol::{self, Anthropic, Gemini, OpenaiChat, OpenaiResponses};
use nuncio::internal::model::{Chunk, ToolSpec};
use serde_json::json;

use super::{ask, exchange, hi, open, request, shown};
use harness::provider::{Exchange, Provider};
use harness::wires::{WIRES, Wire};

struct Case {
    name: &'static str,
    protocol: Protocol,
    events: &'static [&'static str],
    /// The chunks of the answer, without usage unless the case is about usage.
    expected: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "fields of unknown events have any type",
        protocol: OpenaiResponses,
        events: &[
            r#"{"type":"response.shell_call_output_content.delta","delta":{"stdout":"x"},"output_index":"0","item":7,"response":[]}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"tool_search_call","arguments":{"paths":["x"]}}}"#,
            r#"{"type":"response.output_text.delta","output_index":2,"delta":"Hello","item":{"x":1},"response":"x"}"#,
            r#"{"type":"response.completed","response":{"usage":null,"error":null,"incomplete_details":null}}"#,
        ],
        expected: "text Hello\nstop EndTurn\n",
    },
    Case {
        name: "arguments are an object",
        protocol: OpenaiResponses,
        events: &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"read","arguments":null}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"read","arguments":{"file_path": "a"}}}"#,
            r#"{"type":"response.completed","response":{}}"#,
        ],
        expected: "call c read {\"file_path\": \"a\"}\nstop EndTurn\n",
    },
    Case {
        name: "incomplete without details",
        protocol: OpenaiResponses,
        events: &[
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hel"}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"read","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"file_"}"#,
            r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":null,"usage":null}}"#,
        ],
        expected: "text Hel\nstop MaxTokens\n",
    },
    Case {
        name: "an unknown reason for an incomplete answer",
        protocol: OpenaiResponses,
        events: &[r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_steps"}}}"#],
        expected: "stop MaxTokens\n",
    },
    Case {
        name: "the usage in Groq's field",
        protocol: OpenaiChat,
        events: &[
            r#"{"choices":[{"delta":{"content":"Hello"}}],"x_groq":{"id":"r"}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}}"#,
            "[DONE]",
        ],
        expected: "text Hello\nusage 3 2 0 0\nstop EndTurn\n",
    },
    Case {
        name: "the whole answer at the start of a message",
        protocol: Anthropic,
        events: &[
            r#"{"type":"message_start","message":{"content":[{"type":"text","text":"Hello"},{"type":"tool_use","id":"c","name":"read","input":{"file_path":"a"}}],"stop_reason":"tool_use"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        expected: "text Hello\ncall c read {\"file_path\":\"a\"}\nusage 0 0 0 0\nstop EndTurn\n",
    },
    Case {
        name: "fields are null",
        protocol: OpenaiChat,
        events: &[
            r#"{"choices":null,"usage":null,"error":null}"#,
            r#"null"#,
            r#"{"choices":[{"delta":null,"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"role":"assistant","content":null,"reasoning":null,"tool_calls":null},"finish_reason":""}]}"#,
            r#"{"choices":[{"delta":{"content":"Hello","reasoning_details":null,"refusal":null},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":null,"id":null,"function":null}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":null,"prompt_tokens_details":null}}"#,
        ],
        expected: "text Hello\nusage 3 0 0 0\nstop EndTurn\n",
    },
    Case {
        name: "fields have unexpected types",
        protocol: OpenaiChat,
        events: &[
            r#"{"choices":{},"usage":"none","object":7}"#,
            r#"{"choices":[{"delta":{"content":{"text":"Hello","type":"text"},"reasoning_details":["x"],"tool_calls":{}},"logprobs":[],"finish_reason":0}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":"3","completion_tokens":2.0}}"#,
            "[DONE]",
        ],
        expected: "text Hello\nusage 0 2 0 0\nstop EndTurn\n",
    },
    Case {
        name: "arguments are an object",
        protocol: OpenaiChat,
        events: &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":{"file_path": "a"}}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
        expected: "call c read {\"file_path\": \"a\"}\nstop EndTurn\n",
    },
    Case {
        name: "a call in both fields",
        protocol: OpenaiChat,
        events: &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":"{}"}}],"function_call":{"name":"read","arguments":"{}"}}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
        expected: "call c read {}\nstop EndTurn\n",
    },
    Case {
        name: "an unknown finish reason",
        protocol: OpenaiChat,
        events: &[r#"{"choices":[{"delta":{"content":"Hello"},"finish_reason":"eos_token"}]}"#],
        expected: "text Hello\nstop EndTurn\n",
    },
    Case {
        name: "output tokens without reasoning",
        protocol: OpenaiChat,
        events: &[
            r#"{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,"completion_tokens_details":{"reasoning_tokens":290}}}"#,
            "[DONE]",
        ],
        expected: "text Hello\nusage 12 291 0 0\nstop EndTurn\n",
    },
    Case {
        name: "fields have unexpected types",
        protocol: Anthropic,
        events: &[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":null},"content":{}}}"#,
            r#"{"type":"vendor_event","index":"one","delta":"text","content_block":[],"usage":"none","error":7}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":null,"input":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{},"text":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello","signature":{}}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"brand_new_reason"},"usage":{"output_tokens":2,"input_tokens":null}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        expected: "text Hello\nusage 3 2 0 0\nstop EndTurn\n",
    },
    Case {
        name: "the limit is reached in the middle of a call",
        protocol: Anthropic,
        events: &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"read","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"file_"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":2}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        expected: "usage 0 2 0 0\nstop MaxTokens\n",
    },
    Case {
        name: "a complete call without its end",
        protocol: Anthropic,
        events: &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"read","input":{"file_path": "a"}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        expected: "call c read {\"file_path\": \"a\"}\nusage 0 0 0 0\nstop EndTurn\n",
    },
    Case {
        name: "no event after the stop reason",
        protocol: Anthropic,
        events: &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        ],
        expected: "text Hello\nusage 0 2 0 0\nstop EndTurn\n",
    },
    Case {
        name: "an unknown finish reason with a call",
        protocol: Gemini,
        events: &[
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c","name":"read","args":{"file_path":"a"}}}]},"finishReason":"FUNCTION_CALL"}]}"#,
        ],
        expected: "call c read {\"file_path\":\"a\"}\nstop EndTurn\n",
    },
    Case {
        name: "a safety word refuses",
        protocol: Gemini,
        events: &[r#"{"candidates":[{"finishReason":"SAFETY"}]}"#],
        expected: "stop Refusal\n",
    },
    Case {
        name: "fields are null or have unexpected types",
        protocol: Gemini,
        events: &[
            r#"{"candidates":null,"usageMetadata":null,"promptFeedback":null,"error":null}"#,
            r#"{"candidates":[{"content":null}],"promptFeedback":"none","usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":null}}"#,
            r#"{"candidates":[{"content":{"parts":null,"role":"model"}},{"content":{"parts":[{"text":"Hello","thought":null,"thoughtSignature":null},{"executableCode":{"code":"x"}},{"text":7}]},"finishReason":"STOP"}]}"#,
        ],
        expected: "text Hello\nusage 3 0 0 0\nstop EndTurn\n",
    },
];

#[tokio::test]
async fn deviations_are_read_without_a_second_request() {
    for case in CASES {
        let wire = WIRES.iter().find(|wire| wire.protocol == case.protocol).expect("all four are there");
        let (answer, _) = exchange(wire, vec![Exchange::events(case.events)]).await;
        assert_eq!((answer.error, shown(&answer.chunks).as_str()), (None, case.expected), "{:?}: {}", case.protocol, case.name);
    }
}

/// Text of a chat answer in two pieces at every position, and the expected chunks. Texts and
/// thoughts are joined.
const TAGS: &[(&str, &str, &str, &str)] = &[
    (
        "thinking at the start",
        "qwen3-8b",
        "\n<think>\nTwo files.\n</think>\n\nHello <think>",
        "thinking \nTwo files.\n\nend thinking {\"provider\":\"test\"}\ntext Hello <think>\nstop EndTurn\n",
    ),
    (
        "calls",
        "Hermes-4-14B",
        "Reading.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"file_path\": \"a\"}}\n</tool_call>\n<tool_call>{\"name\":\"read\"}</tool_call>\n",
        "text Reading.\n\ncall read {\"file_path\": \"a\"}\ncall read {}\nstop EndTurn\n",
    ),
    (
        "a call without its end",
        "qwq-32b",
        "<think>hm</think><tool_call>{\"name\": \"read\", \"arguments\": {}}",
        "thinking hm\nend thinking {\"provider\":\"test\"}\ncall read {}\nstop EndTurn\n",
    ),
    (
        "an unknown tool and an incomplete tag",
        "qwen3-8b",
        "<tool_call>{\"name\":\"fly\"}</tool_call> <tool_",
        "text <tool_call>{\"name\":\"fly\"}</tool_call> <tool_\nstop EndTurn\n",
    ),
    (
        "the prompt opens the thinking",
        "DeepSeek-R1-Distill-Qwen-7B",
        "Two files.\n</think>\n\nHello",
        "thinking Two files.\n\nend thinking {\"provider\":\"test\"}\ntext Hello\nstop EndTurn\n",
    ),
    (
        "the prompt may open the thinking, and the answer has none",
        "qwq-32b",
        "Hello",
        "thinking Hello\nend thinking {\"provider\":\"test\"}\ntext Hello\nstop EndTurn\n",
    ),
    (
        "thinking of Magistral",
        "magistral-small-2509",
        "[THINK]Two files.[/THINK]Hello [THINK]",
        "thinking Two files.\nend thinking {\"provider\":\"test\"}\ntext Hello [THINK]\nstop EndTurn\n",
    ),
    (
        "calls of Qwen3-Coder",
        "qwen3-coder-30b",
        "<tool_call>\n<function=read>\n<parameter=file_path>\n 7\n</parameter>\n<parameter=limit>\n7\n</parameter>\n</function>\n</tool_call>",
        "call read {\"file_path\":\" 7\",\"limit\":7}\nstop EndTurn\n",
    ),
    (
        "calls of GLM",
        "glm-4.6",
        "Reading.\n<tool_call>read\n<arg_key>file_path</arg_key>\n<arg_value>7</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>7</arg_value>\n</tool_call><tool_call>read</tool_call>",
        "text Reading.\n\ncall read {\"file_path\":\"7\",\"limit\":7}\ncall read {}\nstop EndTurn\n",
    ),
    (
        "a call inside a line",
        "qwen3-8b",
        "Write <tool_call>{\"name\":\"read\"}</tool_call>",
        "text Write <tool_call>{\"name\":\"read\"}</tool_call>\nstop EndTurn\n",
    ),
    (
        "a call in a code block",
        "qwen3-8b",
        "Write:\n````\n```\n<tool_call>{\"name\":\"read\"}</tool_call>",
        "text Write:\n````\n```\n<tool_call>{\"name\":\"read\"}</tool_call>\nstop EndTurn\n",
    ),
    (
        "a call after a code block",
        "qwen3-8b",
        "~~~sh\nls\n~~~\n<tool_call>{\"name\":\"read\"}</tool_call>",
        "text ~~~sh\nls\n~~~\n\ncall read {}\nstop EndTurn\n",
    ),
    (
        "calls before text and before an unknown tool",
        "qwen3-8b",
        "<tool_call>{\"name\":\"read\"}</tool_call>\n<tool_call>{\"name\":\"read\"}</tool_call> no\n<tool_call>{\"name\":\"read\"}</tool_call>\n<tool_call>fly</tool_call>\n<tool_call>{\"name\":\"read\"}</tool_call>",
        "text <tool_call>{\"name\":\"read\"}</tool_call>\n<tool_call>{\"name\":\"read\"}</tool_call> no\n<tool_call>{\"name\":\"read\"}</tool_call>\n<tool_call>fly</tool_call>\n\ncall read {}\nstop EndTurn\n",
    ),
    ("another family of models", "gpt-x", "<think>hm</think>", "text <think>hm</think>\nstop EndTurn\n"),
];

#[tokio::test]
async fn tags_in_text_of_known_models_are_thinking_and_calls() {
    let wire = WIRES.iter().find(|wire| wire.protocol == OpenaiChat).expect("there");
    let schema = json!({ "type": "object", "properties": { "file_path": { "type": "string" }, "limit": { "type": "integer" } } });
    let read = ToolSpec { name: "read".into(), description: String::new(), input_schema: schema };
    let tools: Arc<[ToolSpec]> = Arc::new([read]);
    for (name, model, text, expected) in TAGS {
        let event = |text: &str| json!({ "choices": [{ "delta": { "content": text } }] }).to_string();
        let exchange = |at: usize| {
            let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
            Exchange::events(&[&event(&text[..at]), &event(&text[at..]), stop])
        };
        let answers = (0..text.len()).map(exchange).collect();
        let provider = Provider::start(wire.protocol, answers).await;
        let model = open(&Wire { model, ..*wire }, &provider.base_url);
        for at in 0..text.len() {
            let mut request = request(hi());
            request.tools = tools.clone();
            let answer = ask(model.as_ref(), request).await;
            assert_eq!(joined(&answer.chunks), *expected, "{name}: {:?} {:?}", &text[..at], &text[at..]);
        }
        provider.finish().await;
    }
}

/// Some servers decode a call and also leave its text in the content.
#[tokio::test]
async fn calls_in_text_are_used_only_without_calls_of_the_server() {
    let wire = WIRES.iter().find(|wire| wire.protocol == OpenaiChat).expect("there");
    let text = r#"{"choices":[{"delta":{"content":"Hi.\n<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>"}}]}"#;
    let call =
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":"{\"a\":1}"}}]}}]}"#;
    for events in [[text, call], [call, text]] {
        let events = [events[0], events[1], r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#];
        let (answer, _) = exchange(&Wire { model: "qwen3-8b", ..*wire }, vec![Exchange::events(&events)]).await;
        assert_eq!(shown(&answer.chunks), "text Hi.\n\ncall c read {\"a\":1}\nstop EndTurn\n");
    }
}

/// Chunks as text, with joined texts and thoughts, and without the ids of calls.
pub(super) fn joined(chunks: &[Chunk]) -> String {
    let mut joined: Vec<Chunk> = Vec::new();
    for chunk in chunks {
        match (joined.last_mut(), chunk) {
            (Some(Chunk::Text(text)), Chunk::Text(more)) | (Some(Chunk::Thinking(text)), Chunk::Thinking(more)) => {
                text.push_str(more);
            }
            (_, Chunk::Text(text) | Chunk::Thinking(text)) if text.is_empty() => {}
            (_, chunk) => joined.push(chunk.clone()),
        }
    }
    for chunk in &mut joined {
        if let Chunk::ToolCall { id, .. } = chunk {
            id.clear();
        }
    }
    shown(&joined).replace("call  ", "call ")
}

#[tokio::test]
async fn last_event_needs_no_blank_line() {
    for wire in WIRES {
        let stream: String = wire.plain.iter().map(|event| format!("data: {event}\n\n")).collect();
        for end in ["\n", ""] {
            let stream = format!("{}{end}", stream.trim_end());
            let (answer, _) = exchange(wire, vec![Exchange::new(200, "text/event-stream", vec![stream])]).await;
            // Both texts arrive together.
            let expected = super::hello(wire).replace(super::HELLO, "text Hello\n");
            assert_eq!((answer.error, shown(&answer.chunks)), (None, expected), "{}", wire.model);
        }
    }
}
