//! Analyses redirections: the files that the shell reads and writes for a command.

use tree_sitter::Node;

use super::arithmetic::{leading_variable, may_be_device};
use super::command::ShellCommand;
use super::effect::Effect;
use super::grammar::is_literal;
use super::plain::is_plain_heredoc;
use super::read::ScriptReader;
use super::word::Word;

impl ScriptReader<'_> {
    /// Analyses a redirection. Words of the command that the grammar assigns to the redirection are
    /// added to `words`.
    pub(crate) fn redirect(&mut self, node: Node<'_>, words: &mut Vec<Word>) {
        let parts = self.parts(node, true);
        self.opaque |=
            parts.iter().find(|part| !part.is_named()).is_some_and(|part| is_named_descriptor(self.source, part.start_byte()));
        if node.kind() == "heredoc_redirect"
            && let Some(before) = node.prev_sibling()
            && self.source[before.end_byte()..node.start_byte()].trim_matches([' ', '\t']) == "-"
        {
            words.push(Word::literal("-"));
        }
        match node.kind() {
            "file_redirect" => {
                let operator = parts.iter().find(|part| !part.is_named()).map_or("", |part| part.kind());
                let mut targets =
                    parts.iter().filter(|part| is_literal(part.kind())).map(|part| self.word(*part)).collect::<Vec<_>>();
                let first = if targets.is_empty() { None } else { Some(targets.remove(0)) };
                self.opaque |=
                    parts.iter().any(|part| part.is_named() && !is_literal(part.kind()) && part.kind() != "file_descriptor");
                if let Some(target) = first {
                    self.target(operator, &target, node);
                }
                words.extend(targets);
            }
            "heredoc_redirect" => {
                self.opaque |= !is_plain_heredoc(self.source, &parts);
                for part in parts {
                    // Words after the delimiter probably belong to the command.
                    self.opaque |= is_literal(part.kind());
                    match part.kind() {
                        "file_redirect" | "herestring_redirect" => self.within(|reader| reader.redirect(part, words)),
                        "heredoc_body" => self.holes(part, &mut Vec::new()),
                        _ => self.visit(part),
                    }
                }
            }
            _ => parts.into_iter().for_each(|part| self.visit(part)),
        }
    }

    /// Analyses the target file of a redirection.
    fn target(&mut self, operator: &str, target: &Word, node: Node<'_>) {
        let name = target.value();
        let is = |test: fn(&str) -> bool| name.as_deref().is_some_and(test);
        // The shell opens network connections for some file names, such as `/dev/tcp/HOST/PORT`.
        let known_prefix = target.known_prefix();
        let relative = target.raw.starts_with(['*', '?', '[']) || target.raw.starts_with("~/");
        if name.is_some() || !known_prefix.is_empty() {
            self.opaque |= may_be_device(&known_prefix)
                && (name.is_none() || known_prefix.starts_with("/dev/tcp/") || known_prefix.starts_with("/dev/udp/"));
        } else if let Some(variable) = leading_variable(&target.raw) {
            match operator {
                "<" => self.variables.use_source(variable, node.start_byte()),
                _ => self.variables.use_file(variable, node.start_byte()),
            }
        } else {
            self.opaque |= !relative && operator != "<";
        }
        let harmless = match operator {
            // Reading an unknown file does not write anything.
            "<" if name.is_none() => return self.push(ShellCommand::new(Effect::SideEffect, &[], self.text(node))),
            "<" | "<&" | "<&-" | ">&-" => true,
            ">&" => is(|name| name.chars().all(|digit| digit.is_ascii_digit() || digit == '-') || name == "/dev/null"),
            _ => is(|name| ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&name)),
        };
        if !harmless {
            self.push(ShellCommand::new(Effect::SideEffect, &[], self.text(node)).with_write(name));
        }
    }
}

/// Returns whether the redirection with its operator at `place` assigns its descriptor to a
/// variable: `{name}>`, `{name[x]}>`.
fn is_named_descriptor(source: &str, place: usize) -> bool {
    let Some(before) = source[..place].strip_suffix('}') else { return false };
    let braced = before.rfind('{').is_some_and(|brace| before[..brace].ends_with('$'));
    !braced
}
