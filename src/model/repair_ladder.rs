//! Repairs a request that a provider refuses: one part less each time, and at last plain text. What
//! concerns the conversation is reported to the session, which keeps it; what concerns a tool or a
//! field is kept by server and model.

use std::sync::Arc;

use serde_json::Value;

use super::adapt::{AdaptedTools, Adapter};
use super::answer::Chunk;
use super::endpoint::Endpoint;
use super::error::{Cause, ModelError};
use super::fingerprint::fingerprint;
use super::observations::Observations;
use super::repair::{self, Repair};
use super::request::{Request, ToolSpec};
use super::request_form::RefusedParts;
use super::send::{OutgoingRequest, SendError};
use super::wire::EncodedRequest;

/// Maximum number of parts of a request that are left out one by one.
const MODEL_REPAIRS_MAX: usize = 8;
/// The start of the names of tools of MCP servers.
const MCP_TOOL: &str = "mcp__";
/// Stands for all tools of MCP servers in the list of refused tools.
const ALL_MCP_TOOLS: &str = "mcp";

/// The repairs of one request.
#[derive(Clone)]
pub(super) struct RepairLadder<'a> {
    endpoint: &'a Endpoint,
    observed: &'a Observations,
    request: Request,
    refused: RefusedParts,
    /// The fields or tools differ from those that were known.
    is_changed: bool,
    /// The repaired parts, for people: the part and the provider's words.
    repaired: Vec<(String, String)>,
    is_plain: bool,
}

impl<'a> RepairLadder<'a> {
    /// Begins with a request, and with what is known about the server.
    pub(super) fn new(endpoint: &'a Endpoint, observed: &'a Observations, request: Request) -> RepairLadder<'a> {
        let (fields, tools) = observed.refused(endpoint);
        let refused = RefusedParts { fields, tools, conversation: Vec::new() };
        RepairLadder { endpoint, observed, request, refused, is_changed: false, repaired: Vec::new(), is_plain: false }
    }

    /// Returns the request as it is sent next.
    pub(super) fn outgoing(&self, adapter: &Adapter) -> (OutgoingRequest, Arc<AdaptedTools>) {
        outgoing(adapter, self.endpoint, self.request.clone(), &self.refused)
    }

    /// Changes the request after a refusal. Returns false if nothing is left to change. The refused
    /// request is never sent again.
    pub(super) fn repair(
        &mut self,
        adapter: &Adapter,
        refused: &SendError,
        outgoing: &OutgoingRequest,
        encode: impl Fn(&OutgoingRequest) -> Result<EncodedRequest, ModelError>,
    ) -> bool {
        if self.is_plain || !is_repairable(refused) {
            return false;
        }
        let sent = encode(outgoing).map(|encoded| encoded.body).unwrap_or_default();
        let body = serde_json::from_slice::<Value>(&sent).unwrap_or_default();
        let text = if refused.body.is_empty() { &refused.error.message } else { &refused.body };
        let found = repair::find(text, &body, &outgoing.request).filter(|_| self.repaired.len() < MODEL_REPAIRS_MAX);
        let differs = |ladder: &Self| encode(&ladder.outgoing(adapter).0).is_ok_and(|next| next.body != sent);
        let before = self.clone();
        if found.is_some_and(|repair| self.apply(repair, outgoing, &refused.error.message)) {
            if differs(self) {
                return true;
            }
            // The part is not in the request, so nothing was left out, and nothing is kept.
            *self = before;
        }
        self.make_plain(outgoing, &refused.error.message) && differs(self)
    }

    /// Applies a repair. Returns false if it was applied before.
    fn apply(&mut self, repair: Repair, outgoing: &OutgoingRequest, why: &str) -> bool {
        let (what, is_new) = match repair {
            Repair::Parts { digests, what } => {
                let known = Arc::make_mut(&mut self.request.refused);
                let new: Vec<String> = digests.into_iter().filter(|digest| known.insert(digest.clone())).collect();
                let is_new = !new.is_empty();
                self.refused.conversation.extend(new);
                (what.to_owned(), is_new)
            }
            Repair::Tool(name) => {
                let tool = outgoing.request.tools.iter().find(|tool| tool.name == name);
                self.refused.tools.extend(tool.map(tool_digest));
                self.is_changed = true;
                (format!("the tool {name}"), tool.is_some())
            }
            Repair::Field(path) => {
                let name = path.join(".");
                let is_new = !self.refused.fields.contains(&path);
                self.refused.fields.push(path);
                self.is_changed = true;
                (format!("the field {name}"), is_new)
            }
        };
        if is_new {
            self.repaired.push((what, why.to_owned()));
        }
        is_new
    }

    /// Makes the last request: plain text, and only the tools of nuncio. Returns false if it would
    /// be the same request again.
    fn make_plain(&mut self, outgoing: &OutgoingRequest, why: &str) -> bool {
        self.is_plain = true;
        let is_text = repair::plain_text(&outgoing.request).is_some_and(|repair| self.apply(repair, outgoing, why));
        let has_mcp = outgoing.request.tools.iter().any(|tool| tool.name.starts_with(MCP_TOOL));
        if has_mcp {
            self.refused.tools.push(ALL_MCP_TOOLS.to_owned());
            self.is_changed = true;
            self.repaired.push(("the tools of MCP servers".to_owned(), why.to_owned()));
        }
        is_text || has_mcp
    }

    /// Keeps the repairs after the provider accepted the request, and returns the reports about
    /// them.
    pub(super) fn finish(self) -> Vec<Chunk> {
        if self.is_changed {
            self.observed.add_refused(self.endpoint, &self.refused.fields, &self.refused.tools);
        }
        let notice = |(what, why): (String, String)| Chunk::Notice {
            title: format!("{} refused {what}: left out from now on", self.endpoint.id),
            description: self.endpoint.masked(&why),
            code: Some("request_repaired".to_owned()),
        };
        let mut reports: Vec<Chunk> = self.repaired.into_iter().map(notice).collect();
        if !self.refused.conversation.is_empty() {
            reports.push(Chunk::Refused { parts: self.refused.conversation });
        }
        reports
    }
}

/// Adapts a request to the provider of `endpoint`, without the fields and tools that it refused.
pub(super) fn outgoing(
    adapter: &Adapter,
    endpoint: &Endpoint,
    request: Request,
    refused: &RefusedParts,
) -> (OutgoingRequest, Arc<AdaptedTools>) {
    let (mut request, tools) = adapter.adapt(endpoint, request);
    if !refused.tools.is_empty() {
        let is_mcp_refused = refused.tools.iter().any(|tool| tool == ALL_MCP_TOOLS);
        let is_kept =
            |tool: &&ToolSpec| !(refused.tools.contains(&tool_digest(tool)) || is_mcp_refused && tool.name.starts_with(MCP_TOOL));
        request.tools = request.tools.iter().filter(is_kept).cloned().collect();
    }
    (OutgoingRequest { request, refused: refused.clone() }, tools)
}

/// Words of errors with another cause than a bad request that a change of the request may repair.
const REPAIRABLE: &[&str] = &[
    "image input",
    "tool use",
    "tool_choice",
    "failed to parse tool call arguments",
    "requires --jinja",
    "failed to load image",
    "unable to process input image",
    "could not process image",
];

/// Returns whether a change of the request may help.
fn is_repairable(refused: &SendError) -> bool {
    let text = format!("{}\n{}", refused.error.message, refused.body).to_lowercase();
    let is_named = || REPAIRABLE.iter().any(|words| text.contains(words));
    match refused.error.cause {
        Cause::BadRequest => refused.status >= 400,
        Cause::ContextOverflow { .. } => refused.status == 413 && text.contains("image"),
        Cause::UnknownModel | Cause::InvalidAnswer | Cause::Other => is_named(),
        Cause::RateLimit | Cause::Quota | Cause::Authentication | Cause::Overloaded | Cause::ContentFilter => false,
    }
}

/// Returns a digest of the name and the schema of a tool.
fn tool_digest(tool: &ToolSpec) -> String {
    fingerprint(&[&tool.name, &tool.input_schema.to_string()])
}
