//! Messages of the five protocols: events of the provider and expected requests.

use super::provider::Protocol;

mod ollama;

pub struct Wire {
    pub protocol: Protocol,
    pub model: &'static str,
    pub path: &'static str,
    /// "Hello" in two deltas; 10 input tokens, 4 of them cached; 2 output tokens.
    pub plain: &'static [&'static str],
    /// Thinking, the text "Reading.", and two calls of `read` with interleaved fragments.
    pub rich: &'static [&'static str],
    pub rich_chunks: &'static str,
    /// Number of events of `rich` up to the end of the first call.
    pub first_call: usize,
    /// Body of the request after `rich`.
    pub follow_up: &'static str,
    /// An overload error after "Hel".
    pub error: &'static [&'static str],
    pub max_tokens: &'static [&'static str],
    /// Empty if the protocol has no refusals.
    pub refusal: &'static [&'static str],
}

pub const WIRES: &[Wire] = &[ANTHROPIC, CHAT, RESPONSES, GEMINI, ollama::OLLAMA];

const ANTHROPIC: Wire = Wire {
    protocol: Protocol::Anthropic,
    model: "claude-sonnet-5",
    path: "/v1/messages",
    plain: &[
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":5,"cache_creation_input_tokens":1,"cache_read_input_tokens":4,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ],
    rich: &[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"XYZ"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"Two "}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"files."}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"SIG="}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Reading."}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\":"}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"a\"}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu.2","name":"read","input":{}}}"#,
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\":\"b\"}"}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20}}"#,
        r#"{"type":"message_stop"}"#,
    ],
    rich_chunks: r#"
end thinking {"redacted":"XYZ"}
thinking Two 
thinking files.
end thinking {"signature":"SIG="}
text Reading.
call toolu_1 read {"file_path":"a"}
call toolu.2 read {"file_path":"b"}
usage 10 20 0 0
stop EndTurn
"#,
    first_call: 16,
    follow_up: r#"{
        "model": "claude-sonnet-5", "max_tokens": 64000, "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {}}, "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}, "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [
                {"type": "redacted_thinking", "data": "XYZ"},
                {"type": "thinking", "thinking": "Two files.", "signature": "SIG="},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"file_path": "a"}},
                {"type": "tool_use", "id": "ID2", "name": "read", "input": {"file_path": "b"}}
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [
                    {"type": "text", "text": "pixels"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="}}]},
                {"type": "tool_result", "tool_use_id": "ID2", "content": [{"type": "text", "text": "no such file"}], "is_error": true},
                {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}}
            ]}
        ],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low"}
    }"#,
    error: &[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ],
    max_tokens: &[
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ],
    refusal: &[
        r#"{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ],
};

const CHAT: Wire = Wire {
    protocol: Protocol::OpenaiChat,
    model: "some-model",
    path: "/chat/completions",
    plain: &[
        r#"{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"usage":null}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":1}}}"#,
        "[DONE]",
    ],
    rich: &[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"Two "}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"files."}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"Reading."}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"read","arguments":"{\"file_path\""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"file_path\":\"a\"}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":":\"b\"}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":20}}"#,
        "[DONE]",
    ],
    rich_chunks: r#"
thinking Two 
thinking files.
end thinking {"provider":"test","field":"reasoning_content"}
text Reading.
call call_1 read {"file_path":"a"}
call call_2 read {"file_path":"b"}
usage 10 20 0 0
stop EndTurn
"#,
    first_call: 6,
    follow_up: r#"{
        "model": "some-model", "stream": true, "stream_options": {"include_usage": true}, "reasoning_effort": "low",
        "max_tokens": 500,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]},
            {"role": "assistant", "content": "Reading.", "reasoning_content": "Two files.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\"file_path\":\"a\"}"}},
                {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": "{\"file_path\":\"b\"}"}}
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "pixels"},
            {"role": "tool", "tool_call_id": "call_2", "content": "error: no such file"},
            {"role": "user", "content": [
                {"type": "text", "text": "Output of read:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="}},
                {"type": "text", "text": "go on"}
            ]}
        ],
        "tools": [{"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {}}}}]
    }"#,
    error: &[
        r#"{"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}"#,
        r#"{"error":{"code":502,"message":"Overloaded"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
    ],
    max_tokens: &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#, "[DONE]"],
    refusal: &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#, "[DONE]"],
};

const RESPONSES: Wire = Wire {
    protocol: Protocol::OpenaiResponses,
    model: "gpt-6.1-sol",
    path: "/responses",
    plain: &[
        r#"{"type":"response.created","response":{"id":"r","status":"in_progress","usage":null,"error":null,"incomplete_details":null}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hel"}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"lo"}"#,
        r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Hello"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}}"#,
        r#"{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":1},"output_tokens":2}}}"#,
    ],
    rich: &[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"Two "}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"files."}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Two files."}],"encrypted_content":"ENC="}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Reading."}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","phase":"commentary","content":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"read","arguments":""}}"#,
        r#"{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","call_id":"call_2","name":"read","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{\"file_path\":\"b\"}"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"file_path\":\"a\"}"}"#,
        r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"fc_2","type":"function_call","call_id":"call_2","name":"read","arguments":"{\"file_path\":\"b\"}"}}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"read","arguments":"{\"file_path\":\"a\"}"}}"#,
        r#"{"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":20}}}"#,
    ],
    rich_chunks: r#"
thinking Two 
thinking files.
end thinking {"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Two files."}],"encrypted_content":"ENC="}
text Reading.
end text {"phase":"commentary"}
call call_1 read {"file_path":"a"}
call call_2 read {"file_path":"b"}
usage 10 20 0 0
stop EndTurn
"#,
    first_call: 13,
    follow_up: r#"{
        "model": "gpt-6.1-sol", "instructions": "Be brief.", "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "sess_1",
        "reasoning": {"effort": "low", "summary": "auto"},
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}]},
            {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Two files."}], "encrypted_content": "ENC="},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Reading."}], "phase": "commentary"},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"file_path\":\"a\"}"},
            {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": "{\"file_path\":\"b\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "pixels"}, {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="}]},
            {"type": "function_call_output", "call_id": "call_2", "output": "error: no such file"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}
        ],
        "tools": [{"type": "function", "name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {}}, "strict": false}]
    }"#,
    error: &[
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hel"}"#,
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Overloaded"}}}"#,
    ],
    max_tokens: &[
        r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":1,"output_tokens":2}}}"#,
    ],
    refusal: &[
        r#"{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No."}"#,
        r#"{"type":"response.completed","response":{"usage":null}}"#,
    ],
};

const GEMINI: Wire = Wire {
    protocol: Protocol::Gemini,
    model: "gemini-3.8-flash",
    path: "/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
    plain: &[
        r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":10},"modelVersion":"x"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"lo"}],"role":"model"},"index":0}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1,"thoughtsTokenCount":1,"cachedContentTokenCount":4}}"#,
    ],
    rich: &[
        r#"{"candidates":[{"content":{"parts":[{"text":"Two ","thought":true}],"role":"model"}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"files.","thought":true}],"role":"model"}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"Reading."}],"role":"model"}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"TEXT="}],"role":"model"}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"fn_1","name":"read","args":{"file_path":"a"}},"thoughtSignature":"SIG="}],"role":"model"}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"fn_2","name":"read","args":{"file_path":"b"}}}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":20}}"#,
    ],
    rich_chunks: r#"
thinking Two 
thinking files.
text Reading.
end text {"thoughtSignature":"TEXT="}
call fn_1 read {"file_path":"a"} {"thoughtSignature":"SIG="}
call fn_2 read {"file_path":"b"}
usage 10 20 0 0
stop EndTurn
"#,
    first_call: 5,
    follow_up: r#"{
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]},
            {"role": "model", "parts": [
                {"text": "Reading.", "thoughtSignature": "TEXT="},
                {"functionCall": {"id": "fn_1", "name": "read", "args": {"file_path": "a"}}, "thoughtSignature": "SIG="},
                {"functionCall": {"id": "fn_2", "name": "read", "args": {"file_path": "b"}}}
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "fn_1", "name": "read", "response": {"output": "pixels"}}},
                {"functionResponse": {"id": "fn_2", "name": "read", "response": {"error": "no such file"}}},
                {"text": "Output of read:"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="}},
                {"text": "go on"}
            ]}
        ],
        "tools": [{"functionDeclarations": [{"name": "read", "description": "Reads a file.", "parametersJsonSchema": {"type": "object", "properties": {}}}]}],
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": true}}
    }"#,
    error: &[
        r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}]}"#,
        r#"{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}"#,
    ],
    max_tokens: &[r#"{"candidates":[{"finishReason":"MAX_TOKENS","index":0}]}"#],
    refusal: &[r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}"#],
};
