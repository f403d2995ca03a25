//! Patterns of rules over text of which parts may be unknown.

/// Characters; none stands for any text that only the running shell knows.
pub type Text = Vec<Option<char>>;

/// Whether a pattern fits; what is unknown may make it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    No,
    Maybe,
    Yes,
}

pub fn known(text: &str) -> Text {
    text.chars().map(Some).collect()
}

/// Whether `pattern` fits `text`: `*` stands for any text, `\` takes the meaning from what follows, and `git status *` fits
/// `git status` too. What is unknown is fitted by `*` alone, and by anything if it is `guessed` to be what helps.
pub fn fits(pattern: &str, text: &[Option<char>], guessed: bool) -> bool {
    if pattern.strip_suffix(" *").is_some_and(|bare| fits(bare, text, guessed)) {
        return true;
    }
    let unknown = |place: usize| guessed && text.get(place) == Some(&None);
    // The places in the text that the pattern reaches so far: as flags, and the first and the last.
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
            // Some unknown text before it is skipped, or goes on after it.
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

/// Whether `pattern` fits text that is known.
pub fn wildcard(pattern: &str, text: &str) -> bool {
    fits(pattern, &known(text), false)
}

/// `text` as a pattern that fits nothing else.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
