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

/// Names of the servers.
const NAMES: &[(&str, Platform)] = &[
    ("anthropic", Platform::Anthropic),
    ("azure", Platform::Azure),
    ("bedrock", Platform::Bedrock),
    ("cerebras", Platform::Cerebras),
    ("deepseek", Platform::DeepSeek),
    ("fireworks", Platform::Fireworks),
    ("gemini", Platform::Gemini),
    ("groq", Platform::Groq),
    ("llamacpp", Platform::LlamaCpp),
    ("lmstudio", Platform::LmStudio),
    ("minimax", Platform::Minimax),
    ("mistral", Platform::Mistral),
    ("moonshot", Platform::Moonshot),
    ("ollama", Platform::Ollama),
    ("openai", Platform::OpenAi),
    ("openrouter", Platform::OpenRouter),
    ("together", Platform::Together),
    ("vertex", Platform::Vertex),
    ("vllm", Platform::Vllm),
    ("xai", Platform::Xai),
    ("zai", Platform::Zai),
];

impl Platform {
    /// Returns the server with this name.
    pub fn from_name(name: &str) -> Option<Platform> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, platform)| *platform)
    }
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
