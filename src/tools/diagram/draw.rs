//! A graph as a picture. The layout is a crate's; it is given acyclic graphs only, in an order in which it has nothing to search, and
//! not more than it can place in a moment.

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
use crate::limits;

/// The error says what to leave out.
pub fn svg(graph: &Graph) -> Result<String, String> {
    let order = Order::of(graph);
    let elements = graph.nodes.len() + order.connectors(graph);
    if elements > limits::DIAGRAM_ELEMENTS_MAX {
        return Err(format!(
            "it is too large: {} nodes, and edges that pass {} others; draw a part of it",
            graph.nodes.len(),
            elements - graph.nodes.len()
        ));
    }
    // The layout asserts what it believes of itself, and not all of that is so.
    catch_unwind(AssertUnwindSafe(|| picture(graph, &order)))
        .map_err(|_| "its layout failed; leave out some edges, ports or edges of a node to itself".into())
}

fn picture(graph: &Graph, order: &Order) -> String {
    let sideways = graph.attributes.get("rankdir").is_some_and(|direction| direction == "LR" || direction == "RL");
    let orientation = if sideways { Orientation::LeftToRight } else { Orientation::TopToBottom };
    let mut visual = VisualGraph::new(orientation);
    // It would look for circles along all paths, of which there can be more than there is time for.
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

/// The edges as the layout takes them: without circles, those of earlier nodes first.
struct Order {
    /// Index of an edge, and whether it is turned round.
    edges: Vec<(usize, bool)>,
    /// How far down each node is.
    levels: Vec<usize>,
}

impl Order {
    fn of(graph: &Graph) -> Order {
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
        Order { edges, levels }
    }

    /// What stands on edges beside nodes: labels, and a bend on each level that an edge passes.
    fn connectors(&self, graph: &Graph) -> usize {
        let passed = |edge: &Edge| self.levels[edge.from.node].abs_diff(self.levels[edge.to.node]).max(1);
        graph.edges.iter().map(|edge| passed(edge).max(length(edge)) - 1 + usize::from(edge.from.node == edge.to.node)).sum()
    }
}

/// Levels from one end to the other: a label takes one of its own.
fn length(edge: &Edge) -> usize {
    if edge.attributes.get("label").is_some_and(|label| !label.is_empty()) { 2 } else { 1 }
}

/// Of each node its place in an order in which edges lead onward, but for those that close a circle: the reverse order in which a walk leaves the
/// nodes.
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
    // First those that nothing leads to, from the end, as later walks come before earlier ones; then the circles that are left.
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
    let said = attributes.get(name).map_or(otherwise, |color| color.split(':').next().unwrap_or_default());
    Color::from_name(&said.to_ascii_lowercase()).unwrap_or_else(|| Color::fast(otherwise))
}

fn number(attributes: &Attributes, name: &str, otherwise: usize, range: std::ops::RangeInclusive<usize>) -> usize {
    let said = attributes.get(name).and_then(|text| text.parse::<f64>().ok()).filter(|number| number.is_finite());
    said.map_or(otherwise, |number| (number.max(0.0) as usize).clamp(*range.start(), *range.end()))
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
    let look =
        StyleAttr::new(color(attributes, "color", "black"), number(attributes, "penwidth", 1, 1..=10), Some(fill), rounded, font);
    let direction = orientation.flip();
    let size = get_shape_size(direction, &shape, font, matches!(shape, ShapeKind::DoubleCircle(_)) || kind == "circle");
    Element::create(shape, look, direction, size)
}

fn arrow(edge: &Edge) -> Arrow {
    let attributes = &edge.attributes;
    let direction = attributes.get("dir").map_or(if edge.directed { "forward" } else { "none" }, String::as_str);
    let end = |shown| if shown { LineEndKind::Arrow } else { LineEndKind::None };
    let style = match () {
        () if has_style(attributes, "invis") => LineStyleKind::None,
        () if has_style(attributes, "dashed") => LineStyleKind::Dashed,
        () if has_style(attributes, "dotted") => LineStyleKind::Dotted,
        () => LineStyleKind::Normal,
    };
    let font = number(attributes, "fontsize", 14, 4..=72);
    let look = StyleAttr::new(color(attributes, "color", "black"), number(attributes, "penwidth", 1, 1..=10), None, 0, font);
    let text = attributes.get("label").map_or_else(String::new, |text| label(text, ""));
    let (start, tip) = (end(matches!(direction, "back" | "both")), end(matches!(direction, "forward" | "both")));
    Arrow::new(start, tip, style, &text, &look, &edge.from.port, &edge.to.port)
}
