//! `fetch`: returns a web page as text, Markdown or an image.

mod page;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use tokio::time::timeout;

use self::page::Page;
use crate::config::AccessShape;
use crate::content::{Part, ToolContent, ToolKind};
use crate::limits;
use crate::permission::Access;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, artifact};
use crate::web::{Address, WebResponse};
use crate::workspace::Workspace;

/// Timeout for fetching a page, including redirects.
const FETCH: Duration = Duration::from_secs(30);
/// Maximum number of redirects that `fetch` follows.
const FETCH_REDIRECTS_MAX: usize = 10;
/// Maximum size of the page text that the model sees, in bytes.
const FETCH_TEXT_BYTES_MAX: usize = 50 << 10;
/// Maximum size of the text of an error page that the model sees, in bytes.
const FETCH_ERROR_BYTES_MAX: usize = 500;

/// Advice about a page that is not returned as text.
const SAVE: &str = "use bash with curl -o to save it to a file";

pub(super) struct Fetch;

/// Fetches a web page, HTML as Markdown.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct FetchInput {
    #[serde(alias = "uri", alias = "address")]
    url: String,
}

/// The details of the result of a `fetch` call.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FetchDetails {
    /// The last address, after redirects.
    url: String,
    /// HTTP status.
    status: u16,
    /// Size of the answer.
    bytes: usize,
    /// The result for the model is not the whole page.
    truncated: bool,
    content_type: Option<String>,
    /// The file with the whole text, if it is too long for the model.
    artifact: Option<PathBuf>,
}

impl Tool for Fetch {
    type Input = FetchInput;
    type Details = FetchDetails;
    const NAME: &'static str = "fetch";
    const LABEL: &'static str = "Fetch page";
    const ALIASES: &'static [&'static str] = &["web_fetch", "fetch_url"];
    const KIND: ToolKind = ToolKind::Fetch;
    const ACCESS: &'static [AccessShape] = AccessShape::NETWORK;

    fn title(&self, input: &FetchInput, _: &Workspace) -> String {
        format!("Fetch {}", Address::parse(&input.url).map_or_else(|_| input.url.clone(), |address| address.to_string()))
    }

    fn access(&self, input: &FetchInput) -> Access {
        Access::network(Address::parse(&input.url).map_or_else(|_| input.url.clone(), |address| address.to_string()))
    }

    async fn preview(&self, input: &FetchInput, _: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        Ok(vec![ToolContent::text(self.access(input).url.unwrap_or_default())])
    }

    async fn run(&self, input: FetchInput, context: &ToolContext) -> Result<ToolOutput<FetchDetails>, ToolError> {
        let address = Address::parse(&input.url).map_err(ToolError)?;
        let found = context.unless_cancelled(timeout(FETCH, follow(address.clone(), context))).await?;
        let (address, answer) =
            found.map_err(|_| ToolError(format!("{address} did not answer within {} s", FETCH.as_secs())))??;
        let read = move || Ok((Page::read(answer.content_type.as_deref(), &answer.body), answer));
        let (page, answer) = context.write_blocking(read).await?;
        let page = context.unless_cancelled(page.converted(&context.launcher)).await?;
        let inner = context.clone();
        context.write_blocking(move || output(&address, answer, page, &inner)).await
    }
}

/// Fetches `address` and follows at most `FETCH_REDIRECTS_MAX` redirects. Fails if
/// permission rules do not allow a redirect. Returns the last address and its response.
async fn follow(mut address: Address, context: &ToolContext) -> Result<(Address, WebResponse), ToolError> {
    for _ in 0..=FETCH_REDIRECTS_MAX {
        let answer = context.web.get(&address, &context.fetch_hosts).await.map_err(ToolError)?;
        let Some(next) = &answer.redirect else { return Ok((address, answer)) };
        if context.redirect_policy.as_ref().is_some_and(|allows| !allows(next)) {
            return Err(ToolError(format!("{address} redirects to {next}, which needs its own permission: fetch that URL")));
        }
        address = next.clone();
    }
    Err(ToolError(format!("more than {} redirects, the last one to {address}", FETCH_REDIRECTS_MAX)))
}

fn output(
    address: &Address,
    answer: WebResponse,
    page: Result<Page, String>,
    context: &ToolContext,
) -> Result<ToolOutput<FetchDetails>, ToolError> {
    let mut details = FetchDetails {
        url: address.as_str().to_owned(),
        status: answer.status,
        bytes: answer.body.len(),
        truncated: answer.truncated,
        content_type: answer.content_type.clone(),
        artifact: None,
    };
    if !(200..300).contains(&answer.status) {
        let body = match &page {
            Ok(Page::Text { text, .. }) => format!(": {}", &text[..text.floor_char_boundary(FETCH_ERROR_BYTES_MAX)]),
            _ => String::new(),
        };
        return Err(ToolError(format!("{address} answered {}{}", answer.status_text, body.trim_end())));
    }
    match page.map_err(|why| ToolError(format!("{address} could not be read: {why}; {SAVE}")))? {
        Page::Other(kind) => Err(ToolError(format!("{address} is {kind}, not text; {SAVE}"))),
        Page::Image(_) if answer.truncated || answer.body.len() > limits::IMAGE_BYTES_MAX => {
            Err(ToolError(format!("{address} is an image of more than {} MiB", limits::IMAGE_BYTES_MAX >> 20)))
        }
        Page::Image(image) => {
            let text = Part::text(format!("{address} ({} bytes)", answer.body.len()));
            let content = vec![ToolContent::Content { content: image.clone() }];
            Ok(ToolOutput { parts: vec![text, image], content, ..ToolOutput::text("", details) })
        }
        Page::Text { mut text, extension } => {
            let mut notes = Vec::new();
            if text.trim().is_empty() {
                notes.push("the page has no text".to_owned());
            }
            if text.len() > FETCH_TEXT_BYTES_MAX {
                let artifact = artifact::keep(context, "fetch", extension, text.as_bytes())?;
                notes.push(format!("the first part; all {} bytes are in {}", text.len(), artifact.display()));
                details.artifact = Some(artifact);
                details.truncated = true;
                let head = text.floor_char_boundary(FETCH_TEXT_BYTES_MAX);
                text.truncate(text[..head].rfind('\n').filter(|end| *end > head / 2).unwrap_or(head));
            }
            if answer.truncated {
                let most = limits::FETCH_BYTES_MAX >> 20;
                notes.push(format!("the page is longer than {most} MiB; the rest was not fetched"));
            }
            let text = text.trim_end();
            let line_end = if text.is_empty() { "" } else { "\n" };
            Ok(ToolOutput::text(format!("{text}{line_end}"), details).notes(notes))
        }
    }
}
