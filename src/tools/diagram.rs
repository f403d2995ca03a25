//! `diagram`: draws a graph in the DOT language as an SVG artifact of the session.

mod dot;
mod draw;
mod record;
mod tokens;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::content::ToolKind;
use crate::permission::Access;
use crate::toolkit::{Output, Tool, ToolContext, ToolError, artifact};
use crate::workspace::Workspace;

pub struct Diagram;

/// Draws a graph in the DOT language (Graphviz) as an SVG file and returns its path.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "dot", alias = "content")]
    source: String,
    /// Only `svg` exists, so the schema for models omits it.
    #[serde(default)]
    #[schemars(skip)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Svg,
}

impl Tool for Diagram {
    type Input = Input;
    const NAME: &'static str = "diagram";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Other;

    fn title(&self, _: &Input, _: &Workspace) -> String {
        "Draw a diagram".into()
    }

    fn access(&self, _: &Input) -> Access {
        Access::none()
    }

    /// details: `{artifact, format, bytes, nodes, edges}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let Format::Svg = input.format.unwrap_or(Format::Svg);
        let inner = context.clone();
        context
            .look(move || {
                let graph = dot::parse(&input.source).map_err(|error| ToolError(format!("source: {error}")))?;
                let svg = draw::svg(&graph).map_err(|error| ToolError(format!("source: {error}")))?;
                let artifact = artifact::keep(&inner, "diagram", "svg", svg.as_bytes())?;
                let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
                let mut text = format!("drew {nodes} nodes and {edges} edges: {}\n", artifact.display());
                if graph.has_clusters {
                    text.push_str("[clusters are drawn without frames]\n");
                }
                let details = json!({ "artifact": artifact, "format": "svg", "bytes": svg.len(), "nodes": nodes, "edges": edges });
                Ok(Output::text(text, details))
            })
            .await
    }
}
