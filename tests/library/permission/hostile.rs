//! Command lines that try to bypass the rules `deny rm *`, `ask git push *` and
//! `allow git status *`.

mod arithmetic;
mod earlier_bypasses;
mod file_options;
mod hidden_options;
mod installed_programs;
mod lines;
mod ordinary;
mod programs;

use nuncio::internal::config::{AccessKind, Policy, Rule};
use nuncio::internal::options::Mode;
use nuncio::internal::permission::rules::{AccessRequest, Rules, decide};
use nuncio::internal::permission::shell::CommandLine;
use serde_json::json;

use self::lines::{ASKED, DENIED};
use harness::Home;
use harness::verdict::Verdict;

pub fn rule(policy: Policy, pattern: &str) -> Rule {
    Rule { tool: Some("bash".into()), kind: None, path: None, pattern: Some(pattern.into()), directory: None, exact: None, policy }
}

fn rules() -> Rules {
    let user = vec![rule(Policy::Deny, "rm *"), rule(Policy::Ask, "git push *"), rule(Policy::Allow, "git status *")];
    Rules { user, ..Rules::default() }
}

/// The policy for a command line under these rules in this mode.
pub fn judged(rules: &Rules, mode: Mode, environment: &str, line: &str) -> Policy {
    let line = Some(CommandLine::parse(environment, line));
    let subject = AccessRequest { line, ..AccessRequest::new("bash", AccessKind::Exec) };
    decide(rules, mode, Policy::Ask, &subject).policy
}

/// Command lines that the rule `allow git status *` must allow.
const ALLOWED: &[&str] = &[
    "git status",
    " git status\n",
    "git status -s",
    "git status -s && git status",
    "git status; git status",
    "git status | git status --short",
    "(git status)",
    "if git status; then git status; fi",
    "git status 'a b'",
    "git status \"a b\"",
    "git status -- a\\ b",
    "git status $x",
    "git status \"$x\"",
    "git status *.rs",
    "git status 2>&1",
    "git status 2>/dev/null",
    "git status > /dev/null 2>&1",
    "git status \\\n  --short",
    "git status # rm x",
    "git status 'rm x; $(rm x)'",
    "git status ünïcödé",
    "x=1; git status $x",
    "LANG=C git status",
    "for f in a b; do git status $f; done",
    "env git status",
    "timeout 5 git status",
    "bash -c 'git status'",
    "command git status",
    "time git status",
    "git status $(git status)",
    "git status <<E\nrm x\nE",
];

/// Harmless command lines that resemble denied commands. Mode auto must allow these lines.
const HARMLESS: &[&str] = &[
    "echo rm x",
    "echo 'rm x; git push'",
    "rmdir x",
    "git rm x",
    "git commit -m 'git push'",
    "grep -r 'rm ' . | head -5",
    "cat <<'E' > x.sh\nrm $x `x`\nE",
    "cargo test -- --nocapture 2>&1 | tail -20",
    "find . -name '*.rs' | xargs grep -n rm",
    "for f in *.rs; do wc -l \"$f\"; done",
    "sed -n '1,20p' a",
    "sed -i 's/a/b/g' a",
    "awk '{ print $1 }' a",
    "python3 script.py --rm",
    "python3 -m pytest -q",
    "make -j4 && ./run.sh",
    "cd a && ls -la",
    "X=1 make",
    "echo $((1 + 2)) ${x:-a} ${#x}",
    "set -euo pipefail; ls",
    "[ -f x ] && [[ $x == y* ]] || echo no",
    "while read -r line; do echo \"$line\"; done < a",
    "docs=rm; echo $docs",
    "git log --oneline -5",
    "git config --get user.name",
    "bash build.sh",
    "curl -s http://127.0.0.1/ -d '{\"rm\": 1}'",
];

#[test]
fn hostile_lines_do_not_bypass_rules() {
    let rules = rules();
    assert!(DENIED.len() + ASKED.len() >= 200, "{} lines", DENIED.len() + ASKED.len());
    let mut wrong = Vec::new();
    let tables = [
        (Policy::Deny, DENIED, earlier_bypasses::DENIED),
        (Policy::Ask, ASKED, earlier_bypasses::ASKED),
        (Policy::Allow, ALLOWED, earlier_bypasses::ALLOWED),
        (Policy::Allow, HARMLESS, earlier_bypasses::HARMLESS),
    ];
    for (policy, lines, slipped) in tables {
        for line in lines.iter().chain(slipped) {
            let auto = judged(&rules, Mode::Auto, "", line);
            let asking = judged(&rules, Mode::Ask, "", line);
            let expected = if lines == HARMLESS { Policy::Ask } else { policy };
            if (auto, asking) != (policy, expected) {
                wrong.push(format!("{line:?}: auto {auto:?}, ask {asking:?}, not {policy:?} and {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn deeply_nested_line_requires_permission() {
    let rules = rules();
    let deep = [
        format!("echo $(({}1))", "!".repeat(60_000)),
        format!("echo $(({}1{}))", "(".repeat(16_000), ")".repeat(16_000)),
        format!("[[ {}a ]]", "! ".repeat(30_000)),
        format!("[[ {}a{} ]]", "( ".repeat(16_000), " )".repeat(16_000)),
        format!("[[ {}a ]]", "a && ".repeat(12_000)),
        format!("{}true", "doas ".repeat(5_000)),
        format!("{}true", "nohup ".repeat(5_000)),
        format!("{}true", "xargs ".repeat(5_000)),
        format!("echo {}a{}", "${x:-".repeat(8_000), "}".repeat(8_000)),
        format!("echo {}a{}", "\"$(echo ".repeat(5_000), ")\"".repeat(5_000)),
        format!("{}true", "eval ".repeat(9_000)),
        format!("{}true", "bash -c ".repeat(7_000)),
    ];
    for line in deep {
        assert_eq!(judged(&rules, Mode::Auto, "", &line), Policy::Ask, "{}…", &line[..20]);
    }
}

#[test]
fn long_lines_are_analyzed_within_the_limits() {
    let rules = rules();
    let script = |commands: usize| vec![format!("true {}", "a".repeat(100)); commands].join("; ");
    // The text of each wrapper counts only once toward `SHELL_NAMES_CHARS_MAX`.
    let usual = format!("nohup nice timeout 600 bash -c '{}'", script(100));
    let long = format!("nohup nohup nohup nohup bash -c '{}'", script(240));
    let last = format!("nohup nohup nohup nohup bash -c '{}; rm x'", script(200));
    let many = format!("{}true{}", "/bin/doas -u a ".repeat(7), " 'aaa'".repeat(10_000));
    for (line, expected) in [(usual, Policy::Allow), (long, Policy::Allow), (last, Policy::Deny), (many, Policy::Ask)] {
        assert_eq!(judged(&rules, Mode::Auto, "", &line), expected, "{}…", &line[..20]);
    }
}

#[tokio::test]
async fn bash_tool_agrees_with_the_tables() {
    let home = Home::new();
    home.put("x", "");
    let row = |policy: &str, pattern: &str| format!("{{ tool = \"bash\", pattern = \"{pattern}\", policy = \"{policy}\" }}");
    let rows = [row("deny", "rm *"), row("ask", "git push *"), row("allow", "git status *")];
    home.config(&format!("[permissions]\nrules = [{}]\n", rows.join(", ")));
    for (verdict, lines) in [(Verdict::Deny, DENIED), (Verdict::Ask, ASKED), (Verdict::Allow, ALLOWED)] {
        for line in lines.iter().step_by(12) {
            assert_eq!(harness::verdict::verdict(&home, "auto", "bash", &json!({ "command": line })).await, verdict, "{line:?}");
        }
    }
    assert!(home.get("x").is_some());
}

/// Descriptions of the command lines whose policy does not satisfy `expected`.
fn unexpected(rules: &Rules, mode: Mode, lines: &[&str], expected: impl Fn(Policy) -> bool) -> Vec<String> {
    let answers = lines.iter().map(|line| (line, judged(rules, mode, "", line)));
    answers.filter(|(_, policy)| !expected(*policy)).map(|(line, policy)| format!("{mode:?} {line:?}: {policy:?}")).collect()
}

#[test]
fn arithmetic_that_executes_commands_requires_permission() {
    let mut wrong = unexpected(&rules(), Mode::Auto, arithmetic::EXECUTES, |policy| policy == Policy::Ask);
    let names = ["ls", "echo", "read", "true", "test", "cat", "unset", "getopts", "mapfile", "readarray", "wait", "command", "f"];
    let names = names.iter().chain(&["printf", "export", "local", "git status", "x", "select", "eval", "source", "trap"]);
    let allowing = Rules { user: names.map(|name| rule(Policy::Allow, &format!("{name} *"))).collect(), ..Rules::default() };
    wrong.extend(unexpected(&allowing, Mode::Ask, arithmetic::EXECUTES, |policy| policy == Policy::Ask));
    wrong.extend(unexpected(&rules(), Mode::Auto, arithmetic::PLAIN, |policy| policy == Policy::Allow));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn program_in_the_repository_is_not_a_wrapper() {
    let allowing = Rules { user: vec![rule(Policy::Allow, "ls *")], ..Rules::default() };
    let mut wrong = unexpected(&allowing, Mode::Ask, programs::LOCAL, |policy| policy == Policy::Ask);
    wrong.extend(unexpected(&allowing, Mode::Ask, programs::STANDARD, |policy| policy == Policy::Allow));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn programs_that_run_others_require_permission_under_a_deny_rule() {
    let mut wrong = unexpected(&rules(), Mode::Auto, programs::ASKED, |policy| policy == Policy::Ask);
    wrong.extend(unexpected(&rules(), Mode::Auto, programs::DENIED, |policy| policy == Policy::Deny));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ordinary_lines_need_no_permission_under_a_deny_rule() {
    let wrong = unexpected(&rules(), Mode::Auto, ordinary::LINES, |policy| policy == Policy::Allow);
    assert!(wrong.is_empty(), "{} of {} lines:\n{}", wrong.len(), ordinary::LINES.len(), wrong.join("\n"));
}
