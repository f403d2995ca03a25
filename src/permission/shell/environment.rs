//! Environment variables: their notation as assignments before a command, and their effect on
//! programs.

use super::arithmetic::is_integer;
use super::effect::Effect;
use super::word::is_one_of;

/// Variables that only affect the output of programs.
const HARMLESS: &str = "\
    CI CLICOLOR COLUMNS DEBUG FORCE_COLOR LANG LC_ALL LC_CTYPE LINES NODE_ENV NO_COLOR RUST_BACKTRACE RUST_LOG TERM TZ VERBOSE";

/// Parts of the names of variables that select programs, their search paths or their behaviour. A
/// part in [`SENSITIVE_PARTS`] must be a complete word between underscores.
const SENSITIVE: &str = "\
    ASKPASS BASH BROWSER CARGO CMD COMMAND CONFIG DYLD EDITOR EXEC FLAGS HOME HOOK IFS LESS MAKE NODE OPTIONS OPTS PAGER PATH \
    PERL PRELOAD PROMPT PROXY PS4 PYTHON RUBY RUST SHELL SSH VISUAL WRAPPER";
const SENSITIVE_PARTS: &str = "AR CC CXX ENV GIT LD MAN OPT RSH TAR UNZIP ZIPOPT";

/// Variables that contain compiler options. The options are harmless if they neither name nor load
/// a program.
const COMPILER_FLAGS: &str = "RUSTFLAGS RUSTDOCFLAGS";

/// Returns the effect of setting a variable; `None` if programs ignore it. `given`: the variable is
/// passed to programs, not only set in the shell. `value`: the value of the variable, if known.
pub(crate) fn variable(name: &str, given: bool, value: Option<&str>) -> Option<Effect> {
    let upper = name.to_ascii_uppercase();
    let plain_flags = |flags: &str| {
        let plain = |character: char| character.is_ascii_alphanumeric() || " -_=,+.:".contains(character);
        flags.chars().all(plain) && !["link", "codegen-backend", "-Z"].iter().any(|part| flags.contains(part))
    };
    if is_integer(name) {
        Some(Effect::Opaque)
    } else if is_one_of(HARMLESS, name) || (!given && upper != name && !upper.contains("PROXY")) {
        None
    } else if name == "CARGO_TARGET_DIR" || (is_one_of(COMPILER_FLAGS, name) && value.is_some_and(plain_flags)) {
        Some(Effect::SideEffect)
    } else if SENSITIVE.split(' ').any(|part| upper.contains(part)) || upper.split('_').any(|part| is_one_of(SENSITIVE_PARTS, part))
    {
        Some(Effect::Opaque)
    } else {
        Some(Effect::SideEffect)
    }
}

/// Formats a variable as an assignment in shell syntax.
pub(crate) fn assignment(name: &str, value: &str) -> String {
    format!("{name}='{}' ", value.replace('\'', r"'\''"))
}

/// Returns whether a variable selects the programs that run or changes their behaviour, so that
/// commands depend on its value.
pub(crate) fn decides_what_runs(name: &str) -> bool {
    variable(name, true, None) == Some(Effect::Opaque)
}
