//! Paths with brackets and braces, in the patterns of searches and of rules.

use serde_json::json;

use super::told;
use harness::Home;
use harness::verdict::Verdict::{Allow, Ask, Deny};
use harness::verdict::verdict;

fn home() -> Home {
    let home = Home::new();
    for path in ["app/[slug]/page.tsx", "app/[[...all]]/page.tsx", "app/(group)/{id}.ts", "app/s/page.tsx", "a[1].txt", "a1.txt"] {
        home.put(path, "needle\n");
    }
    home
}

#[tokio::test]
async fn pattern_with_brackets_finds_the_path_that_is_written_so() {
    let home = home();
    let cases: &[(&str, &[&str])] = &[
        ("app/[slug]/page.tsx", &["app/[slug]/page.tsx", "app/s/page.tsx"]),
        ("app/[slug]/*.tsx", &["app/[slug]/page.tsx", "app/s/page.tsx"]),
        ("app/[[...all]]/page.tsx", &["app/[[...all]]/page.tsx"]),
        ("app/(group)/{id}.ts", &["app/(group)/{id}.ts"]),
        ("a[1].txt", &["a1.txt", "a[1].txt"]),
        ("a\\[1\\].txt", &["a[1].txt"]),
        ("app/[slug/page.tsx", &[]),
    ];
    for (pattern, files) in cases {
        let found = |text: &str| {
            let mut lines: Vec<String> = text.lines().filter(|line| !line.contains(" found")).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let text = told(&home, "glob", &json!({ "pattern": pattern })).await;
        assert_eq!(found(&text), *files, "{pattern}: {text}");
        let input = json!({"pattern": "needle", "glob": pattern, "output_mode": "files_with_matches"});
        let text = told(&home, "grep", &input).await;
        assert_eq!(found(&text), *files, "{pattern}: {text}");
    }
}

#[tokio::test]
async fn rule_with_brackets_means_the_path_that_is_written_so() {
    let read = |path: &str| json!({ "file_path": path });
    let cases = [
        ("app/[slug]/**", "deny", "app/[slug]/page.tsx", Deny),
        ("app/[slug]/**", "deny", "app/s/page.tsx", Deny),
        ("app/[slug]", "ask", "app/[slug]/page.tsx", Ask),
        ("app/[new]/**", "deny", "app/[new]/none.tsx", Deny),
        ("app/[[...all]]/page.tsx", "deny", "app/[[...all]]/page.tsx", Deny),
        ("app/(group)/{id}.ts", "deny", "app/(group)/{id}.ts", Deny),
        ("**/[slug]/*", "deny", "app/[slug]/page.tsx", Deny),
        ("app/\\\\[slug\\\\]/**", "deny", "app/s/page.tsx", Allow),
        ("app/[slug]/**", "deny", "app/(group)/{id}.ts", Allow),
    ];
    for (path, policy, file, expected) in cases {
        let home = home();
        home.config(&format!("permissions.rules = [{{ path = \"{path}\", policy = \"{policy}\" }}]\n"));
        assert_eq!(verdict(&home, "auto", "read", &read(file)).await, expected, "{path} {file}");
    }
    let home = home();
    home.config("permissions.rules = [{ tool = \"write\", path = \"app/[slug]/*\", policy = \"allow\" }]\n");
    for (file, expected) in [("app/[slug]/new", Allow), ("app/[slug]/a/b", Ask), ("app/x/new", Ask)] {
        assert_eq!(verdict(&home, "ask", "write", &json!({"file_path": file, "content": ""})).await, expected, "{file}");
    }
}
