//! The formats of the lists of models. The names are fictitious, so that the catalogue adds nothing.

use serde_json::Value;

use super::lists::{OK, listed};
use harness::{Home, Site};

/// A provider, the pages of its list, and the expected models as `NAME PROPERTY…`.
struct Case {
    provider: &'static str,
    settings: &'static str,
    pages: &'static [(&'static str, &'static str)],
    models: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        provider: "one",
        settings: "",
        pages: &[(
            "/v1/models",
            r#"{"object":"list","data":[{"id":"a1","object":"model","created":1,"owned_by":"o"},{"id":"text-embedding-3-small"},
                {"id":"whisper-1"},{"id":"tts-1-hd"},{"id":"dall-e-3"},{"id":"omni-moderation-latest"},{"id":"a1-audio-preview"},
                {"id":"a1-transcribe"},{"id":"gpt-image-1"},{"id":"babbage-002"},{"id":"a1-safeguard"},{"id":7},{},"text",null]}"#,
        )],
        models: &["a1", "a1-safeguard"],
    },
    Case {
        provider: "claude",
        settings: "protocol = \"anthropic\"",
        pages: &[
            (
                "/v1/models?limit=1000",
                r#"{"data":[{"type":"model","id":"c1","display_name":"C One","max_input_tokens":1000000,"max_tokens":64000,
                    "capabilities":{"image_input":{"supported":true},"pdf_input":{"supported":true},"thinking":{"supported":true},
                    "effort":{"supported":true,"high":{"supported":true},"low":{"supported":true},"medium":{"supported":false}}}}],
                    "has_more":true,"first_id":"c1","last_id":"c/1"}"#,
            ),
            ("/v1/models?limit=1000&after_id=c%2F1", r#"{"data":[{"type":"model","id":"c2"}],"has_more":false,"last_id":"c2"}"#),
        ],
        models: &["c1 (C One) 1000000 64000 tools images pdf low,high", "c2"],
    },
    Case {
        provider: "google",
        settings: "protocol = \"gemini\"",
        pages: &[
            (
                "/v1/models?pageSize=1000",
                r#"{"models":[{"name":"models/g1","displayName":"G One","inputTokenLimit":1048576,"outputTokenLimit":65536,
                    "supportedGenerationMethods":["generateContent","countTokens"],"thinking":true},
                    {"name":"models/g-embed","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"t=2"}"#,
            ),
            (
                "/v1/models?pageSize=1000&pageToken=t%3D2",
                r#"{"models":[{"name":"models/g2","supportedGenerationMethods":["generateContent"]},
                    {"name":"models/g2-image","supportedGenerationMethods":["generateContent"]}]}"#,
            ),
        ],
        models: &["g1 (G One) 1048576 65536", "g2"],
    },
    Case {
        provider: "router",
        settings: "",
        pages: &[(
            "/v1/models",
            r#"{"data":[{"id":"v/r1","name":"R One","created":9,"context_length":200000,"architecture":{"input_modalities":["text","image","file"],
                "output_modalities":["text"]},"pricing":{"prompt":"0.000003","completion":"0.000015","input_cache_read":"0.0000003"},
                "top_provider":{"max_completion_tokens":64000},"supported_parameters":["tools","reasoning"]},
                {"id":"v/draw","architecture":{"output_modalities":["image"]}},
                {"id":"v/any","pricing":{"prompt":"-1","completion":"-1"},"context_length":null,"top_provider":{"max_completion_tokens":null}},
                {"id":"v/audio-chat","architecture":{"input_modalities":["audio","text"],"output_modalities":["text"]},"supported_parameters":["max_tokens"],"type":"chat"}]}"#,
        )],
        models: &["v/r1 (R One) 200000 64000 $3.0/$15.0/0.3 tools images pdf", "v/any", "v/audio-chat audio"],
    },
    Case {
        provider: "ollama",
        settings: "",
        pages: &[(
            "/api/tags",
            r#"{"models":[{"name":"q1:8b","model":"q1:8b","details":{"family":"qwen3"}},{"name":"plain:1b","details":{"family":"nomic-bert"}},
                {"name":"mxbai-embed-large:latest"}]}"#,
        )],
        models: &["q1:8b"],
    },
    Case {
        provider: "lmstudio",
        settings: "",
        pages: &[(
            "/api/v0/models",
            r#"{"object":"list","data":[{"id":"l1","type":"llm","max_context_length":131072,"loaded_context_length":8192,"capabilities":["tool_use"]},
                {"id":"l2","type":"vlm","max_context_length":4096},{"id":"l3","type":"embeddings"}]}"#,
        )],
        models: &["l1 8192 tools", "l2 4096 tools images"],
    },
    Case {
        provider: "llamacpp",
        settings: "",
        pages: &[(
            "/v1/models",
            r#"{"models":[{"name":"m1.gguf"}],"object":"list","data":[{"id":"m1.gguf","object":"model","owned_by":"llamacpp","meta":{"n_ctx":8192,"n_ctx_train":131072}}]}"#,
        )],
        models: &["m1.gguf 8192"],
    },
    Case {
        provider: "others",
        settings: "",
        pages: &[(
            "/v1/models",
            r#"[{"id":"x-vllm","max_model_len":40960},{"id":"x-groq","active":true,"context_window":131072,"max_completion_tokens":65536},
                {"id":"x-groq-old","active":false},
                {"id":"x-mistral","name":"x-mistral","max_context_length":262144,"capabilities":{"completion_chat":true,"function_calling":true,"vision":true}},
                {"id":"x-mistral-fim","capabilities":{"completion_chat":false}},
                {"id":"x-together","type":"chat","display_name":"T","context_length":8192,"pricing":{"input":0.18,"output":0.59}},
                {"id":"x-together-other","type":"rerank"},
                {"id":"x-github","capabilities":["streaming","tool-calling"],"limits":{"max_input_tokens":1000,"max_output_tokens":100},
                 "supported_input_modalities":["text","image"],"supported_output_modalities":["text"]},
                {"id":"x-fireworks","supports_chat":true,"supports_tools":true,"supports_image_input":false,"context_length":9000},
                {"id":"x-fireworks-other","supports_chat":false},
                {"id":"line\nbreak"},{"id":"x-text","context_length":"5000","display_name":null}]"#,
        )],
        models: &[
            "x-vllm 40960",
            "x-groq 131072 65536",
            "x-mistral 262144 tools images",
            "x-together (T) 8192 $0.18/$0.59",
            "x-github 1000 100 tools images",
            "x-fireworks 9000 tools",
            "x-text 5000",
        ],
    },
];

/// Sets the base URL of a provider to the site.
fn provider(name: &str, site: &Site, more: &str) -> String {
    format!("[providers.{name}]\nbase_url = \"{}\"\n{more}\n", site.url("/v1"))
}

/// The stated properties of a model in one line.
fn summary(model: &Value) -> String {
    let mut words = vec![model["name"].as_str().unwrap().to_owned()];
    words.extend(model["displayName"].as_str().map(|name| format!("({name})")));
    words.extend(
        ["contextWindow", "maxOutputTokens"].iter().filter_map(|name| model[*name].as_u64()).map(|tokens| tokens.to_string()),
    );
    if let Some(price) = model["price"].as_object() {
        let cache = price.get("cacheRead").map(|price| format!("/{price}")).unwrap_or_default();
        words.push(format!("${}/${}{cache}", price["input"], price["output"]));
    }
    words.extend(model["abilities"].as_array().into_iter().flatten().map(|ability| ability.as_str().unwrap().to_owned()));
    let levels: Vec<&str> = model["thinking"].as_array().unwrap().iter().map(|level| level.as_str().unwrap()).collect();
    words.extend((!levels.is_empty()).then(|| levels.join(",")));
    words.join(" ")
}

#[tokio::test]
async fn lists_of_all_formats_are_read() {
    for case in CASES {
        let (home, site) = (Home::new(), Site::start().await);
        home.config(&provider(case.provider, &site, case.settings));
        for (path, page) in case.pages {
            site.page(path, OK, page);
        }
        let ran = home.run(&["models", case.provider, "--json"], "").await;
        let list = listed(&ran);
        let models: Vec<String> = list["models"].as_array().unwrap().iter().map(summary).collect();
        assert_eq!(models, case.models, "{}", case.provider);
        assert_eq!(site.asked().len(), case.pages.len(), "{}: {:?}", case.provider, site.asked());
    }
}
