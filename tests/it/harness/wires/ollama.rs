//! Messages of Ollama's own API.

use super::Wire;
use crate::provider::Protocol;

pub const OLLAMA: Wire = Wire {
    protocol: Protocol::Ollama,
    model: "qwen3",
    path: "/api/chat",
    plain: &[
        r#"{"model":"qwen3","created_at":"2026-11-22T10:00:00.1Z","message":{"role":"assistant","content":"Hel"},"done":false}"#,
        r#"{"model":"qwen3","created_at":"2026-11-22T10:00:00.2Z","message":{"role":"assistant","content":"lo"},"done":false}"#,
        r#"{"model":"qwen3","created_at":"2026-11-22T10:00:00.3Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":3244883583,"load_duration":2969184542,"prompt_eval_count":10,"prompt_eval_duration":141656333,"eval_count":2,"eval_duration":293293625}"#,
    ],
    rich: &[
        r#"{"model":"qwen3","message":{"role":"assistant","content":"","thinking":"Two "},"done":false}"#,
        r#"{"model":"qwen3","message":{"role":"assistant","content":"","thinking":"files."},"done":false}"#,
        r#"{"model":"qwen3","message":{"role":"assistant","content":"Reading."},"done":false}"#,
        r#"{"model":"qwen3","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"read","arguments":{"file_path":"a"}}}]},"done":false}"#,
        r#"{"model":"qwen3","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_2","function":{"index":1,"name":"read","arguments":{"file_path":"b"}}}]},"done":false}"#,
        r#"{"model":"qwen3","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":10,"prompt_eval_cached_count":4,"eval_count":20}"#,
    ],
    rich_chunks: r#"
thinking Two 
thinking files.
end thinking {}
text Reading.
call call_1 read {"file_path":"a"}
call call_2 read {"file_path":"b"}
usage 10 20 4 0
stop EndTurn
"#,
    first_call: 4,
    follow_up: r#"{
        "model": "qwen3", "stream": true, "truncate": false, "shift": false, "options": {"num_ctx": 1000, "num_predict": 500},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi", "images": ["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="]},
            {"role": "assistant", "content": "Reading.", "thinking": "Two files.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": {"file_path": "a"}}},
                {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": {"file_path": "b"}}}
            ]},
            {"role": "tool", "content": "pixels", "tool_name": "read", "tool_call_id": "call_1"},
            {"role": "tool", "content": "error: no such file", "tool_name": "read", "tool_call_id": "call_2"},
            {"role": "user", "content": "Output of read:\ngo on", "images": ["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="]}
        ],
        "tools": [{"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {}}}}]
    }"#,
    error: &[r#"{"model":"qwen3","message":{"role":"assistant","content":"Hel"},"done":false}"#, r#"{"error":"Overloaded"}"#],
    max_tokens: &[
        r#"{"model":"qwen3","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","prompt_eval_count":1,"eval_count":2}"#,
    ],
    refusal: &[],
};
