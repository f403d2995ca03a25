//! `diagram`: draws a graph in the DOT language as an SVG artifact of the session.

mod dot;
mod draw;
mod record;
mod tokens;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::AccessShape;
use crate::content::ToolKind;
use crate::permission::Access;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, artifact};
use crate::workspace::Workspace;

pub(super) struct Diagram;

/// Draws a graph in the DOT language (Graphviz) as an SVG file and returns its path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DiagramInput {
    #[serde(alias = "dot", alias = "content")]
    source: String,
    /// Only `svg` exists, so the schema for models omits it.
    #[schemars(skip)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    Svg,
}

/// The details of the result of a `diagram` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiagramDetails {
    artifact: PathBuf,
    format: Format,
    /// Size of the file.
    bytes: usize,
    nodes: usize,
    edges: usize,
}

impl Tool for Diagram {
    type Input = DiagramInput;
    type Details = DiagramDetails;
    const NAME: &'static str = "diagram";
    const LABEL: &'static str = "Draw diagram";
    const KIND: ToolKind = ToolKind::Other;
    const ACCESS: &'static [AccessShape] = AccessShape::NOTHING;

    fn title(&self, _: &DiagramInput, _: &Workspace) -> String {
        "Draw a diagram".into()
    }

    fn access(&self, _: &DiagramInput) -> Access {
        Access::none()
    }

    async fn run(&self, input: DiagramInput, context: &ToolContext) -> Result<ToolOutput<DiagramDetails>, ToolError> {
        let Format::Svg = input.format.unwrap_or(Format::Svg);
        let inner = context.clone();
        context
            .read_blocking(move || {
                let graph = dot::parse(&input.source).map_err(|error| ToolError(format!("source: {error}")))?;
                let svg = draw::svg(&graph).map_err(|error| ToolError(format!("source: {error}")))?;
                let artifact = artifact::keep(&inner, "diagram", "svg", svg.as_bytes())?;
                let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
                let text = format!("drew {nodes} nodes and {edges} edges: {}\n", artifact.display());
                let note = graph.has_clusters.then(|| "clusters are drawn without frames".into());
                let details = DiagramDetails { artifact, format: Format::Svg, bytes: svg.len(), nodes, edges };
                Ok(ToolOutput::text(text, details).notes(note))
            })
            .await
    }
}
