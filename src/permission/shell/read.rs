//! Extracts the commands from a command line with tree-sitter's bash grammar. The grammar accepts
//! more than bash does. Where the two may differ, the command line is treated as opaque.

use std::ops::Range;

use tree_sitter::Node;

use super::arithmetic::{self, Variables};
use super::command::ShellCommand;
use super::effect::Effect;
use super::grammar::{is_literal, parse};
use super::plain::{is_harmless_expansion, is_plain, is_variable};
use super::word::Word;
use crate::limits;

/// Maximum number of simple commands that are analysed in one shell command.
const SHELL_COMMANDS_MAX: usize = 500;
/// Maximum nesting depth of the syntax of a shell command.
const SHELL_LEVELS_MAX: usize = 200;
/// Maximum number of nested shells in a shell command, as in `sh -c`.
const SHELL_DEPTH_MAX: usize = 8;

/// Returns all commands in `line`, including commands in substitutions and in nested shells. If a
/// part cannot be analysed, an opaque command is added.
pub(crate) fn commands(line: &str) -> Vec<ShellCommand> {
    let mut reader = ScriptReader::new(line);
    reader.read();
    reader.done()
}

/// Returns the effects of the environment variables set for a command line, as commands.
pub(crate) fn environment(environment: &str) -> Vec<ShellCommand> {
    let environment = environment.trim_ascii();
    let mut reader = ScriptReader::new(environment);
    if !environment.is_empty() {
        reader.prefixed = true;
        reader.read();
    }
    reader.done()
}

/// Analyses one shell script. Each nested script is analysed by a separate reader.
pub(crate) struct ScriptReader<'a> {
    pub source: &'a str,
    pub found: Vec<ShellCommand>,
    /// True if a part of the script could not be analysed.
    pub opaque: bool,
    /// Number of enclosing commands that run the current command.
    depth: usize,
    /// Nesting depth of syntax nodes.
    level: usize,
    /// Total number of characters in the spellings of the commands found.
    named: usize,
    /// True if stand-alone assignments set environment variables that are passed to programs.
    pub prefixed: bool,
    /// Variable assignments, and uses of variables that rely on the assigned values.
    pub variables: Variables,
}

impl<'a> ScriptReader<'a> {
    fn new(source: &'a str) -> ScriptReader<'a> {
        ScriptReader {
            source,
            found: Vec::new(),
            opaque: false,
            depth: 0,
            level: 0,
            named: 0,
            prefixed: false,
            variables: Variables::default(),
        }
    }

    /// Analyses `script` as the input of a nested shell.
    pub(crate) fn script(&self, script: &str) -> Vec<ShellCommand> {
        let mut inner = ScriptReader { depth: self.depth, level: self.level, ..ScriptReader::new(script) };
        inner.read();
        inner.done()
    }

    /// Returns the commands found, with an opaque command if a part could not be analysed.
    pub(crate) fn done(mut self) -> Vec<ShellCommand> {
        if self.opaque || !self.variables.are_safe() {
            self.found.push(ShellCommand::new(Effect::Opaque, &[Word::unknown()], self.source));
        }
        self.found
    }

    /// Analyses the complete script.
    pub(crate) fn read(&mut self) {
        self.opaque |= !is_plain(self.source);
        if self.source.len() > limits::SHELL_BYTES_MAX {
            self.opaque = true;
            return;
        }
        match parse(self.source) {
            Some(tree) => {
                let root = tree.root_node();
                self.opaque |= root.has_error();
                self.gap(0..root.start_byte(), true);
                self.visit(root);
                self.gap(root.end_byte()..self.source.len(), true);
            }
            None => self.opaque = true,
        }
    }

    /// Adds a command. If the number or the total size of the commands would exceed its limit,
    /// marks the script as opaque instead.
    pub(crate) fn push(&mut self, command: ShellCommand) {
        self.named += command.names.iter().map(Vec::len).sum::<usize>();
        if self.found.len() < SHELL_COMMANDS_MAX && self.named <= limits::SHELL_NAMES_CHARS_MAX {
            self.found.push(command);
        } else {
            self.opaque = true;
        }
    }

    pub(crate) fn push_all(&mut self, commands: Vec<ShellCommand>) {
        commands.into_iter().for_each(|command| self.push(command));
    }

    pub(crate) fn text(&self, node: Node<'_>) -> &'a str {
        &self.source[node.byte_range()]
    }

    /// Marks the script as opaque unless bash treats the text in `gap`, between syntax nodes, as
    /// whitespace. `lines`: the text may contain line breaks.
    fn gap(&mut self, gap: Range<usize>, lines: bool) {
        let continued = self.source[gap].replace("\\\n", " ");
        self.opaque |= !continued.chars().all(|character| matches!(character, ' ' | '\t') || (lines && character == '\n'));
    }

    /// Returns the children of `node`. `lines`: the children may be on several lines.
    pub(crate) fn parts<'t>(&mut self, node: Node<'t>, lines: bool) -> Vec<Node<'t>> {
        let parts: Vec<Node<'t>> = node.children(&mut node.walk()).collect();
        let mut end = node.start_byte();
        let mut word = false;
        for part in &parts {
            // Bash parses adjacent words as one word.
            let is_word = is_literal(part.kind()) || matches!(part.kind(), "command_name" | "variable_assignment");
            self.opaque |= is_word && word && end == part.start_byte();
            word = is_word;
            // The grammar drops a `-` before a here-document; `redirect` restores it.
            let dash = part.kind() == "heredoc_redirect" && self.source[end..part.start_byte()].trim_matches([' ', '\t']) == "-";
            if !dash {
                self.gap(end..part.start_byte(), lines);
            }
            end = part.end_byte();
        }
        self.gap(end..node.end_byte(), lines);
        parts
    }

    /// Runs `read` one nesting level deeper. All recursion uses this function, which limits the
    /// nesting depth.
    pub(crate) fn within(&mut self, read: impl FnOnce(&mut Self)) {
        self.level += 1;
        if self.level > SHELL_LEVELS_MAX {
            self.opaque = true;
        } else {
            read(self);
        }
        self.level -= 1;
    }

    /// Analyses a node and its children.
    pub(crate) fn visit(&mut self, node: Node<'_>) {
        self.within(|reader| reader.visit_kind(node));
    }

    fn visit_kind(&mut self, node: Node<'_>) {
        self.opaque |= node.is_missing();
        match node.kind() {
            "program"
            | "list"
            | "pipeline"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "do_group"
            | "case_statement"
            | "case_item"
            | "negated_command"
            | "function_definition"
            | "process_substitution" => {
                self.visit_all(node, true);
            }
            "array" => self.array(node),
            // The pattern of a `case` item.
            "extglob_pattern" => self.opaque |= !is_plain_pattern(self.text(node)),
            // After `!`, the grammar parses `((1))` as a subshell.
            "compound_statement" | "subshell" => {
                let sum = self.text(node).strip_prefix("((").map(|text| text.strip_suffix("))").unwrap_or("["));
                if !sum.is_some_and(|text| self.arithmetic(text, node)) {
                    self.visit_all(node, true);
                }
            }
            "command_substitution" => {
                // Within backticks, backslashes are interpreted differently.
                let text = self.expansion(node);
                self.opaque |= !text.starts_with("$(") && text.contains('\\');
                // In a here-document, the grammar parses `$((1))` as a command substitution.
                let sum = text.strip_prefix("$((").map(|text| text.strip_suffix("))").unwrap_or("["));
                if !sum.is_some_and(|text| self.arithmetic(text, node)) {
                    self.visit_all(node, true);
                }
            }
            "variable_assignments" => self.visit_all(node, false),
            "variable_assignment" => self.assignment(node, self.prefixed),
            "command" => self.simple(node, Some(node), &[]),
            "redirected_statement" => self.redirected(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "test_command" => self.test(node),
            "for_statement" => {
                self.loop_variable(node);
                self.visit_all(node, true);
            }
            "file_redirect" | "heredoc_redirect" | "herestring_redirect" => {
                let mut words = Vec::new();
                self.redirect(node, &mut words);
                self.opaque |= !words.is_empty();
            }
            "comment" => {
                let before = self.source[..node.start_byte()].chars().next_back();
                self.opaque |= before.is_some_and(|before| !" \t\n;&|()".contains(before));
            }
            kind if is_literal(kind) => drop(self.word(node)),
            "variable_name" | "special_variable_name" | "file_descriptor" | "heredoc_start" | "heredoc_end" | "heredoc_content" => {
            }
            _ if !node.is_named() => {}
            _ => {
                self.opaque = true;
                for part in node.children(&mut node.walk()) {
                    self.visit(part);
                }
            }
        }
    }

    fn visit_all(&mut self, node: Node<'_>, lines: bool) {
        for part in self.parts(node, lines) {
            self.visit(part);
        }
    }

    /// Reads a word and analyses the commands in its substitutions.
    pub(crate) fn word(&mut self, node: Node<'_>) -> Word {
        let mut holes = Vec::new();
        self.holes(node, &mut holes);
        let (word, whole) = Word::read(self.source, node.byte_range(), &holes);
        self.opaque |= !whole;
        word
    }

    /// Collects the ranges of expansions in a word, and analyses the commands in them.
    pub(crate) fn holes(&mut self, node: Node<'_>, holes: &mut Vec<Range<usize>>) {
        let text = self.expansion(node);
        let range = node.end_byte() - text.len()..node.end_byte();
        match node.kind() {
            "simple_expansion" => {
                holes.push(range);
                self.opaque |= !is_variable(text);
            }
            "command_substitution" | "process_substitution" => {
                holes.push(range);
                self.visit(node);
            }
            "expansion" | "arithmetic_expansion" => {
                holes.push(range);
                // Both kinds of expansion may execute code in the value of a variable: `${x@P}`,
                // `$((x))` with x='a[$(…)]'.
                match text.strip_prefix("$((").and_then(|text| text.strip_suffix("))")) {
                    Some(text) => drop(self.arithmetic(text, node)),
                    None => self.opaque |= !is_harmless_expansion(text),
                }
                for part in node.children(&mut node.walk()).filter(Node::is_named) {
                    self.within(|reader| reader.holes(part, &mut Vec::new()));
                }
            }
            _ => {
                for part in node.children(&mut node.walk()) {
                    self.within(|reader| reader.holes(part, holes));
                }
            }
        }
    }

    /// Returns the text of an expansion without leading whitespace. After a quote, the grammar
    /// includes the whitespace before the expansion in the node.
    fn expansion(&self, node: Node<'_>) -> &'a str {
        self.text(node).trim_start_matches([' ', '\t', '\n'])
    }

    /// Analyses the text between `((` and `))` in `node`. Returns false if it is not plain
    /// arithmetic.
    fn arithmetic(&mut self, text: &str, node: Node<'_>) -> bool {
        let names = arithmetic::variables(text);
        let plain = names.is_some();
        self.opaque |= !plain;
        for name in names.into_iter().flatten() {
            if arithmetic::assigns(text) {
                self.variable(name, false, None, node);
            }
            self.variables.use_number(name, node.start_byte());
        }
        plain
    }

    fn redirected(&mut self, node: Node<'_>) {
        let parts = self.parts(node, false);
        let (redirects, bodies): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.kind().ends_with("_redirect"));
        match bodies.as_slice() {
            [] => self.simple(node, None, &redirects),
            [body] if body.kind() == "command" => self.simple(node, Some(*body), &redirects),
            _ => bodies.into_iter().chain(redirects).for_each(|part| self.visit(part)),
        }
    }

    /// Analyses a command with the redirections before and after it. The grammar assigns words
    /// after a redirection to the redirection.
    fn simple(&mut self, whole: Node<'_>, command: Option<Node<'_>>, redirects: &[Node<'_>]) {
        let mut words = Vec::new();
        for part in command.map(|command| self.parts(command, false)).unwrap_or_default() {
            match part.kind() {
                "variable_assignment" => self.assignment(part, true),
                "command_name" => match part.child(0) {
                    Some(name) => words.push(self.word(name)),
                    None => self.opaque = true,
                },
                "file_redirect" | "herestring_redirect" => self.redirect(part, &mut words),
                "comment" => self.visit(part),
                kind if is_literal(kind) => words.push(self.word(part)),
                "$" | "==" | "=~" => words.push(Word::literal(part.kind())),
                _ => {
                    self.opaque = true;
                    self.visit(part);
                }
            }
        }
        for redirect in redirects {
            self.redirect(*redirect, &mut words);
        }
        let raw = self.text(whole);
        self.run(&words, raw);
    }

    /// Analyses the commands that a wrapper runs, and limits their nesting depth.
    pub(crate) fn nested(&mut self, read: impl FnOnce(&mut Self)) {
        self.depth += 1;
        if self.depth > SHELL_DEPTH_MAX {
            self.opaque = true;
        } else {
            self.within(read);
        }
        self.depth -= 1;
    }
}

/// Returns whether a shell pattern consists only of literal characters, wildcards and character
/// classes.
pub(crate) fn is_plain_pattern(text: &str) -> bool {
    text.chars().all(|character| character.is_ascii_alphanumeric() || "_-./*?^+[]!:,=@%".contains(character))
}
