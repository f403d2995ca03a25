//! Draws a graph as SVG with the crate `layout-rs`. The layout of that crate is slow on some
//! graphs, so it receives only acyclic graphs with sorted edges and a limited number of elements.

use std::panic::{AssertUnwindSafe, catch_unwind};

use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::render::get_shape_size;
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::dot::{Attributes, Edge, Graph, Node};
use super::record::{label, record};

/// Maximum number of nodes in a diagram's layout: the diagram's nodes and the connectors of its
/// edges.
const DIAGRAM_ELEMENTS_MAX: usize = 600;

/// Returns the graph as SVG text. The error message says how to simplify the graph.
pub(crate) fn svg(graph: &Graph) -> Result<String, String> {
    let order = EdgeOrder::new(graph);
    let connectors = order.connectors(graph);
    let nodes = graph.nodes.len();
    if nodes + connectors > DIAGRAM_ELEMENTS_MAX {
        return Err(format!(
            "the graph is too large: {nodes} nodes, and edges with {connectors} labels and bends; draw a part of it"
        ));
    }
    // Assertions in the layout fail on some valid graphs.
    catch_unwind(AssertUnwindSafe(|| render(graph, &order)))
        .map_err(|_| "the layout failed; remove some edges, ports, or edges from a node to itself".into())
}

fn render(graph: &Graph, order: &EdgeOrder) -> String {
    let sideways = graph.attributes.get("rankdir").is_some_and(|direction| direction == "LR" || direction == "RL");
    let orientation = if sideways { Orientation::LeftToRight } else { Orientation::TopToBottom };
    let mut visual = VisualGraph::new(orientation);
    // The validation searches all paths for cycles, which takes exponential time.
    visual.dag.set_validate(false);
    let handles: Vec<_> = graph.nodes.iter().map(|node| visual.add_node(element(node, orientation))).collect();
    for (index, reversed) in &order.edges {
        let edge = &graph.edges[*index];
        let (from, to) = (handles[edge.from.node], handles[edge.to.node]);
        let arrow = arrow(edge);
        if *reversed { visual.add_edge(arrow.reverse(), to, from) } else { visual.add_edge(arrow, from, to) }
    }
    let mut writer = SVGWriter::new();
    visual.do_it(false, false, false, &mut writer);
    writer.finalize()
}

/// The edges in the order and direction in which the layout receives them: without cycles, and with
/// the edges of earlier nodes first.
struct EdgeOrder {
    /// Index of each edge, and whether it is reversed.
    edges: Vec<(usize, bool)>,
    /// Level of each node, from the top.
    levels: Vec<usize>,
}

impl EdgeOrder {
    fn new(graph: &Graph) -> EdgeOrder {
        let position = positions(graph);
        let mut edges: Vec<(usize, bool)> = (0..graph.edges.len())
            .map(|index| (index, position[graph.edges[index].from.node] > position[graph.edges[index].to.node]))
            .collect();
        let ends = |(index, reversed): (usize, bool)| {
            let (from, to) = (graph.edges[index].from.node, graph.edges[index].to.node);
            if reversed { (to, from) } else { (from, to) }
        };
        edges.sort_by_key(|edge| (position[ends(*edge).0], edge.0));
        let mut levels = vec![0; graph.nodes.len()];
        for edge in &edges {
            let (from, to) = ends(*edge);
            if from != to {
                levels[to] = levels[to].max(levels[from] + length(&graph.edges[edge.0]));
            }
        }
        EdgeOrder { edges, levels }
    }

    /// Counts the layout elements on edges: labels, and a bend on each level that an edge passes.
    fn connectors(&self, graph: &Graph) -> usize {
        let passed = |edge: &Edge| self.levels[edge.from.node].abs_diff(self.levels[edge.to.node]).max(1);
        graph.edges.iter().map(|edge| passed(edge).max(length(edge)) - 1 + usize::from(edge.from.node == edge.to.node)).sum()
    }
}

/// Returns the minimum number of levels between the ends of an edge. A label occupies one level.
fn length(edge: &Edge) -> usize {
    if edge.attributes.get("label").is_some_and(|label| !label.is_empty()) { 2 } else { 1 }
}

/// Calculates the position of each node in a topological order (reverse postorder of a depth-first
/// search). Edges that close a cycle lead backwards in it.
fn positions(graph: &Graph) -> Vec<usize> {
    let count = graph.nodes.len();
    let mut next = vec![Vec::new(); count];
    let mut entered = vec![false; count];
    for edge in graph.edges.iter().filter(|edge| edge.from.node != edge.to.node) {
        next[edge.from.node].push(edge.to.node);
        entered[edge.to.node] = true;
    }
    let mut position = vec![0; count];
    let mut seen = vec![false; count];
    let mut left = count;
    // The searches start at the nodes without incoming edges, last node first, because the nodes of
    // a later search get earlier positions. The remaining cycles follow.
    let sources = (0..count).rev().filter(|node| !entered[*node]);
    for start in sources.chain((0..count).filter(|node| entered[*node])) {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut path = vec![(start, 0)];
        while let Some((node, step)) = path.pop() {
            let Some(to) = next[node].get(step) else {
                left -= 1;
                position[node] = left;
                continue;
            };
            path.push((node, step + 1));
            if !std::mem::replace(&mut seen[*to], true) {
                path.push((*to, 0));
            }
        }
    }
    position
}

fn color(attributes: &Attributes, name: &str, otherwise: &str) -> Color {
    let color = attributes.get(name).map_or(otherwise, |color| color.split(':').next().unwrap_or_default());
    Color::from_name(&color.to_ascii_lowercase()).unwrap_or_else(|| Color::fast(otherwise))
}

fn number(attributes: &Attributes, name: &str, otherwise: usize, range: std::ops::RangeInclusive<usize>) -> usize {
    let value = attributes.get(name).and_then(|text| text.parse::<f64>().ok()).filter(|number| number.is_finite());
    value.map_or(otherwise, |number| (number.max(0.0) as usize).clamp(*range.start(), *range.end()))
}

fn has_style(attributes: &Attributes, style: &str) -> bool {
    attributes.get("style").is_some_and(|styles| styles.split(',').any(|one| one.trim() == style))
}

fn element(node: &Node, orientation: Orientation) -> Element {
    let attributes = &node.attributes;
    let text = attributes.get("label").map_or(node.name.as_str(), String::as_str);
    let kind = attributes.get("shape").map_or("ellipse", String::as_str);
    let mut rounded = if has_style(attributes, "rounded") || kind == "Mrecord" { 15 } else { 0 };
    let shape = match kind {
        "record" | "Mrecord" => ShapeKind::Record(record(text, &node.name)),
        "doublecircle" | "doubleoctagon" => ShapeKind::DoubleCircle(label(text, &node.name)),
        "ellipse" | "oval" | "circle" | "point" | "egg" | "diamond" => ShapeKind::Circle(label(text, &node.name)),
        "cylinder" | "octagon" => {
            rounded = 15;
            ShapeKind::Box(label(text, &node.name))
        }
        _ => ShapeKind::Box(label(text, &node.name)),
    };
    let filled = if has_style(attributes, "filled") { "lightgray" } else { "white" };
    let fill = if attributes.contains_key("fillcolor") { "fillcolor" } else { "color" };
    let fill = if fill == "fillcolor" || filled == "lightgray" { color(attributes, fill, filled) } else { Color::fast("white") };
    let font = number(attributes, "fontsize", 14, 4..=72);
    let style =
        StyleAttr::new(color(attributes, "color", "black"), number(attributes, "penwidth", 1, 1..=10), Some(fill), rounded, font);
    let direction = orientation.flip();
    let size = get_shape_size(direction, &shape, font, matches!(shape, ShapeKind::DoubleCircle(_)) || kind == "circle");
    Element::create(shape, style, direction, size)
}

fn arrow(edge: &Edge) -> Arrow {
    let attributes = &edge.attributes;
    let direction = attributes.get("dir").map_or(if edge.directed { "forward" } else { "none" }, String::as_str);
    let end = |shown| if shown { LineEndKind::Arrow } else { LineEndKind::None };
    let line = match () {
        () if has_style(attributes, "invis") => LineStyleKind::None,
        () if has_style(attributes, "dashed") => LineStyleKind::Dashed,
        () if has_style(attributes, "dotted") => LineStyleKind::Dotted,
        () => LineStyleKind::Normal,
    };
    let font = number(attributes, "fontsize", 14, 4..=72);
    let style = StyleAttr::new(color(attributes, "color", "black"), number(attributes, "penwidth", 1, 1..=10), None, 0, font);
    let text = attributes.get("label").map_or_else(String::new, |text| label(text, ""));
    let (start, tip) = (end(matches!(direction, "back" | "both")), end(matches!(direction, "forward" | "both")));
    Arrow::new(start, tip, line, &text, &style, &edge.from.port, &edge.to.port)
}
