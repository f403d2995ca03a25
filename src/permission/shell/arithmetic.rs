//! Arithmetic of bash: it evaluates what variables hold, and runs commands in the subscripts that it finds there (bash(1),
//! ARITHMETIC EVALUATION). It is plain where all variables in it are known to hold numbers.

use std::ops::Range;

use super::runs::is_one_of;
use super::word::Word;

/// Variables of bash that evaluate what is assigned to them, or did in some version.
const INTEGERS: &str = "\
    BASHPID BASH_SUBSHELL EPOCHREALTIME EPOCHSECONDS EUID HISTCMD LINENO OPTIND PPID RANDOM SECONDS SRANDOM UID";

/// Those that hold a number whatever the environment says.
const NUMBERS: &str = "BASHPID EPOCHSECONDS LINENO OPTIND RANDOM SECONDS SRANDOM";

pub fn is_integer(name: &str) -> bool {
    is_one_of(INTEGERS, name)
}

/// What is known about the value of a variable.
#[derive(Clone, Copy, Debug, Default)]
pub struct Value {
    /// It is a number.
    pub number: bool,
    /// As a file's name, or the beginning of one, it leads to no device of the shell (`/dev/tcp`).
    pub file: bool,
    /// It begins as the name of such a device does.
    pub device: bool,
    /// It holds nothing that makes a command or a subscript.
    pub clean: bool,
}

impl Value {
    pub const NUMBER: Value = Value { number: true, file: true, device: false, clean: true };

    /// Of a word that is assigned.
    pub fn of(word: &Word) -> Value {
        let Some(text) = word.value() else {
            let begun = word.begun();
            let (known, device) = (!begun.is_empty(), may_be_device(&begun));
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

/// A pattern of file names relative to the directory, or below the home directory.
fn is_pattern(word: &Word) -> bool {
    word.raw.starts_with(['*', '?', '[']) || word.raw.starts_with("~/")
}

/// Whether a path that begins so may be a connection that the shell makes.
pub fn may_be_device(begun: &str) -> bool {
    ["/dev/tcp/", "/dev/udp/"].iter().any(|device| begun.starts_with(device) || device.starts_with(begun))
}

/// No part of a command or of a subscript.
pub fn is_clean(text: &str) -> bool {
    !text.contains(['$', '`', '[', '('])
}

/// The variables of an expression that consists of numbers, variables and operators only; `text` as it stands between `((` and
/// `))`. None for all others, also where bash would see no arithmetic.
pub fn variables(text: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut length = 1;
        match first {
            '(' => depth += 1,
            // Bash takes `((a) || (b))` for commands.
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

/// The variable at the beginning, and the length of how it is written: `name`, `$name`, `${name}`; no name where it is a number in
/// any case: `$#`, `$?`, `${#name}`.
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

/// Whether an expression assigns to variables.
pub fn assigns(text: &str) -> bool {
    let text = ["==", "!=", "<=", ">="].iter().fold(text.to_owned(), |text, operator| text.replace(operator, " "));
    text.contains('=') || text.contains("++") || text.contains("--")
}

/// The variable whose value a word begins with, if it is the only thing in it that the shell replaces: `$name`, `"${name%.c}"`.
pub fn leading_variable(raw: &str) -> Option<&str> {
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

/// What a line assigns to variables, and where it relies on that. Whether it may is known when all of the line is read.
#[derive(Debug, Default)]
pub struct Variables {
    assigned: Vec<Assigned>,
    used: Vec<Used>,
    /// Any variable may get any value.
    pub unknown: bool,
}

#[derive(Debug)]
struct Assigned {
    name: String,
    value: Value,
    /// Where it has happened before; empty where it may not have.
    before: Range<usize>,
}

#[derive(Debug)]
struct Used {
    name: String,
    place: usize,
    holds: fn(&Value) -> bool,
    /// It relies on the line to have assigned the value before.
    assigned: bool,
}

impl Variables {
    pub fn assign(&mut self, name: &str, value: Value, before: Range<usize>) {
        self.assigned.push(Assigned { name: name.into(), value, before });
    }

    /// Arithmetic at `place` evaluates the variable.
    pub fn use_number(&mut self, name: &str, place: usize) {
        if !is_one_of(NUMBERS, name) {
            self.used.push(Used { name: name.into(), place, holds: |value| value.number, assigned: true });
        }
    }

    /// The name of a file that is written at `place` begins with the variable.
    pub fn use_file(&mut self, name: &str, place: usize) {
        self.used.push(Used { name: name.into(), place, holds: |value| value.file, assigned: true });
    }

    /// The name of a file that is read at `place` begins with the variable.
    pub fn use_source(&mut self, name: &str, place: usize) {
        self.used.push(Used { name: name.into(), place, holds: |value| !value.device, assigned: false });
    }

    /// The variable is continued at `place` with what is not known.
    pub fn use_clean(&mut self, name: &str, place: usize) {
        self.used.push(Used { name: name.into(), place, holds: |value| value.clean, assigned: true });
    }

    /// Whether all that the line relies on is so.
    pub fn hold(&self) -> bool {
        self.used.iter().all(|used| {
            let mut assigned = self.assigned.iter().filter(|assigned| assigned.name == used.name);
            let known = !used.assigned || (!self.unknown && assigned.clone().any(|assigned| assigned.before.contains(&used.place)));
            known && assigned.all(|assigned| (used.holds)(&assigned.value))
        })
    }
}
