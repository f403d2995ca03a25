//! Splits DOT source into tokens with line numbers. Pure.

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// An unquoted identifier, keyword or number.
    Id(String),
    /// A quoted or HTML string, which is never a keyword.
    Text(String),
    /// One of `{}[]=;,:+`.
    Sign(char),
    /// `->`
    Arrow,
    /// `--`
    Dashes,
    /// The end of the source.
    End,
}

/// Returns the tokens of a source with their line numbers, from 1. The last token is
/// [`Token::End`]. The error message contains the line number.
pub(crate) fn tokens(source: &str) -> Result<Vec<(Token, usize)>, String> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = source.trim_start_matches('\u{feff}');
    let mut begins_line = true;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            '#' if begins_line => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => {
                (None, rest.find("*/").map(|end| end + 2).ok_or_else(|| format!("line {line}: the comment is not closed"))?)
            }
            '-' if rest.starts_with("->") => (Some(Token::Arrow), 2),
            '-' if rest.starts_with("--") => (Some(Token::Dashes), 2),
            '"' => quoted(rest)
                .map(|(text, length)| (Some(Token::Text(text)), length))
                .ok_or_else(|| format!("line {line}: the quoted string is not closed"))?,
            '<' => html(rest)
                .map(|(text, length)| (Some(Token::Text(text)), length))
                .ok_or_else(|| format!("line {line}: the HTML string is not closed by >"))?,
            '{' | '}' | '[' | ']' | '=' | ';' | ',' | ':' | '+' => (Some(Token::Sign(first)), 1),
            _ if is_word(first) || begins_number(rest) => {
                let number = begins_number(rest);
                let part = |character: char| is_word(character) || (number && character == '.');
                let after = &rest[first.len_utf8()..];
                let length = first.len_utf8() + after.find(|character| !part(character)).unwrap_or(after.len());
                (Some(Token::Id(rest[..length].to_owned())), length)
            }
            other => return Err(format!("line {line}: unexpected {other:?}; quote names with such characters")),
        };
        let text = &rest[..length];
        begins_line = text.contains('\n') || (begins_line && first.is_whitespace());
        tokens.extend(token.map(|token| (token, line)));
        line += text.matches('\n').count();
        rest = &rest[length..];
    }
    tokens.push((Token::End, line));
    Ok(tokens)
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || !character.is_ascii()
}

/// Returns whether the text begins with a number: `1`, `-1`, `.1`, `-.1`.
fn begins_number(rest: &str) -> bool {
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    digits.strip_prefix('.').unwrap_or(digits).starts_with(|character: char| character.is_ascii_digit())
}

/// Returns the text of a quoted string and its length in the source; `None` if it has no end. Only
/// `\"` and escaped line breaks are resolved; labels resolve the other escapes.
fn quoted(rest: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, at + 1)),
            '\\' => match characters.next()?.1 {
                '"' => text.push('"'),
                '\n' => {}
                other => text.extend(['\\', other]),
            },
            other => text.push(other),
        }
    }
    None
}

/// Returns the text of an HTML-like label without its tags, and its length in the source; `None` if
/// it has no end.
fn html(rest: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let (mut depth, mut tag) = (0usize, 0);
    for (at, character) in rest.char_indices() {
        match character {
            '<' => {
                depth += 1;
                tag = at;
            }
            '>' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    let text = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&nbsp;", " "), ("&amp;", "&")]
                        .iter()
                        .fold(text, |text, (entity, character)| text.replace(entity, character));
                    return Some((text.trim().to_owned(), at + 1));
                }
                let name = rest[tag + 1..at].trim_matches('/').to_ascii_lowercase();
                match name.split_whitespace().next() {
                    Some("br" | "tr") if !text.trim().is_empty() && !text.ends_with('\n') => text.push('\n'),
                    Some("td") if !text.ends_with(['\n', ' ']) && !text.is_empty() => text.push(' '),
                    _ => {}
                }
            }
            other if depth == 1 && !(other.is_whitespace() && text.ends_with(char::is_whitespace)) => {
                text.push(if other.is_whitespace() { ' ' } else { other });
            }
            _ => {}
        }
    }
    None
}
