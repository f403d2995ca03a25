//! Conditions: `[ … ]` and `[[ … ]]`.

use tree_sitter::Node;

use super::read::Reader;
use super::word::Word;
use super::{Command, Nature};

impl Reader<'_> {
    pub fn test(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let double = text.starts_with("[[");
        let inner = text.trim_matches(['[', ']']);
        // A test of numbers reckons, and what is reckoned may run something; so does a test of a variable.
        let words = ["-v", "-R", "-o"].into_iter().chain(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"].into_iter().filter(|_| double));
        self.opaque |= inner.contains('[') || words.into_iter().any(|word| inner.contains(word));
        self.tested(node);
        self.push(Command::new(Nature::Plain, &text.split_ascii_whitespace().map(Word::literal).collect::<Vec<_>>(), text));
    }

    fn tested(&mut self, node: Node<'_>) {
        for part in self.parts(node, true) {
            match part.kind() {
                "unary_expression" | "binary_expression" | "parenthesized_expression" => {
                    self.within(|reader| reader.tested(part));
                }
                "test_operator" => {}
                "extglob_pattern" | "regex" => {
                    let plain = |character: char| character.is_ascii_alphanumeric() || "_-./*?^+".contains(character);
                    self.opaque |= !self.text(part).chars().all(plain);
                }
                _ => self.visit(part),
            }
        }
    }
}
