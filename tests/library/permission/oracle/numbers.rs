//! Assignments and arithmetic in the real bash: an allowed command line never evaluates a value
//! from a file as arithmetic.

use std::cell::Cell;

use nuncio::internal::config::Policy;
use nuncio::internal::options::Mode;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{Bash, cases, judged, rules};

/// Assignment statements. The file `payload` holds an array reference whose subscript runs `rm`.
const ASSIGN: &[&str] = &[
    "n=1",
    "n=2",
    "m=3",
    "n=$m",
    "m=$n",
    "n=$((m))",
    "n=$((n+1))",
    "m=${#x}",
    "n=$#",
    "n+=2",
    "m+=$n",
    "n=x",
    "n=$x",
    "m=$x",
    "n=1 m=2",
    "n=1 m=$x",
    "n+=$x",
    "export n=1",
    "export n=$x",
    "export n",
    "unset n",
    "n=1 true",
    "n=$x true",
    "read -r n < payload",
    "read -r m n < payload",
    "read -r -a n < payload",
    "mapfile -t n < payload",
    "readarray m < payload",
    "printf -v n %s \"$x\"",
    "n=(1 2)",
    "n=($x)",
    "n=([0]=1)",
    "n=($x [0]=1)",
    "arr=(\"$x\")",
    "n=${arr[0]}",
    "n=${n:-$x}",
    "n=$(cat payload)",
    "local n=1",
    "local n=$x",
    "eval 'n=$x'",
    "eval n=1",
    "command read -r n < payload",
    "builtin read n < payload",
    "getopts a n",
    "RANDOM=$x",
    "n=$RANDOM",
    "set -- \"$x\"",
    "n=$1",
    "n=\"$x\"",
    "n='x'",
    "n=\"1\"",
    "n=08",
    "n=-1",
    "IFS= read -r n < payload",
    "n=~",
    "n=*",
    "trap 'n=$x' DEBUG",
    "source ./values",
    "true <<< $((n=5))",
    "((n=5))",
    "((n=m))",
    "n=1 m=$n",
    "n=x; n=1",
    "declare n=1",
    "typeset n=$x",
    "m=n",
    "n=m",
];

/// Statements that evaluate arithmetic.
const USE: &[&str] = &[
    "echo $((n))",
    "echo $((n + m))",
    "echo \"$((n * 2))\"",
    "echo $(($n))",
    "echo $((${n}))",
    "((n))",
    "! ((n))",
    "time ((n))",
    "((n++))",
    "((n > m))",
    "((n += m))",
    "[[ n -gt 1 ]]",
    "[[ $n -gt 1 ]]",
    "[[ \"$m\" -lt $n ]]",
    "[[ 1 -eq n && $m -ne 2 ]]",
    "[[ -n $n ]]",
    "[ \"$n\" -gt 1 ]",
    "cat <<E\n$((n))\nE\n",
    "echo ${arr[0]}",
    "echo ${arr[n]}",
    "echo ${n:1:2}",
    "echo ${n:m}",
    "echo ${#n}",
    "echo $((RANDOM % 3))",
    "echo $((OPTIND))",
    "echo $(($# + 1))",
    "echo $((m)) $((n))",
    "true $((n)) > log",
    "for i in 1 2; do echo $((i + n)); done",
    "f",
    "f \"$x\"",
    "shift $((n))",
    "echo $(echo $((n)))",
    "(echo $((m)))",
];

/// Shell constructs around one or two statements.
const AROUND: &[&str] = &[
    "{}; {2}",
    "{}; {2}",
    "{}; {2}",
    "{}\n{2}",
    "{} && {2}",
    "{} || {2}",
    "{} | {2}",
    "{} & {2}",
    "({}); {2}",
    "{ {}; }; {2}",
    "f() { {}; }; {2}",
    "f() { {}; }; {2}; f",
    "f() { {}; }; {2}; f \"$x\"",
    "f() { {}; {2}; }; f",
    "if true; then {}; fi; {2}",
    "if false; then {}; fi; {2}",
    "if {}; then {2}; fi",
    "while true; do {}; {2}; break; done",
    "for k in 1 2; do {}; {2}; done",
    "for n in 1 2; do {}; done; {2}",
    "for n in 1 \"$x\"; do {}; done; {2}",
    "for n in {1..3}; do {}; {2}; done",
    "for n in; do {}; done; {2}",
    "for m in $x; do {}; {2}; done",
    "case $n in 1) {};; *) {2};; esac",
    "true $({}); {2}",
    "! {}; {2}",
    "time {}; {2}",
    "{} > log; {2}",
    "until {}; do {2}; break; done",
    "while read -r n; do {}; done < payload; {2}",
    "while read -r k; do {}; {2}; done < payload",
    "select n in 1; do {}; break; done <<< 1; {2}",
];

fn made() -> impl Strategy<Value = String> {
    // The first ten assignments have numeric values.
    let statement = prop_oneof![2 => select(&ASSIGN[..10]), 2 => select(ASSIGN), 3 => select(USE)].prop_map(String::from);
    let lines = statement.prop_recursive(4, 12, 2, |inner| {
        (select(AROUND), inner.clone(), inner)
            .prop_map(|(around, one, two)| around.replacen("{2}", &two, 1).replacen("{}", &one, 1))
    });
    (select(&["", "n=1; ", "n=1; m=2; "][..]), vec(lines, 1..4))
        .prop_map(|(first, lines)| format!("read -r x < payload; {first}{}", lines.join("; ")))
}

#[test]
fn allowed_arithmetic_runs_no_commands() {
    let bash = Bash::new();
    let files = || {
        for (name, text) in [("payload", "a[$(rm x)] a[$(rm x)]\n"), ("values", "n=$x; m=$x\n")] {
            std::fs::write(bash.directory.path().join("work").join(name), text).unwrap();
        }
    };
    let forbidding = rules(&[(Policy::Deny, "rm *")]);
    let (allowed, executes) = (Cell::new(0), Cell::new(0));
    let cases = cases(250);
    let few = cases.cases < 250;
    proptest!(cases, |(line in made())| {
        files();
        if judged(&forbidding, Mode::Auto, "", &line) == Policy::Allow {
            allowed.set(allowed.get() + usize::from(line.contains("((")));
            let started = bash.starts(&line);
            prop_assert!(started.is_empty(), "{line:?}: {started:?}");
        } else if executes.get() == 0 && !bash.starts(&line).is_empty() {
            executes.set(1);
        }
    });
    assert!(few || allowed.get() > 0 && executes.get() > 0, "{} allowed", allowed.get());
}
