//! Wrappers: programs that run the command given after their options, such as `env` and `xargs`.

use super::effect::Effect;
use super::environment::variable;
use super::runs::Runs;
use super::word::{Word, is_one_of};

/// A program that runs the command given after its options.
pub(crate) struct Wrapper {
    name: &'static str,
    /// Options with a value, which is in the same word or in the next word.
    valued: &'static str,
    flags: &'static str,
    /// Number of operands before the command.
    operands: usize,
    /// True if variable assignments can precede the command.
    variables: bool,
    /// True if the program has its own effect, in addition to running the command.
    more: bool,
}

const BARE: Wrapper = Wrapper { name: "", valued: "", flags: "", operands: 0, variables: false, more: false };

const WRAPPERS: &[Wrapper] = &[
    Wrapper { name: "builtin", ..BARE },
    Wrapper { name: "busybox", ..BARE },
    Wrapper { name: "command", flags: "-p", ..BARE },
    Wrapper { name: "coproc", ..BARE },
    Wrapper { name: "doas", valued: "-u", flags: "-n", more: true, ..BARE },
    Wrapper { name: "eatmydata", ..BARE },
    Wrapper { name: "env", valued: "-u --unset", flags: "-i - --ignore-environment -0 --null -v", variables: true, ..BARE },
    Wrapper { name: "exec", valued: "-a", flags: "-c -l -cl", ..BARE },
    Wrapper { name: "ionice", valued: "-c -n --class --classdata", flags: "-t", ..BARE },
    Wrapper { name: "nice", valued: "-n --adjustment", ..BARE },
    Wrapper { name: "nohup", ..BARE },
    Wrapper { name: "setsid", flags: "-c -f -w --ctty --fork --wait", ..BARE },
    Wrapper { name: "stdbuf", valued: "-i -o -e --input --output --error", ..BARE },
    Wrapper {
        name: "sudo",
        valued: "-u -g -p --user --group --prompt",
        flags: "-n -E -H -S -k -b --non-interactive --set-home --stdin",
        variables: true,
        more: true,
        ..BARE
    },
    Wrapper { name: "time", flags: "-p", ..BARE },
    Wrapper {
        name: "timeout",
        valued: "-s -k --signal --kill-after",
        flags: "-v --verbose --foreground --preserve-status",
        operands: 1,
        ..BARE
    },
    Wrapper { name: "toybox", ..BARE },
    Wrapper {
        name: "xargs",
        valued: "-n -P -L -d -s -I -E --max-args --max-procs --max-lines --delimiter",
        flags: "-0 -r -t -x -0r -r0 --null --no-run-if-empty --verbose --exit",
        more: true,
        ..BARE
    },
];

pub(crate) fn wrapper(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}

/// Returns whether the program runs the command given after its options.
pub(crate) fn is_wrapper(name: &str) -> bool {
    wrapper(name).is_some()
}

/// Analyses the arguments of a wrapper. Adds the effects of the variables that the wrapper sets to
/// `effects`.
pub(crate) fn wrapped(wrapper: &Wrapper, arguments: &[Word], effects: &mut Vec<Effect>) -> Runs {
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let Some(option) = word.value() else { break };
        let value = match option.split_once('=') {
            Some((name, _)) if is_one_of(wrapper.valued, name) => true,
            _ => {
                option.len() > 2
                    && wrapper.valued.split_whitespace().any(|valued| !valued.starts_with("--") && option.starts_with(valued))
            }
        };
        if wrapper.name == "xargs" && option.starts_with("-I") {
            // The option names the placeholder, which may be any word of the command.
            let replaced = if option == "-I" { after.first().and_then(Word::value) } else { Some(option[2..].to_owned()) };
            if replaced.as_deref() != Some("{}") {
                return Runs::Unknown;
            }
        }
        match option.as_str() {
            "--" => {
                rest = after;
                break;
            }
            "-v" | "-V" if wrapper.name == "command" => return Runs::Itself,
            option if is_one_of(wrapper.valued, option) => rest = after.get(1..).unwrap_or_default(),
            option if is_one_of(wrapper.flags, option) || value => rest = after,
            option if wrapper.name == "nice" && option.strip_prefix('-').is_some_and(|number| number.parse::<u8>().is_ok()) => {
                rest = after
            }
            option if option.starts_with('-') && option != "-" => return Runs::Unknown,
            _ => break,
        }
    }
    let operands = &rest[..wrapper.operands.min(rest.len())];
    if operands.iter().any(|operand| operand.value().is_none()) {
        return Runs::Unknown;
    }
    rest = &rest[operands.len()..];
    while let (true, Some((word, after))) = (wrapper.variables, rest.split_first()) {
        let known_prefix = word.known_prefix();
        let Some((name, _)) = known_prefix.split_once('=') else { break };
        let value = word.value().and_then(|value| value.split_once('=').map(|(_, value)| value.to_owned()));
        effects.extend(variable(name, true, value.as_deref()));
        rest = after;
    }
    match (rest.is_empty(), wrapper.name) {
        (true, _) => Runs::Itself,
        (false, "xargs") => Runs::Others(vec![rest.iter().map(|word| word.without("{}")).chain([Word::unknown()]).collect()]),
        (false, _) if wrapper.more => Runs::Others(vec![rest.to_vec()]),
        (false, _) => Runs::Only(rest.to_vec()),
    }
}
