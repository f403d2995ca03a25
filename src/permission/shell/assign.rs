//! Analyses assignments: the variables that a command line sets, and their values.

use std::ops::Range;

use tree_sitter::Node;

use super::arithmetic::{Value, is_clean};
use super::command::ShellCommand;
use super::effect::Effect;
use super::environment;
use super::grammar::is_literal;
use super::read::ScriptReader;
use super::word::Word;

impl ScriptReader<'_> {
    /// Analyses an assignment. `prefixed` is true if it precedes a command (`A=b command`), which
    /// receives the variable in its environment.
    pub(crate) fn assignment(&mut self, node: Node<'_>, prefixed: bool) {
        let parts = self.parts(node, false);
        let name = parts.iter().find(|part| part.kind() == "variable_name").map_or("", |part| self.text(*part));
        let appends = parts.iter().any(|part| part.kind() == "+=");
        // Bash evaluates the subscript of `name[subscript]=`.
        self.opaque |= parts.iter().any(|part| part.kind() == "subscript");
        let (mut value, mut text) = (Value { clean: true, ..Value::default() }, Some(String::new()));
        for part in parts {
            if part.kind() == "array" {
                self.visit(part);
                (value, text) = (Value::default(), None);
            } else if is_literal(part.kind()) {
                let word = self.word(part);
                let known: String = word.text.iter().flatten().collect();
                let continued = word.text.windows(2).any(|pair| pair == [None, Some('(')]);
                self.opaque |= known.contains("$(") || known.contains('`') || continued;
                if appends {
                    self.opaque |= !is_clean(&known);
                    if word.value().is_none() {
                        self.variables.use_clean(name, node.start_byte());
                    }
                }
                value = self.value(part, &word);
                text = word.value();
            }
        }
        if appends {
            (value.file, value.clean) = (!value.device, true);
        }
        // An append does not determine the previous value of the variable.
        let before = if appends { 0..0 } else { self.after(node) };
        self.variables.assign(name, value, before);
        self.variable(name, prefixed, text.as_deref(), node);
    }

    /// Returns the known properties of the value of `word`, which is written as `node`.
    fn value(&self, node: Node<'_>, word: &Word) -> Value {
        let text = self.text(node);
        let counts = text.starts_with("${#") && text.ends_with('}') && text.matches('$').count() == 1;
        if node.kind() == "arithmetic_expansion" || counts || ["$#", "$?"].contains(&text) {
            return Value::NUMBER;
        }
        let makes_file = text.trim_start_matches('"').starts_with("$(mktemp");
        let redefined = || self.source.matches("mktemp").count() != self.source.matches("$(mktemp").count();
        let value = Value::from_word(word);
        Value { file: value.file || (makes_file && !redefined()), ..value }
    }

    /// Returns the range of the script that is reached only after `node` has run in the same shell;
    /// may be empty.
    fn after(&self, node: Node<'_>) -> Range<usize> {
        let after = node.end_byte()..self.source.len();
        let background = |node: Node<'_>| node.next_sibling().is_some_and(|next| next.kind() == "&");
        let mut node = node;
        loop {
            let Some(parent) = node.parent() else { return after };
            let first = parent.child(0) == Some(node);
            match parent.kind() {
                "program" if !background(node) => return after,
                "variable_assignments" | "declaration_command" => {}
                "list" if first => {}
                _ => return 0..0,
            }
            node = parent;
        }
    }

    /// Analyses the variable of a `for` or `select` loop.
    pub(crate) fn loop_variable(&mut self, node: Node<'_>) {
        let name = node.child_by_field_name("variable").map_or("", |variable| self.text(variable));
        self.variable(name, false, None, node);
        let body = node.child_by_field_name("body").map_or(0..0, |body| body.byte_range());
        let mut values = Vec::new();
        for part in node.children(&mut node.walk()).filter(|part| is_literal(part.kind())) {
            let text = self.text(part);
            let counts = |text: &str| text.chars().all(|character| character.is_ascii_digit() || "{}.,".contains(character));
            let (word, _) = Word::read(self.source, part.byte_range(), &[part.byte_range()]);
            let literal = !text.contains(['$', '`', '"', '\'']);
            values.push(match () {
                () if part.kind() == "brace_expression" && counts(text) => Value::NUMBER,
                () if literal => Value::from_word(&Word::read(self.source, part.byte_range(), &[]).0),
                () => Value::from_word(&word),
            });
        }
        let all = |is: fn(&Value) -> bool| !values.is_empty() && values.iter().all(is);
        let value = Value {
            number: all(|value| value.number),
            file: all(|value| value.file),
            device: values.iter().any(|value| value.device),
            clean: all(|value| value.clean),
        };
        self.variables.assign(name, value, body);
    }

    /// Analyses the elements of an array. Explicit subscripts make the script opaque, because bash
    /// evaluates them.
    pub(crate) fn array(&mut self, node: Node<'_>) {
        for part in self.parts(node, true) {
            self.opaque |= self.text(part).starts_with('[');
            self.visit(part);
        }
    }

    /// Records the effect of setting a variable.
    pub(crate) fn variable(&mut self, name: &str, prefixed: bool, value: Option<&str>, node: Node<'_>) {
        if let Some(effect) = environment::variable(name, prefixed, value) {
            self.push(ShellCommand::new(effect, &[], self.text(node)));
        }
    }

    /// Analyses `declare`, `export`, `unset` and similar commands.
    pub(crate) fn declaration(&mut self, node: Node<'_>) {
        let mut words = Vec::new();
        for part in self.parts(node, false) {
            match part.kind() {
                "variable_assignment" => {
                    self.assignment(part, true);
                    words.push(Word::literal(self.text(part)));
                }
                "variable_name" => words.push(Word::literal(self.text(part))),
                kind if is_literal(kind) => {
                    let word = self.word(part);
                    // An option or a complex name: `-i` evaluates arithmetic, `-n` creates a
                    // reference, and bash evaluates the subscript of `a[…]`.
                    self.opaque |=
                        !word.value().is_some_and(|word| word.chars().all(|one| one.is_ascii_alphanumeric() || one == '_'));
                    words.push(word);
                }
                kind => words.push(Word::literal(kind)),
            }
        }
        self.push(ShellCommand::new(Effect::Transparent, &words, self.text(node)));
    }
}
