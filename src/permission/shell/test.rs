//! Analyses conditions: `[ … ]` and `[[ … ]]`.

use tree_sitter::Node;

use super::arithmetic::{assigns, variables};
use super::command::ShellCommand;
use super::effect::Effect;
use super::read::{ScriptReader, is_plain_pattern};
use super::word::Word;

/// Operators in `[[ … ]]` that evaluate both sides as arithmetic.
const NUMERIC: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl ScriptReader<'_> {
    /// Analyses a condition.
    pub(crate) fn test(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let double = text.starts_with("[[");
        let inner = text.trim_matches(['[', ']']);
        // Testing a variable evaluates its subscript; comparing numbers evaluates both operands.
        self.opaque |= ["-v", "-R", "-o"].into_iter().any(|word| inner.contains(word));
        let compares = NUMERIC.iter().map(|operator| inner.matches(operator).count()).sum::<usize>();
        let (brackets, compared) = self.tested(node, double);
        self.opaque |= inner.matches('[').count() != brackets || (double && compares != compared);
        self.push(ShellCommand::new(
            Effect::Transparent,
            &text.split_ascii_whitespace().map(Word::literal).collect::<Vec<_>>(),
            text,
        ));
    }

    /// Returns the number of brackets in patterns, and the number of plain numeric comparisons.
    /// `double`: the condition is written with `[[`.
    fn tested(&mut self, node: Node<'_>, double: bool) -> (usize, usize) {
        let (mut brackets, mut compared) = (0, 0);
        for part in self.parts(node, true) {
            match part.kind() {
                "unary_expression" | "binary_expression" | "parenthesized_expression" => {
                    compared += usize::from(double && self.compares_numbers(part));
                    self.within(|reader| {
                        let (more, others) = reader.tested(part, double);
                        brackets += more;
                        compared += others;
                    });
                }
                "test_operator" => {}
                "extglob_pattern" | "regex" => {
                    let pattern = self.text(part).strip_suffix('$').unwrap_or(self.text(part));
                    brackets += pattern.matches('[').count();
                    self.opaque |= !is_plain_pattern(pattern);
                }
                _ => self.visit(part),
            }
        }
        (brackets, compared)
    }

    /// Returns whether the node is a numeric comparison of plain numbers or variables. Records that
    /// the compared variables must hold numbers.
    fn compares_numbers(&mut self, node: Node<'_>) -> bool {
        let operator = (0..node.child_count()).filter_map(|place| node.child(place)).find(|part| part.kind() == "test_operator");
        let Some(operator) = operator.filter(|operator| NUMERIC.contains(&self.text(*operator))) else { return false };
        for side in [operator.prev_sibling(), operator.next_sibling()] {
            let text = side.map_or("", |side| self.text(side));
            let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
            let Some(names) = variables(bare).filter(|_| !bare.is_empty() && !assigns(bare)) else { return false };
            names.into_iter().for_each(|name| self.variables.use_number(name, node.start_byte()));
        }
        true
    }
}
