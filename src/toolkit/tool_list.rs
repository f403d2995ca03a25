//! Lists of tools that limit a subagent. An entry is a name, `PREFIX*`, or `!` and one of these.
//! The entries with `!` take precedence: `["*", "!bash"]` is all tools except `bash`.

pub(crate) fn allows(list: &[String], name: &str) -> bool {
    let excluded = |entry: &String| entry.strip_prefix('!').is_some_and(|entry| fits(entry, name));
    list.iter().any(|entry| fits(entry, name)) && !list.iter().any(excluded)
}

/// Returns a list of the tools that both lists allow; `None` is the list of all tools.
pub(crate) fn both(one: Option<Vec<String>>, other: Option<Vec<String>>) -> Option<Vec<String>> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    // Of two entries that fit a tool, one fits the other: keep the narrower one.
    let kept = |list: &[String], limits: &[String]| -> Vec<String> {
        let is_kept = |entry: &&String| entry.starts_with('!') || limits.iter().any(|limit| fits(limit, entry));
        list.iter().filter(is_kept).cloned().collect()
    };
    let mut both = [kept(one, other), kept(other, one)].concat();
    both.sort();
    both.dedup();
    Some(both)
}

/// Returns whether an entry without `!` fits a name, or fits all that another such entry fits.
fn fits(entry: &str, name: &str) -> bool {
    entry.strip_suffix('*').map_or_else(|| entry == name, |prefix| name.starts_with(prefix))
}
