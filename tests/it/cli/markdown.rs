//! Markdown of answers on a terminal.

use serde_json::json;

use harness::Home;

/// The rows that `nuncio run` shows of an answer, on a terminal of this width.
async fn shown(answer: &str, columns: u16, chunk: usize, colour: bool) -> String {
    let home = Home::new();
    if !colour {
        home.env("NO_COLOR", "1");
    }
    let steps = json!([{"text": answer, "chunk_chars": chunk}]);
    let terminal = home.terminal(&["run", "--model", &home.script(steps), "go"]);
    terminal.resize(24, columns);
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    let (_, answer) = shown.split_once("sess_").unwrap().1.split_once('\n').unwrap();
    let rows = &answer[..answer.rfind("\n· ").unwrap_or(answer.len())];
    format!("{}\n", rows.trim_end())
}

#[tokio::test]
async fn structure_shows_without_colours() {
    let answer = "## Head\n**bold**, *it*, ~~old~~, `code`\n```sh\nls\n```\n- [x] done\n- a [link](https://a.b/c)\n";
    let expected = "## Head\nbold, it, ~~old~~, `code`\n─── sh\nls\n───\n☑ done\n• a link (https://a.b/c)\n";
    for chunk in [1, 1000] {
        assert_eq!(shown(answer, 80, chunk, false).await, expected);
    }
}

#[tokio::test]
async fn no_word_that_fits_a_row_is_cut() {
    let words: Vec<String> = (0..120).map(|number| format!("word{number:03}{}", "x".repeat(number % 9))).collect();
    let text = words.join(" ");
    let rows = words.chunks(3).map(|cells| format!("| {} |\n", cells.join(" | ")));
    let table = format!("|a|b|c|\n|-|-|-|\n{}", rows.collect::<String>());
    for answer in [text.clone(), format!("> - {text}"), format!("1. `{text}`"), format!("## **{text}**"), table] {
        let shown = shown(&answer, 40, 1000, false).await;
        let found: Vec<&str> =
            shown.split(|character: char| !character.is_alphanumeric()).filter(|word| word.starts_with("word")).collect();
        assert_eq!(found, words, "{shown}");
        assert!(shown.lines().all(|row| row.chars().count() <= 40), "{shown}");
    }
}

#[tokio::test]
async fn table_that_does_not_fit_has_a_row_for_each_cell() {
    let answer = "|Name|Value|Reason|\n|-|-|-|\n|alpha-beta-gamma|one-two-three-four|because-of-this|\n";
    let expected = "Name: alpha-beta-gamma\nValue: one-two-three-four\nReason: because-of-this\n";
    assert_eq!(shown(answer, 30, 1000, false).await, expected);
}

#[tokio::test]
async fn hostile_markdown_does_nothing() {
    let hostile = "&#27;[2J&#x9b;2J&#8238;";
    let answer = format!(
        "# {hostile}a\n```{hostile}\nx\n```\n~~~ &#27;]0;b&#7;\nc\n~~~\n|{hostile}d|\n|-|\n|{hostile}|\n\n[e{hostile}](http://&#27;[2J \
         \"{hostile}\")\n\n- {hostile}f\n\n[g]: <{hostile}>\n"
    );
    let shown = shown(&answer, 80, 1000, false).await;
    assert!(
        !shown.contains(|character: char| character != '\n' && (character.is_control() || character == '\u{202e}')),
        "{shown:?}"
    );
    assert!(["[2J2Ja", "[2J2Jd", "[e2J2J", "• [2J2Jf"].iter().all(|words| shown.contains(words)), "{shown}");
    // A link is never made clickable: its target would be hidden.
    let shown = self::shown("[text](https://a.b/c) &#27;]8;;x&#7;", 80, 1000, true).await;
    assert!(shown.contains("\u{1b}[4mtext\u{1b}[0m\u{1b}[2m (https://a.b/c)\u{1b}[0m") && !shown.contains("\u{1b}]8"), "{shown:?}");
}

#[tokio::test]
async fn code_of_each_language_has_colours() {
    let cases = [
        ("rust", "fn f() { \"s\" } // c", &["35mfn", "34mf", "32m\"s\"", "2m// c"][..]),
        ("py", "def f(): return 'a' # c", &["35mdef", "34mf", "32m'a'", "2m# c"]),
        ("ts", "const a: number = f('s'); interface B {}", &["35mconst", "34mf", "32m's'", "35minterface"]),
        ("tsx", "const a = <b>{1}</b>;", &["35mconst", "35mb", "33m1"]),
        ("js", "function f() { return 1; }", &["35mfunction", "34mf", "33m1"]),
        ("go", "func f() string { return \"s\" }", &["35mfunc", "34mf", "32m\"s\""]),
        ("c", "int main(void) { return 1; }", &["34mmain", "35mreturn", "33m1"]),
        ("cpp", "class A { int f() { return 1; } };", &["35mclass", "34mf", "35mreturn"]),
        ("java", "class A { int f() { return 1; } }", &["35mclass", "34mf", "33m1"]),
        ("sh", "if true; then echo \"s\"; fi # c", &["35mif", "34mecho", "32m\"s\"", "2m# c"]),
        ("json", "{\"a\": [1, true, \"s\"]}", &["34m\"a\"", "33m1", "33mtrue", "32m\"s\""]),
        ("toml", "a = 1 # c", &["34ma", "33m1", "2m# c"]),
        ("yaml", "a: \"s\" # c", &["34ma", "32m\"s\"", "2m# c"]),
        ("html", "<p class=\"s\">x</p>", &["35mp", "32ms"]),
        ("css", ".a { color: red; width: 1px }", &["34mcolor", "33m1px"]),
    ];
    let blocks: Vec<String> = cases.iter().map(|(language, code, _)| format!("```{language}\n{code}\n```\n")).collect();
    let shown = shown(&blocks.concat(), 80, 1000, true).await;
    let found: Vec<&str> = shown.split("───").collect();
    for (number, (language, _, styles)) in cases.iter().enumerate() {
        for style in *styles {
            assert!(
                found[2 * number + 1].contains(&format!("\u{1b}[{style}\u{1b}[0m")),
                "{language}, {style}: {:?}",
                found[2 * number + 1]
            );
        }
    }
}
