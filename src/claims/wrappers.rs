//! Programs that run another program, which their arguments name.

use crate::claims::script_line::LineWord;

/// A program that runs the program in its arguments.
struct Wrapper {
    program: &'static str,
    /// Subcommand with which the program runs another, or an empty string.
    subcommand: &'static str,
    /// Options that take the next word as their value. Other options take none.
    value_options: &'static str,
    /// Number of words between the options and the other program.
    operands: usize,
}

const fn row(program: &'static str, subcommand: &'static str, value_options: &'static str, operands: usize) -> Wrapper {
    Wrapper { program, subcommand, value_options, operands }
}

const WRAPPERS: &[Wrapper] = &[
    row("env", "", "-u -C --chdir --unset", 0),
    row("cross-env", "", "", 0),
    row("timeout", "", "-k -s --kill-after --signal", 1),
    row("gtimeout", "", "-k -s", 1),
    row("time", "", "-f -o", 0),
    row("nice", "", "-n", 0),
    row("ionice", "", "-c -n", 0),
    row("nohup", "", "", 0),
    row("setsid", "", "", 0),
    row("exec", "", "-a", 0),
    row("command", "", "", 0),
    row("stdbuf", "", "-i -o -e", 0),
    row("unbuffer", "", "", 0),
    row("caffeinate", "", "-t -w", 0),
    row("sudo", "", "-u -g -C -D", 0),
    row("doas", "", "-u", 0),
    row("xvfb-run", "", "-n -s", 0),
    row("npx", "", "-p --package", 0),
    row("bunx", "", "", 0),
    row("pnpx", "", "", 0),
    row("uvx", "", "--from --with -p --python", 0),
    row("npm", "exec", "-p --package", 0),
    row("npm", "x", "-p --package", 0),
    row("pnpm", "exec", "", 0),
    row("pnpm", "dlx", "", 0),
    row("yarn", "exec", "", 0),
    row("yarn", "dlx", "", 0),
    row("bun", "x", "", 0),
    row("uv", "run", "--with --python -p --extra --group --project --directory --package --env-file", 0),
    row("poetry", "run", "", 0),
    row("pipenv", "run", "", 0),
    row("pdm", "run", "", 0),
    row("rye", "run", "", 0),
    row("pipx", "run", "--spec", 0),
    row("coverage", "run", "--source --omit --include --rcfile", 0),
    row("bundle", "exec", "", 0),
    row("mise", "exec", "", 0),
    row("mise", "x", "", 0),
    row("rustup", "run", "", 1),
];

/// Returns the words of the program that is run in the end, without variables before it.
pub(crate) fn unwrapped(mut words: &[LineWord]) -> &[LineWord] {
    loop {
        words = after_assignments(words);
        let Some((first, arguments)) = words.split_first() else { return words };
        let next = match base_name(&first.text) {
            python if is_python(python) => module(arguments),
            "php" => arguments.split_first().filter(|(script, _)| script.text.contains("bin/")).map(|_| arguments),
            program => WRAPPERS.iter().filter(|row| row.program == program).find_map(|row| row.inner(arguments)),
        };
        match next {
            Some(inner) if inner.len() < words.len() => words = inner,
            _ => return words,
        }
    }
}

impl Wrapper {
    /// Returns the words of the program that the wrapper runs.
    fn inner<'a>(&self, arguments: &'a [LineWord]) -> Option<&'a [LineWord]> {
        let mut rest = arguments;
        if !self.subcommand.is_empty() {
            rest = arguments.split_first().filter(|(word, _)| word.text == self.subcommand)?.1;
        }
        while let Some((word, others)) = rest.split_first().filter(|(word, _)| word.text.starts_with('-')) {
            rest = others;
            if self.value_options.split(' ').any(|option| option == word.text) {
                rest = rest.split_first()?.1;
            }
            if word.text == "--" {
                break;
            }
            // The program is the text of this option, or none runs: `command -v`, `npx -c`.
            if ["-S", "--split-string", "-v", "-V", "-c", "--call"].contains(&word.text.as_str()) {
                return None;
            }
        }
        rest.get(self.operands..).filter(|rest| !rest.is_empty())
    }
}

/// Returns the name of the program without its directory.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns whether the program is a Python interpreter: `python`, `python3`, `python3.12`, `py`.
pub(crate) fn is_python(program: &str) -> bool {
    let version = program.strip_prefix("python").or_else(|| program.strip_prefix("pypy"));
    program == "py" || version.is_some_and(|rest| rest.chars().all(|character| character.is_ascii_digit() || character == '.'))
}

/// Returns the words after `-m` of Python.
fn module(arguments: &[LineWord]) -> Option<&[LineWord]> {
    let mut rest = arguments;
    while let Some((word, others)) = rest.split_first() {
        rest = others;
        match word.text.as_str() {
            "-m" => return Some(rest),
            "-W" | "-X" => rest = rest.split_first()?.1,
            "-c" => return None,
            option if option.starts_with('-') => {}
            _ => return None,
        }
    }
    None
}

fn after_assignments(words: &[LineWord]) -> &[LineWord] {
    let is_assignment = |word: &LineWord| {
        let name = word.text.split_once('=').map(|(name, _)| name).unwrap_or_default();
        let mut characters = name.chars();
        let starts = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        starts && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    let count = words.iter().take_while(|word| is_assignment(word)).count();
    words.get(count..).unwrap_or_default()
}
