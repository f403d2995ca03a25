//! The pages of docs that repeat facts of the program: docs/SETTINGS.md from the schema of the
//! settings, docs/CLI.md from the help of the commands. Tests of the library compare
//! docs/TROUBLESHOOTING.md with the error table. The example blocks of all pages are run by tests/docs/run.

mod command_line;
mod settings;

/// Breaks text into lines of at most 100 columns.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        match line.is_empty() {
            true => line.push_str(word),
            false if line.chars().count() + 1 + word.chars().count() <= 100 => *line += &format!(" {word}"),
            false => lines.push(word.into()),
        }
    }
    lines.join("\n")
}
