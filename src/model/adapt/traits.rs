//! The properties in which providers differ, beyond the format of their requests.

use crate::model::call_ids::is_mistral;
use crate::model::catalog::bare_name;
use crate::model::endpoint::{Endpoint, Protocol};
use crate::model::providers::provider;
use crate::web::is_loopback;

/// Properties of the provider and the model of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProviderTraits {
    /// Maximum number of tools in a request.
    pub tools_max: usize,
    /// Maximum length of the description of a tool, in characters.
    pub description_chars_max: usize,
    /// The patterns and formats of strings are sent. Servers that convert schemas to grammars
    /// refuse many of them.
    pub has_patterns: bool,
    /// Each schema must have a type, and one with alternatives must have none.
    pub is_typed: bool,
    /// `additionalProperties: false` is sent.
    pub has_closed_objects: bool,
    /// The model reads images.
    pub reads_images: bool,
    /// A message of the user directly after tool results is refused.
    pub separates_results: bool,
    /// Images in tool results are sent in a message of the user.
    pub moves_images: bool,
    /// A request with calls must contain tools.
    pub needs_called_tools: bool,
    /// The names of documents are unique, and have few other characters than letters and digits.
    pub has_plain_document_names: bool,
    /// A message with images or documents must have text.
    pub needs_text_beside_media: bool,
    /// Media types of images that are accepted.
    pub image_types: &'static [&'static str],
    /// Maximum size of an image in base64, in bytes.
    pub image_bytes_max: usize,
    /// Maximum number of images in a message.
    pub message_images_max: usize,
    /// A request with many images has a lower limit of their width and height.
    pub limits_many_images: bool,
}

/// Maximum width and height of an image, in pixels.
const IMAGE_EDGE_MAX: u32 = 8000;
/// Number of images above which Claude accepts only [`MANY_IMAGES_EDGE_MAX`].
const MANY_IMAGES: usize = 20;
/// Maximum width and height of each of many images, in pixels.
const MANY_IMAGES_EDGE_MAX: u32 = 2000;

/// Families of models on Amazon Bedrock, besides Mistral's, that refuse a message of the user after
/// tool results.
const SEPARATED_ON_BEDROCK: &[&str] = &["llama", "writer", "palmyra"];

const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
const GEMINI_IMAGES: &[&str] = &["image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"];
const PHOTOS: &[&str] = &["image/jpeg", "image/png"];

impl ProviderTraits {
    /// Returns the maximum width and height of an image, in pixels, in a request with so many
    /// images.
    pub(super) fn image_edge_max(&self, images: usize) -> u32 {
        if self.limits_many_images && images > MANY_IMAGES { MANY_IMAGES_EDGE_MAX } else { IMAGE_EDGE_MAX }
    }

    /// Returns the properties of the provider and the model of `endpoint`.
    pub(super) fn new(endpoint: &Endpoint) -> ProviderTraits {
        let model = bare_name(&endpoint.model).to_lowercase();
        let has = |names: &[&str]| names.iter().any(|name| model.contains(name));
        let is = |provider: &str, host: &str| endpoint.is_at(provider, host);
        let (protocol, is_vertex) = (endpoint.protocol, endpoint.is_vertex());
        let is_azure = is("azure", ".azure.com");
        let is_openai = is("openai", "api.openai.com") || is_azure || is("github", "models.github.ai");
        let is_bedrock = protocol == Protocol::Bedrock;
        let is_xai = is("xai", "api.x.ai");
        let is_local = matches!(endpoint.provider(), "llamacpp" | "lmstudio" | "koboldcpp" | "vllm" | "jan");
        let is_grammar = is_local || is_loopback(&endpoint.base_url) && provider(endpoint.provider()).is_none();
        ProviderTraits {
            tools_max: match protocol {
                _ if is_openai || is("groq", "api.groq.com") => 128,
                _ if is_xai => 200,
                Protocol::Gemini => 512,
                _ => usize::MAX,
            },
            description_chars_max: if is_azure { 1024 } else { usize::MAX },
            has_patterns: !(is_grammar && protocol == Protocol::OpenaiChat || is_bedrock && has(&["grok", "kimi"])),
            is_typed: is("moonshot", "api.moonshot."),
            has_closed_objects: !is_xai,
            reads_images: endpoint.images != Some(false) && !is("deepseek", "api.deepseek.com"),
            separates_results: match protocol {
                Protocol::Gemini => is_vertex,
                Protocol::Bedrock => is_mistral(endpoint) || has(SEPARATED_ON_BEDROCK),
                Protocol::OpenaiChat | Protocol::Ollama => is_mistral(endpoint),
                Protocol::Anthropic | Protocol::OpenaiResponses => false,
            },
            moves_images: match protocol {
                Protocol::Gemini => true,
                Protocol::Bedrock => is_mistral(endpoint) || has(&["gpt-", "kimi", "qwen"]),
                // The formats of these have no images in results, and move them directly after the
                // results, where Mistral's models refuse them.
                Protocol::OpenaiChat | Protocol::Ollama => is_mistral(endpoint),
                Protocol::Anthropic | Protocol::OpenaiResponses => false,
            },
            needs_called_tools: matches!(protocol, Protocol::Bedrock | Protocol::Anthropic),
            has_plain_document_names: matches!(protocol, Protocol::Bedrock | Protocol::Anthropic),
            needs_text_beside_media: protocol == Protocol::Bedrock || is_vertex,
            image_types: match protocol {
                Protocol::Gemini => GEMINI_IMAGES,
                _ if is_xai => PHOTOS,
                _ => IMAGES,
            },
            message_images_max: if is_bedrock { 20 } else { usize::MAX },
            limits_many_images: matches!(protocol, Protocol::Bedrock | Protocol::Anthropic),
            image_bytes_max: match protocol {
                Protocol::Anthropic if is_vertex => 5_242_880,
                Protocol::Bedrock => 5_000_000,
                Protocol::Gemini if is_vertex => 9_787_000,
                Protocol::OpenaiChat if is("groq", "api.groq.com") => 4_000_000,
                Protocol::Gemini => 20_000_000,
                _ => 10_485_760 - 64,
            },
        }
    }
}
