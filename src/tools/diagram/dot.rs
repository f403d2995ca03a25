//! The DOT language (https://graphviz.org/doc/info/lang.html) as nodes and edges with their attributes. Pure, and bounded in depth and size.

use std::collections::{BTreeMap, HashMap};

use super::tokens::{Token, tokens};
use crate::limits;

pub type Attributes = BTreeMap<String, String>;

#[derive(Debug, Default)]
pub struct Graph {
    pub attributes: Attributes,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// There were subgraphs that should have a frame.
    pub has_clusters: bool,
    directed: bool,
    strict: bool,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
pub struct Node {
    pub name: String,
    pub attributes: Attributes,
}

#[derive(Debug)]
pub struct Edge {
    pub from: End,
    pub to: End,
    pub directed: bool,
    pub attributes: Attributes,
}

/// A node, by its index, and perhaps a port of it.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub node: usize,
    pub port: Option<String>,
}

/// What holds for what is defined from here on.
#[derive(Clone, Default)]
struct Scope {
    nodes: Attributes,
    edges: Attributes,
}

/// The error names the line.
pub fn parse(source: &str) -> Result<Graph, String> {
    if source.len() > limits::DIAGRAM_SOURCE_BYTES_MAX {
        return Err(format!("more than {} KiB; draw a part of it", limits::DIAGRAM_SOURCE_BYTES_MAX >> 10));
    }
    let mut parser = Parser { tokens: tokens(source)?, at: 0, graph: Graph::default() };
    parser.whole()?;
    if parser.graph.nodes.is_empty() {
        return Err("there are no nodes in it".into());
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
        // The end stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.next();
        }
        found
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Id(id) if id.eq_ignore_ascii_case(word));
        if found {
            self.next();
        }
        found
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, String> {
        let (token, line) = &self.tokens[self.at];
        let found = match token {
            Token::Id(text) => format!("{text:?}"),
            Token::Text(text) => format!("the text {text:?}"),
            Token::Sign(sign) => format!("{sign:?}"),
            Token::Arrow => "\"->\"".into(),
            Token::Line => "\"--\"".into(),
            Token::End => "the end".into(),
        };
        Err(format!("line {line}: expected {expected}, found {found}"))
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        if self.takes(&Token::Sign(sign)) { Ok(()) } else { self.wrong(&format!("{sign:?}")) }
    }

    fn id(&mut self, what: &str) -> Result<String, String> {
        let mut id = match self.peek().clone() {
            Token::Id(id) | Token::Text(id) => id,
            _ => return self.wrong(what),
        };
        self.next();
        while self.takes(&Token::Sign('+')) {
            let Token::Text(more) = self.peek().clone() else { return self.wrong("a text in quotes") };
            self.next();
            id.push_str(&more);
        }
        Ok(id)
    }

    /// `[strict] (graph | digraph) [ID] { … }`
    fn whole(&mut self) -> Result<(), String> {
        self.graph.strict = self.takes_word("strict");
        self.graph.directed = self.takes_word("digraph");
        if !self.graph.directed && !self.takes_word("graph") {
            return self.wrong("graph or digraph");
        }
        if !matches!(self.peek(), Token::Sign(_)) {
            self.id("'{'")?;
        }
        self.expect('{')?;
        self.statements(Scope::default(), 0)?;
        if *self.peek() == Token::End { Ok(()) } else { self.wrong("the end, as one graph is drawn") }
    }

    /// Up to and with the closing brace. Gives the nodes that were named.
    fn statements(&mut self, mut scope: Scope, depth: usize) -> Result<Vec<End>, String> {
        if depth > limits::DIAGRAM_DEPTH_MAX {
            return self.wrong(&format!("at most {} subgraphs inside each other", limits::DIAGRAM_DEPTH_MAX));
        }
        let mut named = Vec::new();
        while !self.takes(&Token::Sign('}')) {
            if self.takes(&Token::Sign(';')) {
                continue;
            }
            named.extend(self.statement(&mut scope, depth)?);
        }
        Ok(named)
    }

    fn statement(&mut self, scope: &mut Scope, depth: usize) -> Result<Vec<End>, String> {
        for (word, target) in [("graph", 0), ("node", 1), ("edge", 2)] {
            if self.takes_word(word) {
                let attributes = self.attributes()?;
                match target {
                    0 if depth == 0 => self.graph.attributes.extend(attributes),
                    1 => scope.nodes.extend(attributes),
                    2 => scope.edges.extend(attributes),
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
        let mut all = self.operand(scope, depth)?;
        let alone = all.len() == 1 && !matches!(self.peek(), Token::Arrow | Token::Line);
        let mut pairs = Vec::new();
        let mut from = all.clone();
        while matches!(self.peek(), Token::Arrow | Token::Line) {
            let directed = self.next() == Token::Arrow;
            let to = self.operand(scope, depth)?;
            for (one, other) in from.iter().flat_map(|one| to.iter().map(move |other| (one, other))) {
                if self.graph.edges.len() + pairs.len() == limits::DIAGRAM_EDGES_MAX {
                    return self.wrong(&format!("at most {} edges", limits::DIAGRAM_EDGES_MAX));
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
        let attributes: Attributes = scope.edges.clone().into_iter().chain(attributes).collect();
        for (from, to, directed) in pairs {
            let known = |edge: &Edge| edge.from.node == from.node && edge.to.node == to.node;
            if !self.graph.strict || !self.graph.edges.iter().any(known) {
                let directed = directed || self.graph.directed;
                self.graph.edges.push(Edge { from, to, directed, attributes: attributes.clone() });
            }
        }
        Ok(all)
    }

    /// A node, or all those of a subgraph.
    fn operand(&mut self, scope: &Scope, depth: usize) -> Result<Vec<End>, String> {
        if self.takes_word("subgraph") {
            if !matches!(self.peek(), Token::Sign(_)) {
                self.graph.has_clusters |= self.id("'{'")?.starts_with("cluster");
            }
            self.expect('{')?;
            return self.statements(scope.clone(), depth + 1);
        }
        if self.takes(&Token::Sign('{')) {
            return self.statements(scope.clone(), depth + 1);
        }
        let name = self.id("a node, an edge or '}'")?;
        let mut port = None;
        while self.takes(&Token::Sign(':')) {
            let said = self.id("a port")?;
            port.get_or_insert(said);
        }
        let graph = &mut self.graph;
        let node = match graph.by_name.get(&name) {
            Some(node) => *node,
            None if graph.nodes.len() == limits::DIAGRAM_NODES_MAX => {
                return self.wrong(&format!("at most {} nodes", limits::DIAGRAM_NODES_MAX));
            }
            None => {
                graph.by_name.insert(name.clone(), graph.nodes.len());
                graph.nodes.push(Node { name, attributes: scope.nodes.clone() });
                graph.nodes.len() - 1
            }
        };
        Ok(vec![End { node, port }])
    }

    /// `[a=b, c=d] …`, as many as there are.
    fn attributes(&mut self) -> Result<Attributes, String> {
        let mut attributes = Attributes::new();
        while self.takes(&Token::Sign('[')) {
            while !self.takes(&Token::Sign(']')) {
                let name = self.id("an attribute or ']'")?;
                let value = if self.takes(&Token::Sign('=')) { self.id("a value")? } else { "true".into() };
                attributes.insert(name, value);
                while self.takes(&Token::Sign(',')) || self.takes(&Token::Sign(';')) {}
            }
        }
        Ok(attributes)
    }
}
