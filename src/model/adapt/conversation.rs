//! Conversations that every provider accepts: each call has one result, ids are unique, no text is
//! blank, and the first and the last message are the user's.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::document_names;
use super::names::tool_name;
use super::tools::AdaptedTools;
use super::traits::ProviderTraits;
use crate::content::{Part, ProviderState};

use crate::id::ToolCallId;
use crate::model::message::{Block, Message, Messages, ToolResult};
use crate::model::wire::{is_image, result_images};

/// The text of a message before an answer that no message precedes.
const BEGINNING: &str = "Begin.";
/// The text of a message after an answer that no message follows.
const CONTINUATION: &str = "Continue.";
/// The text of an answer between tool results and a message, for providers that require one.
const ACKNOWLEDGEMENT: &str = "OK.";
/// The text of a result without output.
const NO_OUTPUT: &str = "[no output]";
/// The text of a result whose images are in the next message.
const IMAGES_BELOW: &str = "[the images are in the next message]";
/// The text of a message that has only images or documents.
const MEDIA_ONLY: &str = "Look at this.";
/// The text of a result that is missing in the log.
const NO_RESULT: &str = "[the result is not known]";

/// The adapted conversation of the last request, which the next request mostly continues.
#[derive(Default)]
pub(super) struct AdaptedConversation {
    /// The tools and the provider that the messages were adapted to.
    adapted_to: Option<(Arc<AdaptedTools>, ProviderTraits)>,
    /// The messages of the session so far.
    read: Vec<Arc<Message>>,
    /// The ids of all calls so far.
    used: HashSet<String>,
    /// The names of all documents so far.
    document_names: HashSet<String>,
    /// The calls without a result.
    open: VecDeque<OpenCall>,
    /// The adapted messages.
    out: Messages,
}

/// A call: the id in the log, the id in the request, and the name.
#[derive(Clone)]
struct OpenCall {
    logged: ToolCallId,
    id: ToolCallId,
    name: String,
}

impl AdaptedConversation {
    /// Adapts a conversation to the model with the id `model`.
    pub(super) fn adapt(
        &mut self,
        messages: &[Arc<Message>],
        tools: &Arc<AdaptedTools>,
        model: &str,
        traits: ProviderTraits,
    ) -> Messages {
        let is_same = |(known, of): &(Arc<AdaptedTools>, ProviderTraits)| Arc::ptr_eq(known, tools) && *of == traits;
        let continues =
            self.read.len() <= messages.len() && self.read.iter().zip(messages).all(|(one, other)| Arc::ptr_eq(one, other));
        if !continues || !self.adapted_to.as_ref().is_some_and(is_same) {
            *self = AdaptedConversation { adapted_to: Some((tools.clone(), traits)), ..AdaptedConversation::default() };
        }
        let new = &messages[self.read.len()..];
        let mut writer = ConversationWriter { tools, model, traits, state: self };
        new.iter().for_each(|message| writer.add(message));
        self.read.extend_from_slice(new);
        self.ended()
    }

    /// Returns the adapted messages of a conversation that ends here.
    fn ended(&self) -> Messages {
        let mut ended = self.out.clone();
        if !self.open.is_empty() {
            add(&mut ended, Arc::new(Message::ToolResults(self.open.iter().cloned().map(missing).collect())));
        }
        match ended.last().map(|last| &**last) {
            None => add(&mut ended, user(BEGINNING)),
            Some(Message::Assistant(_)) => add(&mut ended, user(CONTINUATION)),
            Some(Message::User(_) | Message::ToolResults(_)) => {}
        }
        ended
    }
}

fn add(messages: &mut Messages, message: Arc<Message>) {
    Arc::make_mut(messages).push(message);
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(vec![Part::text(text)]))
}

struct ConversationWriter<'a> {
    tools: &'a AdaptedTools,
    /// The id of the model.
    model: &'a str,
    traits: ProviderTraits,
    state: &'a mut AdaptedConversation,
}

impl ConversationWriter<'_> {
    fn add(&mut self, message: &Arc<Message>) {
        match &**message {
            Message::User(parts) => {
                self.answer_open_calls();
                match self.with_text(parts) {
                    adapted if adapted.is_empty() => {}
                    Cow::Borrowed(_) => self.add_user(message.clone()),
                    Cow::Owned(parts) => self.add_user(Arc::new(Message::User(parts))),
                }
            }
            Message::Assistant(blocks) => {
                self.answer_open_calls();
                self.add_answer(message, blocks);
            }
            Message::ToolResults(results) => self.add_results(message, results),
        }
    }

    fn add_user(&mut self, message: Arc<Message>) {
        if self.traits.separates_results && matches!(self.state.out.last().map(|last| &**last), Some(Message::ToolResults(_))) {
            let answer = Block::Text { text: ACKNOWLEDGEMENT.to_owned(), state: None };
            self.push(Arc::new(Message::Assistant(vec![answer])));
        }
        self.push(message);
    }

    fn push(&mut self, message: Arc<Message>) {
        add(&mut self.state.out, message);
    }

    fn add_answer(&mut self, message: &Arc<Message>, blocks: &[Block]) {
        let has_content = |block: &Block| match block {
            Block::Text { text, .. } => !text.trim().is_empty(),
            Block::Thinking { .. } => false,
            Block::ToolCall { .. } => true,
        };
        // No provider accepts thinking alone.
        if !blocks.iter().any(has_content) {
            return;
        }
        if self.state.out.is_empty() {
            self.push(user(BEGINNING));
        }
        let adapted: Vec<Cow<'_, Block>> = blocks.iter().filter_map(|block| self.block(block)).collect();
        let is_same = adapted.len() == blocks.len() && adapted.iter().all(|block| matches!(block, Cow::Borrowed(_)));
        self.push(match is_same {
            true => message.clone(),
            false => Arc::new(Message::Assistant(adapted.into_iter().map(Cow::into_owned).collect())),
        });
    }

    fn block<'b>(&mut self, block: &'b Block) -> Option<Cow<'b, Block>> {
        let own = |state: &Option<ProviderState>| state.clone().filter(|state| self.is_own(state));
        let (id, name, input, input_text, state) = match block {
            Block::ToolCall { id, name, input, input_text, state } => (id, name, input, input_text, state),
            Block::Text { text, state } if own(state) != *state => {
                return (!text.trim().is_empty()).then(|| Cow::Owned(Block::Text { text: text.clone(), state: None }));
            }
            Block::Text { text, state: None } if text.trim().is_empty() => return None,
            Block::Thinking { state: Some(state), .. } if !self.is_own(state) => return None,
            Block::Text { .. } | Block::Thinking { .. } => return Some(Cow::Borrowed(block)),
        };
        let own_state = own(state);
        let adapted_name = tool_name(name);
        let adapted_id = self.unique(id);
        let renamed = self.tools.renamed_input(&adapted_name, input);
        self.state.open.push_back(OpenCall { logged: id.clone(), id: adapted_id.clone(), name: adapted_name.clone().into_owned() });
        if adapted_name == *name && adapted_id == *id && renamed.is_none() && own_state == *state {
            return Some(Cow::Borrowed(block));
        }
        Some(Cow::Owned(Block::ToolCall {
            id: adapted_id,
            name: adapted_name.into_owned(),
            input_text: input_text.clone().filter(|_| renamed.is_none()),
            input: renamed.unwrap_or_else(|| input.clone()),
            state: own_state,
        }))
    }

    /// Returns whether the state comes from this model. A state of an earlier version does not name
    /// its model.
    fn is_own(&self, state: &ProviderState) -> bool {
        state.model.as_deref().is_none_or(|model| model == self.model)
    }

    /// Returns an id that no earlier call has.
    fn unique(&mut self, id: &ToolCallId) -> ToolCallId {
        let mut unique = id.to_string();
        let mut number = 2;
        while !self.state.used.insert(unique.clone()) {
            unique = format!("{id}_{number}");
            number += 1;
        }
        if unique == id.as_str() { id.clone() } else { ToolCallId::from(unique) }
    }

    fn add_results(&mut self, message: &Arc<Message>, results: &[ToolResult]) {
        let mut adapted: Vec<Cow<'_, ToolResult>> = Vec::new();
        let mut by_call: HashMap<ToolCallId, usize> = HashMap::new();
        let order: Vec<ToolCallId> = self.state.open.iter().map(|call| call.id.clone()).collect();
        for result in results {
            // A result without a call is refused, and so is a second one.
            let Some(index) = self.state.open.iter().position(|call| call.logged == result.id) else { continue };
            let Some(call) = self.state.open.remove(index) else { continue };
            by_call.insert(call.id.clone(), adapted.len());
            adapted.push(self.result(result, call));
        }
        for call in std::mem::take(&mut self.state.open) {
            by_call.insert(call.id.clone(), adapted.len());
            adapted.push(Cow::Owned(missing(call)));
        }
        let is_ordered = order.iter().enumerate().all(|(index, id)| by_call.get(id) == Some(&index));
        if adapted.is_empty() {
            return;
        }
        let is_same =
            is_ordered && adapted.len() == results.len() && adapted.iter().all(|result| matches!(result, Cow::Borrowed(_)));
        let adapted_message = match is_same {
            true => message.clone(),
            false => {
                let mut results: Vec<ToolResult> = adapted.into_iter().map(Cow::into_owned).collect();
                results.sort_by_key(|result| order.iter().position(|id| *id == result.id));
                Arc::new(Message::ToolResults(results))
            }
        };
        if self.traits.moves_images {
            return self.add_results_and_images(adapted_message);
        }
        self.push(adapted_message);
    }

    /// Adds results, and their images in a message of the user.
    fn add_results_and_images(&mut self, message: Arc<Message>) {
        let Message::ToolResults(results) = &*message else { return };
        let images: Vec<Part> = results.iter().flat_map(result_images).map(Cow::into_owned).collect();
        if images.is_empty() {
            return self.push(message);
        }
        let mut results = results.clone();
        for result in &mut results {
            result.output.retain(|part| !is_image(part));
            if result.output.is_empty() {
                result.output.push(Part::text(IMAGES_BELOW));
            }
        }
        self.push(Arc::new(Message::ToolResults(results)));
        self.add_user(Arc::new(Message::User(images)));
    }

    fn result<'b>(&mut self, result: &'b ToolResult, call: OpenCall) -> Cow<'b, ToolResult> {
        let output = match self.parts(&result.output) {
            output if output.is_empty() => Cow::Owned(vec![Part::text(NO_OUTPUT)]),
            output => output,
        };
        match output {
            Cow::Borrowed(_) if call.id == result.id && call.name == result.name => Cow::Borrowed(result),
            output => Cow::Owned(ToolResult { id: call.id, name: call.name, output: output.into_owned(), failed: result.failed }),
        }
    }

    /// Returns the parts without blank text, and with names of documents that the provider accepts.
    fn parts<'b>(&mut self, parts: &'b [Part]) -> Cow<'b, [Part]> {
        let is_blank = |part: &Part| matches!(part, Part::Text { text } if text.trim().is_empty());
        let adapted = parts.iter().map(|part| document_names::adapt(part, self.traits, &mut self.state.document_names));
        let adapted: Vec<Cow<'b, Part>> = adapted.filter(|part| !is_blank(part)).collect();
        match adapted.len() == parts.len() && adapted.iter().all(|part| matches!(part, Cow::Borrowed(_))) {
            true => Cow::Borrowed(parts),
            false => Cow::Owned(adapted.into_iter().map(Cow::into_owned).collect()),
        }
    }

    /// Returns the parts of a message of the user, with text if the provider requires it.
    fn with_text<'b>(&mut self, parts: &'b [Part]) -> Cow<'b, [Part]> {
        let mut adapted = self.parts(parts);
        let is_media = |part: &Part| matches!(part, Part::Image { .. } | Part::Audio { .. } | Part::Document { .. });
        if self.traits.needs_text_beside_media && !adapted.is_empty() && adapted.iter().all(is_media) {
            adapted.to_mut().insert(0, Part::text(MEDIA_ONLY));
        }
        adapted
    }

    /// Adds results for the calls that have none.
    fn answer_open_calls(&mut self) {
        if !self.state.open.is_empty() {
            let results = std::mem::take(&mut self.state.open).into_iter().map(missing).collect();
            self.push(Arc::new(Message::ToolResults(results)));
        }
    }
}

/// Returns the result of a call that has none.
fn missing(call: OpenCall) -> ToolResult {
    ToolResult { id: call.id, name: call.name, output: vec![Part::text(NO_RESULT)], failed: true }
}
