//! Detects text that has only one interpretation: the grammar, bash and people read it in the same
//! way. Other text is not analysed.

use std::ops::Range;

use tree_sitter::Node;

/// Returns whether people, bash and the grammar read the text alike: no control characters, unusual
/// whitespace or invisible characters, and no line continuation within a word.
pub(crate) fn is_plain(source: &str) -> bool {
    let odd = |character: char| match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{e0000}'..='\u{e0fff}' => true,
        character => character.is_control() || (!character.is_ascii() && character.is_whitespace()),
    };
    let broken = |(place, _): (usize, &str)| !matches!(source[..place].chars().next_back(), Some(' ' | '\t'));
    !source.chars().any(odd) && !source.match_indices("\\\n").any(broken)
}

/// Returns whether the text is a simple variable: `$name`, `$1`, `$?`.
pub(crate) fn is_variable(text: &str) -> bool {
    let Some(name) = text.strip_prefix('$') else { return false };
    let special = name.len() == 1 && "@*#?-$!0123456789".contains(name);
    special || (!name.starts_with(|first: char| first.is_ascii_digit()) && !name.is_empty() && is_name(name))
}

fn is_name(text: &str) -> bool {
    text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// Returns whether the text expands only one variable and evaluates nothing else: `${name}`,
/// `${#name}`, `${name:-word}`, `${name^^}`, `${name:0:8}`, `${name[@]}` and similar.
pub(crate) fn is_harmless_expansion(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("${").and_then(|text| text.strip_suffix('}')) else { return false };
    let inner = inner.strip_prefix('#').filter(|name| !name.is_empty()).unwrap_or(inner);
    let name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let rest = inner.trim_start_matches(name);
    let rest = if rest.len() == inner.len() { inner.strip_prefix(['@', '*', '?', '#']) } else { Some(subscripted(rest)) };
    let operator = |rest: &str| {
        let operators = [":-", ":+", "-", "+", "#", "%", "^", ",", "/"];
        rest.is_empty() || operators.iter().any(|operator| rest.starts_with(operator)) || is_range(rest)
    };
    let word = |rest: &str| rest.trim_start_matches(':').chars().all(|one| name(one) || "_./* ,+-#%^:".contains(one));
    rest.is_some_and(|rest| operator(rest) && word(rest))
}

/// Skips a subscript that bash does not evaluate: `[@]`, `[*]` or a number. Returns the remaining
/// text.
fn subscripted(rest: &str) -> &str {
    let inner = |rest: &str| rest.split_once(']').map(|(subscript, rest)| (subscript.len(), rest.len()));
    let Some((length, left)) = rest.strip_prefix('[').and_then(inner) else { return rest };
    let subscript = &rest[1..=length];
    let number = length > 0 && length < 19 && subscript.chars().all(|character| character.is_ascii_digit());
    if number || ["@", "*"].contains(&subscript) { &rest[rest.len() - left..] } else { rest }
}

/// Returns whether the text is the range of a substring expansion: `:0:8`, `:2`, `: -3`.
fn is_range(rest: &str) -> bool {
    let number = |text: &str| {
        let digits = text.trim_start_matches(' ');
        let digits = digits.strip_prefix('-').unwrap_or(digits);
        !digits.is_empty() && digits.chars().all(|character| character.is_ascii_digit())
    };
    rest.strip_prefix(':').is_some_and(|rest| rest.split(':').count() < 3 && rest.split(':').all(number))
}

/// Returns whether the grammar and bash agree on the end and the content of a here-document. Lines
/// with more than one here-document are not supported.
pub(crate) fn is_plain_heredoc(source: &str, parts: &[Node<'_>]) -> bool {
    let find = |kind: &str| parts.iter().find(|part| part.kind() == kind);
    let (Some(start), Some(body), Some(end)) = (find("heredoc_start"), find("heredoc_body"), find("heredoc_end")) else {
        return false;
    };
    let written = &source[start.byte_range()];
    let quoted = ['\'', '"'].into_iter().find_map(|quote| written.strip_prefix(quote)?.strip_suffix(quote));
    let delimiter = quoted.unwrap_or(written);
    if delimiter.is_empty() || !delimiter.chars().all(|character| character.is_ascii_alphanumeric() || character == '_') {
        return false;
    }
    // The content starts after the line that contains the operator.
    let Some(first) = source[start.end_byte()..].find('\n').map(|place| start.end_byte() + place + 1) else { return false };
    let tabs = find("<<-").is_some();
    let bare = |line: &str| if tabs { line.trim_start_matches('\t').to_owned() } else { line.to_owned() };
    let mut place = first;
    let mut ends = None;
    for line in source[first..].split_inclusive('\n') {
        if bare(line.strip_suffix('\n').unwrap_or(line)) == delimiter {
            ends = Some(place..place + line.len());
            break;
        }
        place += line.len();
    }
    let agreed = ends.is_some_and(|line| line.contains(&end.start_byte()) && line.end.saturating_sub(end.end_byte()) <= 1);
    let begins_first = source[start.end_byte()..first].find("<<").is_none() && body.start_byte() >= first.saturating_sub(1);
    agreed && begins_first && (quoted.is_some() || is_plain_text(source, *body))
}

/// Returns whether the grammar has a node for everything that bash expands in the here-document.
fn is_plain_text(source: &str, body: Node<'_>) -> bool {
    let holes: Vec<Range<usize>> =
        body.children(&mut body.walk()).filter(|part| part.kind() != "heredoc_content").map(|part| part.byte_range()).collect();
    let text = &source[body.byte_range()];
    let outside = |place: usize| !holes.iter().any(|hole| hole.contains(&(body.start_byte() + place)));
    !text.char_indices().any(|(place, character)| matches!(character, '$' | '`' | '\\') && outside(place))
}
