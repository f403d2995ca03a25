//! The check commands that a file such as AGENTS.md declares.

use crate::limits;

/// Titles of the section of AGENTS.md that declares check commands, in lower case.
const TITLES: [&str; 5] = ["verify", "verification", "checks", "check commands", "test commands"];

/// Returns the commands below a heading with one of the [`TITLES`], up to the next heading: each
/// line of the code blocks, without comments and a leading `$ `. Without a code block: the list
/// items that consist of one code span.
pub(crate) fn declared_checks(text: &str) -> Vec<String> {
    let (mut block, mut items) = (Vec::new(), Vec::new());
    let (mut in_section, mut fence) = (false, None);
    let mut continued = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        match fence {
            Some(end) if trimmed.starts_with(end) && trimmed.trim_start_matches(['`', '~']).is_empty() => fence = None,
            Some(_) if in_section => {
                let command = if continued.is_empty() { trimmed.trim_start_matches("$ ") } else { trimmed };
                match command.strip_suffix('\\') {
                    Some(start) => continued += start,
                    None if continued.is_empty() && command.starts_with('#') => {}
                    None => block.push(std::mem::take(&mut continued) + command),
                }
            }
            Some(_) => {}
            None if trimmed.starts_with("```") || trimmed.starts_with("~~~") => fence = Some(&trimmed[..3]),
            None if line.starts_with('#') => {
                let title = line.trim_matches('#').trim().trim_end_matches(':').to_lowercase();
                in_section = TITLES.contains(&title.as_str());
            }
            None if in_section => items.extend(code_item(trimmed).map(String::from)),
            None => {}
        }
    }
    let mut commands = if block.is_empty() { items } else { block };
    commands.retain(|command| !command.is_empty());
    commands.truncate(limits::VERIFY_COMMANDS_MAX);
    commands
}

/// Returns the code of a list item that consists of one code span; `None` for any other line.
fn code_item(line: &str) -> Option<&str> {
    let item = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark))?;
    let code = item.trim().strip_prefix('`')?.strip_suffix('`')?;
    (!code.contains('`')).then(|| code.trim())
}
