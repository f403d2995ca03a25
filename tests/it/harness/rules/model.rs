//! Families and versions of models, from their names.

/// Returns the version that follows the name of a family: (4, 5) for `claude-sonnet-4-5-20250929`.
pub fn version(model: &str, family: &str) -> Option<(u32, u32)> {
    let model = model.to_lowercase();
    let rest = &model[model.find(family)? + family.len()..];
    let starts_with_digit = |segment: &&str| !segment.starts_with(|letter: char| letter.is_ascii_digit());
    let mut segments = rest.split(['-', '.', '@', ':', '_', '/']).skip_while(starts_with_digit);
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let major = digits(segments.next()?).parse().ok()?;
    // A longer number is a date.
    let minor = segments.next().filter(|segment| segment.len() <= 2).and_then(|segment| segment.parse().ok());
    Some((major, minor.unwrap_or(0)))
}

/// Returns whether the name contains one of these words.
pub fn is_any(model: &str, words: &[&str]) -> bool {
    let model = model.to_lowercase();
    words.iter().any(|word| model.contains(word))
}

/// Models of Mistral, on any server.
pub fn is_mistral(model: &str) -> bool {
    is_any(model, &["mistral", "codestral", "devstral", "magistral", "ministral", "mixtral", "pixtral"])
}

/// Returns whether a Claude model is at least of this version. The families without a number in
/// their name are newer than all versions.
pub fn claude_from(model: &str, least: (u32, u32)) -> bool {
    is_any(model, &["claude"])
        && match version(model, "claude-") {
            Some(version) => version >= least,
            None => is_any(model, &["fable", "mythos"]),
        }
}

/// Models of OpenAI with reasoning: o1, o3, o4, and GPT-5 and later.
pub fn reasons(model: &str) -> bool {
    is_o_series(model) || version(model, "gpt-").is_some_and(|version| version >= (5, 0)) && !is_any(model, &["gpt-oss"])
}

pub fn is_o_series(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["o1", "o3", "o4"].iter().any(|prefix| name == *prefix || name.starts_with(&format!("{prefix}-")))
}
