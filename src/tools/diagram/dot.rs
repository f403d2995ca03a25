//! Parser for the DOT language (https://graphviz.org/doc/info/lang.html) into nodes and edges with
//! their attributes. Pure, with limits on depth and size.

use std::collections::{BTreeMap, HashMap};

use super::tokens::{Token, tokens};
use crate::limits;

/// Maximum size of a diagram's source, in bytes. This and the following limits exist because the
/// layout time grows faster than the diagram.
const DIAGRAM_SOURCE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of nodes in a diagram.
const DIAGRAM_NODES_MAX: usize = 200;
/// Maximum number of edges in a diagram.
const DIAGRAM_EDGES_MAX: usize = 400;

/// Maps attribute names to values.
pub(crate) type Attributes = BTreeMap<String, String>;

/// A parsed graph; its subgraphs are flattened.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Attributes of the graph itself.
    pub attributes: Attributes,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// True if the source contains clusters, which Graphviz would draw with a frame.
    pub has_clusters: bool,
    directed: bool,
    strict: bool,
    by_name: HashMap<String, usize>,
}

/// A node with its attributes, defaults included.
#[derive(Debug)]
pub(crate) struct Node {
    pub name: String,
    pub attributes: Attributes,
}

/// An edge with its attributes, defaults included.
#[derive(Debug)]
pub(crate) struct Edge {
    pub from: EdgeEnd,
    pub to: EdgeEnd,
    pub directed: bool,
    pub attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EdgeEnd {
    /// Index in [`Graph::nodes`].
    pub node: usize,
    /// Port of the node.
    pub port: Option<String>,
}

/// Default attributes for the nodes and edges that follow in a graph or subgraph.
#[derive(Clone, Default)]
struct Defaults {
    nodes: Attributes,
    edges: Attributes,
}

/// Parses a graph. The error names the line, from 1.
pub(crate) fn parse(source: &str) -> Result<Graph, String> {
    if source.len() > DIAGRAM_SOURCE_BYTES_MAX {
        return Err(format!("more than {} KiB; draw a part of the graph", DIAGRAM_SOURCE_BYTES_MAX >> 10));
    }
    let mut parser = Parser { tokens: tokens(source)?, at: 0, graph: Graph::default() };
    parser.graph()?;
    if parser.graph.nodes.is_empty() {
        return Err("the graph has no nodes".into());
    }
    Ok(parser.graph)
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    graph: Graph,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        // `Token::End` is never consumed.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Consumes the next token if it equals `token`.
    fn accept(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.next();
        }
        found
    }

    /// Consumes the next token if it is the keyword `word`, in any case.
    fn accept_keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Id(id) if id.eq_ignore_ascii_case(word));
        if found {
            self.next();
        }
        found
    }

    /// Returns a syntax error at the next token.
    fn unexpected<T>(&self, expected: &str) -> Result<T, String> {
        let (token, line) = &self.tokens[self.at];
        let found = match token {
            Token::Id(text) => format!("{text:?}"),
            Token::Text(text) => format!("the text {text:?}"),
            Token::Sign(sign) => format!("{sign:?}"),
            Token::Arrow => "\"->\"".into(),
            Token::Dashes => "\"--\"".into(),
            Token::End => "the end".into(),
        };
        Err(format!("line {line}: expected {expected}, found {found}"))
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        if self.accept(&Token::Sign(sign)) { Ok(()) } else { self.unexpected(&format!("{sign:?}")) }
    }

    /// Reads an identifier, or quoted strings joined by `+`. `what` describes the expected token in
    /// an error message.
    fn id(&mut self, what: &str) -> Result<String, String> {
        let mut id = match self.peek().clone() {
            Token::Id(id) | Token::Text(id) => id,
            _ => return self.unexpected(what),
        };
        self.next();
        while self.accept(&Token::Sign('+')) {
            let Token::Text(more) = self.peek().clone() else { return self.unexpected("a quoted string") };
            self.next();
            id.push_str(&more);
        }
        Ok(id)
    }

    /// Parses the whole source: `[strict] (graph | digraph) [ID] { … }`
    fn graph(&mut self) -> Result<(), String> {
        self.graph.strict = self.accept_keyword("strict");
        self.graph.directed = self.accept_keyword("digraph");
        if !self.graph.directed && !self.accept_keyword("graph") {
            return self.unexpected("graph or digraph");
        }
        if !matches!(self.peek(), Token::Sign(_)) {
            self.id("'{'")?;
        }
        self.expect('{')?;
        self.statements(Defaults::default(), 0)?;
        if *self.peek() == Token::End { Ok(()) } else { self.unexpected("the end (only one graph can be drawn)") }
    }

    /// Reads statements up to and including the closing brace. Returns the nodes that the
    /// statements name.
    fn statements(&mut self, mut defaults: Defaults, depth: usize) -> Result<Vec<EdgeEnd>, String> {
        if depth > limits::DIAGRAM_DEPTH_MAX {
            return self.unexpected(&format!("at most {} nested subgraphs", limits::DIAGRAM_DEPTH_MAX));
        }
        let mut named = Vec::new();
        while !self.accept(&Token::Sign('}')) {
            if self.accept(&Token::Sign(';')) {
                continue;
            }
            named.extend(self.statement(&mut defaults, depth)?);
        }
        Ok(named)
    }

    /// Reads one statement. Returns the nodes that the statement names.
    fn statement(&mut self, defaults: &mut Defaults, depth: usize) -> Result<Vec<EdgeEnd>, String> {
        for (word, target) in [("graph", 0), ("node", 1), ("edge", 2)] {
            if self.accept_keyword(word) {
                let attributes = self.attributes()?;
                match target {
                    0 if depth == 0 => self.graph.attributes.extend(attributes),
                    1 => defaults.nodes.extend(attributes),
                    2 => defaults.edges.extend(attributes),
                    _ => {}
                }
                return Ok(Vec::new());
            }
        }
        if matches!(self.peek(), Token::Id(_) | Token::Text(_)) && self.tokens[self.at + 1].0 == Token::Sign('=') {
            let name = self.id("a name")?;
            self.expect('=')?;
            let value = self.id("a value")?;
            if depth == 0 {
                self.graph.attributes.insert(name, value);
            }
            return Ok(Vec::new());
        }
        let mut all = self.operand(defaults, depth)?;
        let alone = all.len() == 1 && !matches!(self.peek(), Token::Arrow | Token::Dashes);
        let mut pairs = Vec::new();
        let mut from = all.clone();
        while matches!(self.peek(), Token::Arrow | Token::Dashes) {
            let directed = self.next() == Token::Arrow;
            let to = self.operand(defaults, depth)?;
            for (one, other) in from.iter().flat_map(|one| to.iter().map(move |other| (one, other))) {
                if self.graph.edges.len() + pairs.len() == DIAGRAM_EDGES_MAX {
                    return self.unexpected(&format!("at most {} edges", DIAGRAM_EDGES_MAX));
                }
                pairs.push((one.clone(), other.clone(), directed));
            }
            all.extend(to.iter().cloned());
            from = to;
        }
        let attributes = self.attributes()?;
        if alone {
            self.graph.nodes[all[0].node].attributes.extend(attributes);
            return Ok(all);
        }
        let attributes: Attributes = defaults.edges.clone().into_iter().chain(attributes).collect();
        for (from, to, directed) in pairs {
            let known = |edge: &Edge| edge.from.node == from.node && edge.to.node == to.node;
            if !self.graph.strict || !self.graph.edges.iter().any(known) {
                let directed = directed || self.graph.directed;
                self.graph.edges.push(Edge { from, to, directed, attributes: attributes.clone() });
            }
        }
        Ok(all)
    }

    /// Reads a node or a subgraph. Returns the node or all nodes of the subgraph.
    fn operand(&mut self, defaults: &Defaults, depth: usize) -> Result<Vec<EdgeEnd>, String> {
        if self.accept_keyword("subgraph") {
            if !matches!(self.peek(), Token::Sign(_)) {
                self.graph.has_clusters |= self.id("'{'")?.starts_with("cluster");
            }
            self.expect('{')?;
            return self.statements(defaults.clone(), depth + 1);
        }
        if self.accept(&Token::Sign('{')) {
            return self.statements(defaults.clone(), depth + 1);
        }
        let name = self.id("a node, an edge or '}'")?;
        let mut port = None;
        while self.accept(&Token::Sign(':')) {
            // In `node:port:compass` the compass point is ignored.
            let part = self.id("a port")?;
            port.get_or_insert(part);
        }
        let graph = &mut self.graph;
        let node = match graph.by_name.get(&name) {
            Some(node) => *node,
            None if graph.nodes.len() == DIAGRAM_NODES_MAX => {
                return self.unexpected(&format!("at most {} nodes", DIAGRAM_NODES_MAX));
            }
            None => {
                graph.by_name.insert(name.clone(), graph.nodes.len());
                graph.nodes.push(Node { name, attributes: defaults.nodes.clone() });
                graph.nodes.len() - 1
            }
        };
        Ok(vec![EdgeEnd { node, port }])
    }

    /// Reads any number of attribute lists: `[a=b, c=d] …`.
    fn attributes(&mut self) -> Result<Attributes, String> {
        let mut attributes = Attributes::new();
        while self.accept(&Token::Sign('[')) {
            while !self.accept(&Token::Sign(']')) {
                let name = self.id("an attribute or ']'")?;
                let value = if self.accept(&Token::Sign('=')) { self.id("a value")? } else { "true".into() };
                attributes.insert(name, value);
                while self.accept(&Token::Sign(',')) || self.accept(&Token::Sign(';')) {}
            }
        }
        Ok(attributes)
    }
}
