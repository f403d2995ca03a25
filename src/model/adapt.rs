//! Adapts requests to what the provider of a model accepts. The log and the tools stay as they are.
//! A conversation is adapted to the same bytes each time, because providers cache requests
//! by their start.

mod conversation;
mod document_names;
mod images;
mod names;
pub(super) mod repaired;
mod schema;
mod schema_root;
mod tools;
mod traits;

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::answer::Chunk;
use super::endpoint::{Endpoint, Protocol};
use super::request::Request;
use crate::content::ProviderState;
use conversation::AdaptedConversation;
use images::FittedImages;
pub use images::ImageConverter;
pub(super) use tools::AdaptedTools;
use traits::ProviderTraits;

/// Adapts the requests of a model.
#[derive(Default)]
pub(super) struct Adapter {
    /// The tools of the last request. A session sends the same tools with each request, so they
    /// are adapted once.
    last: Mutex<Option<Arc<AdaptedTools>>>,
    /// The tools whose omission was reported.
    named: Mutex<HashSet<String>>,
    images: FittedImages,
    /// The properties of the provider, for the protocol of the last request.
    traits: Mutex<Option<(Protocol, ProviderTraits)>>,
    conversation: Mutex<AdaptedConversation>,
}

impl Adapter {
    pub(super) fn new(converter: ImageConverter) -> Adapter {
        Adapter { images: FittedImages::new(converter), ..Adapter::default() }
    }

    /// Replaces the images that the provider of `endpoint` does not accept, before
    /// [`Adapter::adapt`]. Returns notices for people.
    pub(super) async fn fit_images(&self, endpoint: &Endpoint, request: &mut Request) -> Vec<Chunk> {
        self.images.fit(self.traits(endpoint), &endpoint.id, &mut request.messages).await
    }

    /// Adapts a request to the provider of `endpoint`. Returns the tools too, which translate the
    /// calls in the answer.
    pub(super) fn adapt(&self, endpoint: &Endpoint, mut request: Request) -> (Request, Arc<AdaptedTools>) {
        let traits = self.traits(endpoint);
        let tools = self.tools(&request, traits);
        request.tools = tools.specs();
        request.messages = repaired::apply(request.messages, &request.refused);
        request.messages = self.conversation.lock().adapt(&request.messages, &tools, &endpoint.id, traits);
        if request.tools.is_empty() && traits.needs_called_tools {
            request.tools = tools::called(&request.messages);
        }
        (request, tools)
    }

    /// Returns a notice for each tool that was left out and that no earlier notice named.
    pub(super) fn notices(&self, endpoint: &Endpoint, tools: &AdaptedTools) -> Vec<Chunk> {
        let mut named = self.named.lock();
        let new = tools.left_out.iter().filter(|(name, _)| named.insert(name.clone()));
        let notice = |(name, why): &(String, String)| Chunk::Notice {
            title: format!("{} does not get the tool {name}", endpoint.id),
            description: format!("{why}; the other tools work"),
            code: Some("tool_left_out".to_owned()),
        };
        new.map(notice).collect()
    }

    /// Returns the properties of the provider. The endpoint of a model changes its protocol only.
    fn traits(&self, endpoint: &Endpoint) -> ProviderTraits {
        let mut last = self.traits.lock();
        match *last {
            Some((protocol, traits)) if protocol == endpoint.protocol => traits,
            _ => last.insert((endpoint.protocol, ProviderTraits::new(endpoint))).1,
        }
    }

    fn tools(&self, request: &Request, traits: ProviderTraits) -> Arc<AdaptedTools> {
        let mut last = self.last.lock();
        match last.as_ref().filter(|tools| tools.is_of(&request.tools, traits)) {
            Some(tools) => tools.clone(),
            None => last.insert(Arc::new(AdaptedTools::new(&request.tools, traits))).clone(),
        }
    }
}

/// Translates the tool calls of an answer to the tools of the session, and adds the id of the model
/// to the states in the answer.
pub(super) fn original(chunk: Chunk, tools: &AdaptedTools, model: &str) -> Chunk {
    let with_model = |state: Option<ProviderState>| state.map(|state| ProviderState { model: Some(model.to_owned()), ..state });
    match chunk {
        Chunk::ToolCall { id, name, input, state } => {
            let (name, input) = tools.original_call(name, input);
            Chunk::ToolCall { id, name, input, state: with_model(state) }
        }
        Chunk::BlockEnd { thinking, state } => Chunk::BlockEnd { thinking, state: with_model(state) },
        Chunk::CallInput { name, bytes, path } => Chunk::CallInput { name: tools.original_name(name), bytes, path },
        chunk => chunk,
    }
}
