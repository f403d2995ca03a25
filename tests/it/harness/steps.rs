//! Steps of a scripted model, and the calls in them.

use serde_json::{Value, json};

/// A call of a tool.
pub fn call(name: &str, input: Value) -> Value {
    json!({"name": name, "input": input})
}

/// A call of `bash`.
pub fn bash_call(command: &str) -> Value {
    call("bash", json!({"command": command}))
}

/// A call of `task`.
pub fn task(agent: &str, prompt: &str) -> Value {
    call("task", json!({"agent": agent, "prompt": prompt}))
}

/// A step with these calls.
pub fn calls(calls: &[Value]) -> Value {
    json!({ "tool_calls": calls })
}

/// A step with one call.
pub fn calls_one(name: &str, input: Value) -> Value {
    calls(&[call(name, input)])
}

/// A step with one call of `bash`.
pub fn bash(command: &str) -> Value {
    calls(&[bash_call(command)])
}

/// A step with one call of `write`.
pub fn write(path: &str, content: &str) -> Value {
    calls_one("write", json!({"file_path": path, "content": content}))
}

/// A step that reads a file and replaces it.
pub fn replace(path: &str, content: &str) -> Value {
    let read = call("read", json!({"file_path": path}));
    calls(&[read, call("write", json!({"file_path": path, "content": content}))])
}

/// A step with a call that requires permission.
pub fn asks() -> Value {
    bash("true")
}

/// A step with text, which requires `expect` in the request.
pub fn says(expect: &str, text: &str) -> Value {
    json!({"expect": expect, "text": text})
}
