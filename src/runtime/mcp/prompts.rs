//! Prompts of MCP servers as slash commands, and resources that a message of the user attaches.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model::{ContentBlock, JsonObject, Prompt, PromptMessage, Resource, ResourceContents, Role};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::servers::{ReadyServer, SessionMcp};
use crate::content::{Part, Role as MessageRole, shortened};
use crate::context::commands::{self, SlashCommand};
use crate::error::{Error, Result};
use crate::event::{Body, Severity};
use crate::limits;
use crate::mcp::{CallError, McpConnection};
use crate::runtime::calls::permission::{DENIED_BY_RULE, denies_mcp_tool};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::message::IncomingMessage;
use crate::session::{McpResource, Turn};
use crate::toolkit::mcp_tool_names;
use crate::tools::mcp::valid_image;
use crate::workspace::one_line;

/// Maximum size of the texts of a prompt or resource of an MCP server that becomes part of a
/// message, in bytes.
const MCP_PROMPT_BYTES_MAX: usize = 256 << 10;
/// Maximum size of the texts of all resources of MCP servers that a message attaches, in bytes.
const MCP_ATTACHED_BYTES_MAX: usize = 2 * MCP_PROMPT_BYTES_MAX;
/// Maximum number of resources of MCP servers that a message attaches.
const MCP_ATTACHED_MAX: usize = 8;

/// Time limit of a list of resources for a completion.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// The start of the names of the slash commands.
const PREFIX: &str = "mcp__";

/// Returns the slash commands for the prompts of all servers: `mcp__SERVER__PROMPT`.
pub(crate) fn commands(mcp: &SessionMcp) -> Vec<SlashCommand> {
    let ready = mcp.ready();
    let commands = with_command_names(&ready).into_iter().map(|(name, ReadyServer { name: server, .. }, prompt)| {
        let about = prompt.description.as_deref().or(prompt.title.as_deref()).unwrap_or(&prompt.name);
        let hint = prompt.arguments.iter().flatten().map(|argument| match argument.required {
            Some(true) => argument.name.clone(),
            _ => format!("[{}]", argument.name),
        });
        let short = |text: String| one_line(text.chars().take(limits::SKILL_DESCRIPTION_CHARS_MAX).collect());
        SlashCommand {
            name: name.into(),
            description: short(format!("{server}: {about}")).into(),
            hint: short(hint.collect::<Vec<_>>().join(" ")).into(),
            text: None,
        }
    });
    commands.collect()
}

/// Returns the prompts of all servers with the names of their commands.
fn with_command_names(ready: &[ReadyServer]) -> Vec<(String, &ReadyServer, &Prompt)> {
    let all: Vec<(&ReadyServer, &Prompt)> =
        ready.iter().flat_map(|server| server.offer.prompts.iter().map(move |prompt| (server, prompt))).collect();
    let names: Vec<(&str, &str)> = all.iter().map(|(server, prompt)| (server.name.as_str(), prompt.name.as_str())).collect();
    mcp_tool_names(&names).into_iter().zip(all).map(|(name, (server, prompt))| (name, server, prompt)).collect()
}

/// Returns whether a message of the user may use a prompt or a resource of a server.
pub(crate) fn may_use_servers(message: &IncomingMessage) -> bool {
    let command = commands::parse(&message.parts).is_some_and(|(name, _)| name.starts_with(PREFIX));
    message.role == MessageRole::User && (command || !mentions(&message.parts).is_empty())
}

/// Completes a message of the user: with the text of a prompt if it is the slash command of one,
/// and with the resources that it names as `@SERVER:URI`. A prompt that is not available or that a
/// rule denies is an error, such a resource is a notice.
pub(crate) async fn complete(
    mcp: &SessionMcp,
    turn: &Turn,
    environment: &SessionEnvironment,
    message: &mut IncomingMessage,
) -> Result<()> {
    let ready = mcp.ready();
    let rules = environment.rules(&turn.permissions(environment.loaded.settings.permissions.default).1);
    // The user wrote the message, so a rule that asks allows.
    let check = |tool: &str| if denies_mcp_tool(&rules, tool) { Err(DENIED_BY_RULE.to_owned()) } else { Ok(()) };
    let mentioned = mentions(&message.parts);
    let mentioned = mentioned.iter().filter_map(|mention| {
        let (server, uri) = mention.split_once(':')?;
        Some((ready.iter().find(|ready| ready.name == server && ready.offer.resources)?, uri))
    });
    let mut attached = Vec::new();
    for (server, uri) in mentioned.take(MCP_ATTACHED_MAX) {
        let before = attached.len();
        let work = async {
            check(&mcp_tool_names(&[(&server.name, "read_resource")]).remove(0))?;
            attached.extend(read(server, uri).await?);
            check_limits(&attached)
        };
        if let Err(why) = work.await {
            attached.truncate(before);
            let title = format!("The resource {uri} of the MCP server {} was not attached", server.name);
            turn.emit(Body::notice(Severity::Warning, one_line(title), why)).await;
        }
    }
    if let Some((name, arguments)) = commands::parse(&message.parts).filter(|(name, _)| name.starts_with(PREFIX))
        && let Some((_, server, prompt)) = with_command_names(&ready).into_iter().find(|(known, ..)| known == name)
    {
        let failed = |why: String| Error::invalid_params(format!("/{name}: {why}"));
        check(name).map_err(failed)?;
        let expanded = expand(server, prompt, arguments).await;
        let (text, images) = expanded.map_err(|why| failed(why).hint("nuncio mcp check shows the state of the servers"))?;
        message.extra.expansion = Some(text);
        attached.extend(images);
        check_limits(&attached).map_err(failed)?;
    }
    message.extra.context.extend(attached);
    Ok(())
}

/// Finds the words `@SERVER:URI` in the texts of a message. Returns each once, without `@` and
/// without punctuation at the end.
fn mentions(parts: &[Part]) -> Vec<String> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let words = texts.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix('@'));
    let words = words.map(|word| word.trim_end_matches(['.', ',', ';', ':', '?', '!', ')', '\'', '"']));
    let mut found: Vec<String> = Vec::new();
    for word in words.filter(|word| word.split_once(':').is_some_and(|(server, uri)| !server.is_empty() && !uri.is_empty())) {
        if !found.iter().any(|known| known == word) {
            found.push(word.into());
        }
    }
    found
}

async fn connection(server: &ReadyServer) -> Result<Arc<McpConnection>, String> {
    let connection = server.server.connection(Instant::now() + limits::MCP_CALL_START).await;
    connection.map_err(|why| format!("the MCP server {} is not available: {why}", server.name))
}

fn call_error(error: CallError) -> String {
    match error {
        CallError::Cancelled => "cancelled".into(),
        CallError::Disconnected(why) | CallError::Failed(why) => why,
    }
}

/// Lists the resources of the servers that are ready. A server that does not answer has none.
pub(crate) async fn resources(mcp: &SessionMcp) -> Vec<McpResource> {
    let ready = mcp.ready();
    let lists = ready.iter().filter(|server| server.offer.resources).map(|server| async {
        let list = async {
            match connection(server).await {
                Ok(connection) => connection.resources(server.timeout.min(LIST_TIMEOUT)).await.unwrap_or_default(),
                Err(_) => Vec::new(),
            }
        };
        let listed = timeout(LIST_TIMEOUT, list).await.unwrap_or_default();
        let resource = |found: Resource| McpResource {
            server: server.name.clone(),
            uri: found.uri.clone(),
            name: found.name.clone(),
            description: found.description.clone(),
        };
        listed.into_iter().map(resource).collect::<Vec<_>>()
    });
    join_all(lists).await.concat()
}

/// Reads a resource.
async fn read(server: &ReadyServer, uri: &str) -> Result<Vec<Part>, String> {
    let read = connection(server).await?.read_resource(uri, server.timeout).await.map_err(call_error)?;
    read.contents.into_iter().map(resource).collect()
}

fn resource(contents: ResourceContents) -> Result<Part, String> {
    match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            Ok(Part::Resource { uri, mime_type, text: shortened(text, MCP_PROMPT_BYTES_MAX) })
        }
        ResourceContents::BlobResourceContents { mime_type: Some(mime_type), blob, .. } => image(&mime_type, blob),
        _ => Err("it is neither a text nor an image".into()),
    }
}

/// Converts an image that models accept.
fn image(mime_type: &str, data: String) -> Result<Part, String> {
    let fits = data.len() <= limits::MCP_IMAGE_CHARS_MAX;
    match valid_image(mime_type, &data).filter(|_| fits) {
        Some(mime_type) => Ok(Part::Image { mime_type: mime_type.into(), data }),
        None => Err("its image is too large, or is not PNG, JPEG, GIF or WebP".into()),
    }
}

/// Returns an error if the parts that servers add to a message are too many or too large.
fn check_limits(attached: &[Part]) -> Result<(), String> {
    let (mut text_bytes, mut image_chars) = (0, 0);
    for part in attached {
        match part {
            Part::Resource { text, .. } => text_bytes += text.len(),
            Part::Image { data, .. } => image_chars += data.len(),
            _ => {}
        }
    }
    match attached.len() > limits::MCP_RESULT_PARTS_MAX
        || text_bytes > MCP_ATTACHED_BYTES_MAX
        || image_chars > limits::MCP_RESULT_IMAGE_CHARS_MAX
    {
        true => Err("the message has too many or too large attachments".into()),
        false => Ok(()),
    }
}

/// Requests a prompt with the arguments of a slash command from the server. Returns its text and
/// its images. The error is a message.
async fn expand(server: &ReadyServer, prompt: &Prompt, arguments: &str) -> Result<(String, Vec<Part>), String> {
    let arguments = named_arguments(prompt, arguments)?;
    let got = connection(server).await?.prompt(&prompt.name, arguments, server.timeout).await.map_err(call_error)?;
    let several = got.messages.iter().any(|message| message.role == Role::Assistant);
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for PromptMessage { role, content, .. } in got.messages {
        let text = match content {
            ContentBlock::Text(text) => text.text,
            ContentBlock::Resource(embedded) => match resource(embedded.resource)? {
                Part::Resource { uri, text, .. } => format!("<resource uri=\"{uri}\">\n{text}\n</resource>"),
                attached => {
                    images.push(attached);
                    continue;
                }
            },
            ContentBlock::ResourceLink(link) => link.uri,
            ContentBlock::Image(content) => {
                images.push(image(&content.mime_type, content.data)?);
                continue;
            }
            _ => return Err("the prompt has content that is neither a text nor an image".into()),
        };
        texts.push(match (several, role) {
            (false, _) => text,
            (true, Role::User) => format!("User: {text}"),
            (true, _) => format!("Assistant: {text}"),
        });
    }
    let text = texts.join("\n\n");
    if text.trim().is_empty() && images.is_empty() {
        return Err("the prompt is empty".into());
    }
    Ok((shortened(text, MCP_PROMPT_BYTES_MAX), images))
}

/// Parses the arguments of a prompt: `NAME=VALUE`, and the others in the order of the prompt. The
/// last one receives the rest of the words.
fn named_arguments(prompt: &Prompt, text: &str) -> Result<JsonObject, String> {
    let known = prompt.arguments.as_deref().unwrap_or_default();
    let mut found = JsonObject::new();
    let mut rest = Vec::new();
    for word in commands::words(text) {
        match word.split_once('=').filter(|(name, _)| known.iter().any(|argument| argument.name == *name)) {
            Some((name, value)) => drop(found.insert(name.into(), value.into())),
            None => rest.push(word),
        }
    }
    let open: Vec<&str> = known.iter().map(|argument| argument.name.as_str()).filter(|name| !found.contains_key(*name)).collect();
    let mut rest = rest.into_iter();
    for (index, name) in open.iter().enumerate() {
        let value = match index + 1 == open.len() {
            true => Some(rest.by_ref().collect::<Vec<_>>().join(" ")).filter(|value| !value.is_empty()),
            false => rest.next(),
        };
        if let Some(value) = value {
            found.insert((*name).into(), Value::String(value));
        }
    }
    let missing = known.iter().find(|argument| argument.required == Some(true) && !found.contains_key(&argument.name));
    match missing {
        Some(argument) => Err(format!("the argument {} is missing", argument.name)),
        None => Ok(found),
    }
}
