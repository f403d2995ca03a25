//! Matches patterns of rules against text that may be partly unknown.

/// Text as a list of characters. `None` stands for text of any length that is determined only when
/// the shell runs.
pub(crate) type Text = Vec<Option<char>>;

/// The result of matching a pattern. `Maybe`: the result depends on unknown text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    No,
    Maybe,
    Yes,
}

/// Converts a string, all of which is known.
pub(crate) fn known(text: &str) -> Text {
    text.chars().map(Some).collect()
}

/// Returns whether `pattern` matches `text`. `*` matches any text, `\` escapes the next character,
/// and `git status *` also matches `git status`. Unknown text is matched only by `*`; if `guessed`
/// is set, any part of the pattern may match it.
pub(crate) fn fits(pattern: &str, text: &[Option<char>], guessed: bool) -> bool {
    if pattern.strip_suffix(" *").is_some_and(|bare| fits(bare, text, guessed)) {
        return true;
    }
    let unknown = |place: usize| guessed && text.get(place) == Some(&None);
    // The positions in the text that the pattern can have reached so far: a flag for each position,
    // and the first and the last reached position.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let (mut first, mut last) = (0, 0);
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let wanted = match character {
            '*' => {
                reached[first..].fill(true);
                last = text.len();
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            character => character,
        };
        let mut next = vec![false; text.len() + 1];
        for place in (first..=last).filter(|place| reached[*place]) {
            // Unknown text at this position may match the character, or be empty.
            let mut place = place;
            while unknown(place) {
                next[place] = true;
                place += 1;
            }
            if text.get(place) == Some(&Some(wanted)) {
                next[place + 1] = true;
            }
        }
        let Some(lowest) = next.iter().position(|reached| *reached) else { return false };
        (first, last) = (lowest, next.iter().rposition(|reached| *reached).unwrap_or(lowest));
        reached = next;
    }
    reached[text.len()] || (first..=last).any(|place| reached[place] && (place..text.len()).all(unknown))
}

/// Returns whether `pattern` matches `text`, all of which is known.
pub(crate) fn wildcard(pattern: &str, text: &str) -> bool {
    fits(pattern, &known(text), false)
}

/// Escapes `text` into a pattern that matches only it.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
