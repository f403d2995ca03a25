//! Answers at the end of a turn, with what ran before them: truthful ones, which no notice accuses,
//! and false ones, most of which are found.

use nuncio::internal::claims::{CheckEvent, ClaimState, claims, judge};

/// What ran, and the answer.
struct AnswerCase {
    name: String,
    events: Vec<CheckEvent>,
    answer: String,
}

/// Reads one event: `change`, `verify ok`, `verify failed`, or `$ COMMAND => EXIT`.
fn event(line: &str) -> CheckEvent {
    match line {
        "change" => CheckEvent::Change,
        "verify ok" => CheckEvent::Verify { ok: true },
        "verify failed" => CheckEvent::Verify { ok: false },
        line => {
            let (command, exit) = line.strip_prefix("$ ").and_then(|line| line.rsplit_once(" => ")).expect(line);
            CheckEvent::Command { line: command.replace("\\n", "\n"), exit_code: exit.parse().ok() }
        }
    }
}

/// Reads endings: `=== name`, a line for each event, `---`, the answer.
fn endings(text: &str) -> Vec<AnswerCase> {
    let blocks = text.split("=== ").skip(1);
    let read = |block: &str| {
        let (name, rest) = block.split_once('\n').expect(block);
        let (events, answer) = rest.split_once("---\n").expect(block);
        let events = events.lines().filter(|line| !line.is_empty()).map(event).collect();
        AnswerCase { name: name.trim().into(), events, answer: answer.trim_end().into() }
    };
    blocks.map(read).collect()
}

fn notices(ending: &AnswerCase) -> Vec<(String, ClaimState)> {
    let claims = claims(&ending.answer);
    let judged = judge(&claims, &ending.events);
    judged.into_iter().map(|found| (format!("{} [{}]", claims[found.claim].text, claims[found.claim].check), found.state)).collect()
}

/// Ways in which answers surround a sentence. `{}` is the sentence.
const FRAMES: [&str; 12] = [
    "{}",
    "Done. The parser now keeps trailing commas.\n\n{}",
    "## Summary\n\n- Moved the check into `validate()`\n- {}\n",
    "**What changed**\n\n1. `src/config.rs`: reads the new key.\n2. `README.md`: describes it.\n\n**Verification**\n\n- {}\n",
    "I fixed the off-by-one error in `paginate`. {}",
    "```diff\n-  a\n+  b\n```\n\n{}\n\nLet me know if you want the same for the other module.",
    "✅ {}",
    "The bug was a missing `await`: the promise was dropped, so the handler returned early.\n{}",
    "### Result\n\n> Please fix the flaky login\n\n{}",
    "**{}**",
    "- The limit is now a setting.\n  - {}\n- No other file changed.",
    "All done! 🎉\n\n* {}\n* Docs updated",
];

/// Truthful endings that a notice accuses, with no remedy that would not cost more.
const ACCUSED: [&str; 1] = ["success page"];

/// Rows of a table, without comments.
fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// Combines phrases (`language kind phrase`) with ways to run a check (`kind code events`).
fn combined(ways: &'static str) -> Vec<AnswerCase> {
    let mut found = Vec::new();
    for (number, phrase) in rows(include_str!("data/phrases.tsv")).enumerate() {
        for (place, way) in rows(ways).enumerate() {
            let ([_, kind, phrase], [ran, code, events]) = (phrase.as_slice(), way.as_slice()) else {
                panic!("{phrase:?} {way:?}")
            };
            if ran.split(',').any(|ran| ran == *kind) {
                let frame = FRAMES[(number + place) % FRAMES.len()];
                let answer = frame.replace("{}", &phrase.replace("{code}", code));
                let events = events.split(" ;; ").map(event).collect();
                found.push(AnswerCase { name: format!("{phrase} / {events:?}"), events, answer });
            }
        }
    }
    found
}

#[test]
fn truthful_endings_are_not_accused() {
    let combined = combined(include_str!("data/ways.tsv"));
    let written = endings(include_str!("data/truthful.md"));
    let adversarial = endings(concat!(
        include_str!("data/adversarial.md"),
        include_str!("data/adversarial2.md"),
        include_str!("data/adversarial3.md"),
        include_str!("data/adversarial4.md")
    ));
    println!("truthful: {} combined, {} written, {} adversarial", combined.len(), written.len(), adversarial.len());
    let mut accused = Vec::new();
    for ending in combined.iter().chain(&written).chain(&adversarial) {
        for notice in notices(ending).into_iter().filter(|_| !ACCUSED.contains(&ending.name.as_str())) {
            accused.push(format!("{}: {notice:?}", ending.name));
        }
    }
    assert!(accused.is_empty(), "{} accusations:\n{}", accused.len(), accused.join("\n"));
}

#[test]
fn most_false_endings_are_found() {
    let combined = combined(include_str!("data/false_ways.tsv"));
    let written = endings(include_str!("data/false.md"));
    for (name, endings) in [("combined", combined), ("written", written)] {
        let missed: Vec<&AnswerCase> = endings.iter().filter(|ending| notices(ending).is_empty()).collect();
        let found = endings.len() - missed.len();
        println!("false, {name}: {found} of {} found", endings.len());
        for ending in &missed {
            println!("  missed: {} {:?}", ending.name, claims(&ending.answer));
        }
        assert!(endings.len() >= 100 && found * 100 >= endings.len() * 80, "{found} of {}", endings.len());
    }
}

#[test]
fn damaged_answers_do_not_panic() {
    let text = "## ✅ `cargo test` — **24/24** “bestanden”\n> a\n- [x] 测试均已通过。\
                テスト「成功」\n| a | `b` |\n~~~\n``` x\n\n    c: \"d\" 3.5% (не) [l](u)";
    let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
    for start in &places {
        for end in &places {
            if let Some(part) = text.get(*start..*end) {
                claims(part);
            }
        }
    }
}

#[test]
fn long_answers_take_no_time() {
    let start = std::time::Instant::now();
    for text in ["All tests pass, ", "`cargo test` ✅ ", "- tests: pass\n", "passes ", "| a | b |\n", "测试", "(((", "````", "*"]
    {
        claims(&text.repeat((64 << 10) / text.len()));
        assert_eq!(claims(&text.repeat((64 << 10) / text.len() + 1)), [], "{text:?}");
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
