//! Servers that speak a protocol, each with its own refusals.

/// A server of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Anthropic,
    Azure,
    Bedrock,
    Cerebras,
    /// A server of Chat Completions without a name. It refuses everything that several servers
    /// refuse and none requires.
    Compatible,
    DeepSeek,
    Fireworks,
    Gemini,
    Groq,
    LlamaCpp,
    LmStudio,
    Minimax,
    Mistral,
    Moonshot,
    Ollama,
    OpenAi,
    OpenRouter,
    Together,
    Vertex,
    Vllm,
    Xai,
    Zai,
}

/// Replaces the escapes of a URL.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| *byte == b'%') {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
