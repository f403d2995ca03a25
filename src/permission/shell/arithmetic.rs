//! Bash arithmetic: bash evaluates the values of the variables in an expression, and runs commands
//! in subscripts that the values contain (bash(1), ARITHMETIC EVALUATION). An expression is safe if
//! all its variables are known to hold numbers.

use std::ops::Range;

use super::word::{Word, is_one_of};

/// Bash variables whose assigned values bash evaluates as arithmetic, at least in some versions.
const INTEGERS: &str = "\
    BASHPID BASH_SUBSHELL EPOCHREALTIME EPOCHSECONDS EUID HISTCMD LINENO OPTIND PPID RANDOM SECONDS SRANDOM UID";

/// Variables that always hold a number, whatever the environment contains.
const NUMBERS: &str = "BASHPID EPOCHSECONDS LINENO OPTIND RANDOM SECONDS SRANDOM";

/// Variables that bash itself sets, so that an assignment in the command line does not determine
/// their value.
const SET_BY_SHELL: &str = "_ FUNCNAME BASH_ARGV BASH_ARGV0 BASH_COMMAND BASH_LINENO BASH_SOURCE COPROC COPROC_PID DIRSTACK \
     GROUPS MAPFILE OLDPWD OPTARG PIPESTATUS PWD REPLY";

/// Returns whether bash evaluates values assigned to the variable as arithmetic.
pub(crate) fn is_integer(name: &str) -> bool {
    is_one_of(INTEGERS, name)
}

/// Known properties of the value of a variable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Value {
    /// True if the value is a number.
    pub number: bool,
    /// True if the value, as a file name or its beginning, does not name a network device of the
    /// shell (`/dev/tcp`).
    pub file: bool,
    /// True if the value is a prefix of such a device name or starts with one.
    pub device: bool,
    /// True if the value contains no part of a command or subscript.
    pub clean: bool,
}

impl Value {
    pub(crate) const NUMBER: Value = Value { number: true, file: true, device: false, clean: true };

    /// Returns the properties of an assigned word.
    pub(crate) fn from_word(word: &Word) -> Value {
        let Some(text) = word.value() else {
            let known_prefix = word.known_prefix();
            let (known, device) = (!known_prefix.is_empty(), may_be_device(&known_prefix));
            return Value { file: is_pattern(word) || (known && !device), device: known && device, ..Value::default() };
        };
        let digits = text.strip_prefix('-').unwrap_or(&text);
        if !digits.is_empty() && digits.len() < 19 && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Value::NUMBER;
        }
        let (known, device) = (!text.is_empty(), may_be_device(&text));
        Value { number: false, file: known && !device, device: known && device, clean: is_clean(&text) }
    }
}

/// Returns whether a word is a glob relative to the working directory, or a path below the home
/// directory.
fn is_pattern(word: &Word) -> bool {
    word.raw.starts_with(['*', '?', '[']) || word.raw.starts_with("~/")
}

/// Returns whether a path with this prefix may be one of the shell's network devices.
pub(crate) fn may_be_device(known_prefix: &str) -> bool {
    ["/dev/tcp/", "/dev/udp/"].iter().any(|device| known_prefix.starts_with(device) || device.starts_with(known_prefix))
}

/// Returns whether the text contains no part of a command or subscript.
pub(crate) fn is_clean(text: &str) -> bool {
    !text.contains(['$', '`', '[', '('])
}

/// Returns the variables in an arithmetic expression that consists only of numbers, variables and
/// operators. `text` is the text between `((` and `))`. Returns `None` for other expressions, and
/// for text that bash would not parse as arithmetic.
pub(crate) fn variables(text: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut length = 1;
        match first {
            '(' => depth += 1,
            // Bash parses `((a) || (b))` as commands.
            ')' => depth = depth.checked_sub(1)?,
            ' ' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '&' | '|' | '^' | '~' | '?' | ':' | ',' => {}
            digit if digit.is_ascii_digit() => {
                length = rest.find(|next: char| !next.is_ascii_alphanumeric()).unwrap_or(rest.len());
                rest[..length].bytes().all(|digit| digit.is_ascii_digit()).then_some(())?;
            }
            _ => {
                let (name, whole) = variable(rest)?;
                names.extend(name);
                length = whole;
            }
        }
        rest = &rest[length..];
    }
    (depth == 0).then_some(names)
}

/// Returns the variable at the beginning of the text, and the length of its notation: `name`,
/// `$name`, `${name}`. No name is returned for notations that always yield a number: `$#`, `$?`,
/// `${#name}`.
fn variable(text: &str) -> Option<(Option<&str>, usize)> {
    let name = |text: &str| text.find(|next: char| !is_name(next)).unwrap_or(text.len());
    let is_variable = |text: &str| !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit());
    let (start, end, counts) = if text.starts_with("${#") {
        (3, 1, true)
    } else if text.starts_with("${") {
        (2, 1, false)
    } else if text.starts_with("$#") || text.starts_with("$?") {
        return Some((None, 2));
    } else {
        (usize::from(text.starts_with('$')), 0, false)
    };
    let length = name(&text[start..]);
    let found = &text[start..start + length];
    let whole = start + length + end;
    let closed = end == 0 || text[start + length..].starts_with('}');
    (is_variable(found) && closed).then_some((Some(found).filter(|_| !counts), whole))
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Returns whether an expression assigns to variables.
pub(crate) fn assigns(text: &str) -> bool {
    let text = ["==", "!=", "<=", ">="].iter().fold(text.to_owned(), |text, operator| text.replace(operator, " "));
    text.contains('=') || text.contains("++") || text.contains("--")
}

/// Returns the variable that a word starts with, if the variable is the only expansion in the word:
/// `$name`, `"${name%.c}"`.
pub(crate) fn leading_variable(raw: &str) -> Option<&str> {
    let inner = raw.trim_start_matches('"');
    if raw.matches('$').count() != 1 || raw.contains("dev/") || raw.contains(['`', '\'', '\\']) {
        return None;
    }
    let inner = inner.strip_prefix('$')?;
    let braced = inner.strip_prefix('{');
    let text = braced.unwrap_or(inner);
    let length = text.find(|next: char| !is_name(next)).unwrap_or(text.len());
    let (name, rest) = text.split_at(length);
    let whole = braced.is_none() || rest.starts_with('}') || rest.starts_with('%');
    (whole && !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit())).then_some(name)
}

/// The variable assignments in a command line, and the variable uses that rely on properties of the
/// values. The uses are checked after the complete line has been read.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    assigned: Vec<Assignment>,
    used: Vec<VariableUse>,
    /// True if any variable may have been assigned an unknown value.
    pub unknown: bool,
}

#[derive(Debug)]
struct Assignment {
    name: String,
    value: Value,
    /// The part of the line in which the assignment has certainly happened; may be empty.
    before: Range<usize>,
}

#[derive(Debug)]
struct VariableUse {
    name: String,
    place: usize,
    holds: fn(&Value) -> bool,
    /// True if the use requires an earlier assignment in the line.
    assigned: bool,
}

impl Variables {
    /// Records an assignment. `before` is the part of the line in which the assignment has
    /// certainly happened.
    pub(crate) fn assign(&mut self, name: &str, value: Value, before: Range<usize>) {
        self.assigned.push(Assignment { name: name.into(), value, before });
    }

    /// Records that arithmetic at `place` evaluates the variable.
    pub(crate) fn use_number(&mut self, name: &str, place: usize) {
        if !is_one_of(NUMBERS, name) {
            self.use_as(name, place, |value| value.number, true);
        }
    }

    /// Records a use of a variable whose value must satisfy `holds`. A variable that bash itself
    /// sets never satisfies `holds`, because its value is unknown.
    fn use_as(&mut self, name: &str, place: usize, holds: fn(&Value) -> bool, assigned: bool) {
        let set_by_shell = is_one_of(SET_BY_SHELL, name);
        let holds = if set_by_shell { |_: &Value| false } else { holds };
        self.used.push(VariableUse { name: name.into(), place, holds, assigned: assigned || set_by_shell });
    }

    /// Records that the name of a file written at `place` starts with the variable.
    pub(crate) fn use_file(&mut self, name: &str, place: usize) {
        self.use_as(name, place, |value| value.file, true);
    }

    /// Records that the name of a file read at `place` starts with the variable.
    pub(crate) fn use_source(&mut self, name: &str, place: usize) {
        // `$_` is the last argument of the previous command.
        let known = name != "_";
        let holds = if known { |value: &Value| !value.device } else { |_: &Value| false };
        self.used.push(VariableUse { name: name.into(), place, holds, assigned: !known });
    }

    /// Records that unknown text is appended to the variable at `place`.
    pub(crate) fn use_clean(&mut self, name: &str, place: usize) {
        self.use_as(name, place, |value| value.clean, true);
    }

    /// Returns whether the assignments satisfy all recorded uses.
    pub(crate) fn are_safe(&self) -> bool {
        self.used.iter().all(|used| {
            let mut assigned = self.assigned.iter().filter(|assigned| assigned.name == used.name);
            let known = !used.assigned || (!self.unknown && assigned.clone().any(|assigned| assigned.before.contains(&used.place)));
            known && assigned.all(|assigned| (used.holds)(&assigned.value))
        })
    }
}
