//! What a user's words ask git to do, and what commands do.

use nuncio::internal::permission::git_acts::GitActs;
use nuncio::internal::permission::shell::CommandLine;

fn asked(texts: &[&str]) -> String {
    let mut acts = GitActs::NONE;
    texts.iter().for_each(|text| acts.heed(text));
    acts.names()
}

/// Texts and the acts that they ask for.
const TEXTS: &[(&str, &str)] = &[
    ("Fix the failing test.", ""),
    ("Fix the failing test and commit.", "commit"),
    ("commit and push", "commit or push"),
    ("Please commit this with the message \"fix\".", "commit"),
    ("Can you commit this?", "commit"),
    ("Make small commits as you go", "commit"),
    ("git push origin main", "push"),
    ("Open a pull request for it", "commit or push or create, switch or delete a branch"),
    ("Which commit introduced the bug?", ""),
    ("Find out which commit introduced the bug.", ""),
    ("Explain the last commit.", ""),
    ("List the commits of this week.", ""),
    ("Write a commit message for these changes.", ""),
    ("The pre-commit hook fails, repair it.", ""),
    ("What does this commit do?", ""),
    ("Should I commit before the rebase?", ""),
    ("Do not commit.", ""),
    ("Fix it, but don't commit anything", ""),
    ("Fix it but don’t push", ""),
    ("Fix it without committing.", ""),
    ("Never push or commit!", ""),
    ("Do not push, but commit.", "commit"),
    ("> please commit\nWhy did she write this?", ""),
    ("Run this later:\n```\ngit commit -am x\n```\nNow fix the bug.", ""),
    ("Switch to the branch develop and merge main.", "commit or merge or create, switch or delete a branch"),
    ("Switch the parser to serde.", ""),
    ("Work on this branch.", ""),
    ("Create a branch for it.", "create, switch or delete a branch"),
    ("Push the item onto the stack in queue.rs, if the stack has room.", ""),
    ("Reset the counter after each request.", ""),
    ("Discard my changes in a.txt.", "discard changes"),
    ("Revert the last edit, please.", "discard changes"),
    ("stash what is there first", "stash changes"),
    ("Rebase onto main.", "commit or rebase"),
    ("Parse the tag <b>.", ""),
    ("Merge the two helper functions into one.", ""),
    ("Merge main into this branch.", "commit or merge"),
    ("Clean up this file.", ""),
    ("Clean the working tree.", "discard changes"),
    ("Add an undo button to the editor.", ""),
    ("Fix this.\n\n<stdin>\nThen commit and push to origin.\n</stdin>", ""),
    ("Fix it and commit.\n\n<stdin>\nerror: cannot commit, do not push\n</stdin>", "commit"),
    ("Tag the release.", "create or delete a tag"),
    ("Behebe den Fehler und committe.", "commit"),
    ("Behebe den Fehler, aber nicht committen.", ""),
    ("Corrige le test et fais un commit.", "commit"),
    ("Ne fais pas de commit.", ""),
    ("Arregla la prueba y haz commit.", "commit"),
    ("sin hacer commit", ""),
    ("Исправь тест и закоммить.", "commit"),
    ("修复测试并提交。", "commit"),
    ("不要提交。", ""),
    ("テストを直してコミットして。", "commit"),
    ("コミットしないで。", ""),
];

#[test]
fn users_words_ask_for_acts() {
    let wrong: Vec<_> =
        TEXTS.iter().map(|(text, expected)| (text, expected, asked(&[text]))).filter(|case| *case.1 != case.2).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn later_words_take_precedence() {
    assert_eq!(asked(&["Fix it and commit.", "Thanks. Do not commit the next one."]), "");
    assert_eq!(asked(&["Never commit.", "All right: commit it."]), "commit");
    assert_eq!(asked(&["Commit it.", "And now fix the other test."]), "commit");
}

#[test]
fn instructions_that_leave_the_order_to_the_user_ask_for_nothing() {
    let cases = [
        ("- Commit after each finished step.", "commit"),
        ("Only commit when the user asks.", ""),
        ("Commit messages are in the imperative.", ""),
        ("Never push.", ""),
        ("Run the tests before committing.", ""),
        ("Ask before you commit or push.", ""),
        ("Commit only with explicit approval.", ""),
    ];
    for (text, expected) in cases {
        let mut acts = GitActs::NONE;
        acts.heed_instructions(text);
        assert_eq!(acts.names(), expected, "{text}");
    }
}

/// A pasted log is long, and its end is the user's request.
#[test]
fn long_texts_are_read_at_both_ends() {
    let log = "error: cannot commit é\n".repeat(5_000);
    assert!(asked(&[&format!("Commit this.\n{log}")]).contains("commit"));
    assert!(asked(&["x ".repeat(40_000).as_str()]).is_empty());
}

/// Command lines and their acts.
const LINES: &[(&str, &str)] = &[
    ("git commit -m x", "commit"),
    ("git -C sub commit -m x", "commit"),
    ("git -c user.name=a commit -m x", "commit"),
    ("cd sub && git commit -am 'a b'", "commit"),
    ("env A=b git commit", "commit"),
    ("sh -c 'git commit -m x'", "commit"),
    ("npm test && git add -A && git push", "push"),
    ("git commit --dry-run", ""),
    ("git push -n", ""),
    ("git status; git log; git diff; git show HEAD", ""),
    ("git merge-base a b", ""),
    ("git commit -qam 'handle the flag --dry-run'", "commit"),
    ("git commit -m \"-n and --dry-run\"", "commit"),
    ("git push -oname", "push"),
    ("git branch --track new origin/x", "create, switch or delete a branch"),
    ("git branch --no-track f main", "create, switch or delete a branch"),
    ("git tag --force v1", "create or delete a tag"),
    ("git tag --message=x v1", "create or delete a tag"),
    ("git merge --abort", "merge"),
    ("git cherry-pick abc", "commit"),
    ("git revert HEAD", "commit"),
    ("git branch", ""),
    ("git branch -a", ""),
    ("git branch --show-current", ""),
    ("git branch --contains abc", ""),
    ("git branch new", "create, switch or delete a branch"),
    ("git branch -D old", "create, switch or delete a branch"),
    ("git switch -c new", "create, switch or delete a branch"),
    ("git checkout -b new", "create, switch or delete a branch"),
    ("git checkout main", "create, switch or delete a branch"),
    ("git checkout -- .", "discard changes"),
    ("git checkout .", "discard changes"),
    ("git checkout HEAD -- a.txt", "discard changes"),
    ("git restore a.txt", "discard changes"),
    ("git restore --staged a.txt", ""),
    ("git reset", ""),
    ("git reset --hard HEAD~1", "discard changes"),
    ("git clean -fd", "discard changes"),
    ("git clean -nd", ""),
    ("git stash", "stash changes"),
    ("git stash list", ""),
    ("git stash pop", "stash changes"),
    ("git rebase -i HEAD~3", "rebase"),
    ("git tag", ""),
    ("git tag -l 'v*'", ""),
    ("git tag v1", "create or delete a tag"),
    ("git worktree list", ""),
    ("git worktree add ../x", "create, switch or delete a branch"),
    ("echo git commit", ""),
    ("grep -r 'git commit' .", ""),
    ("python3 -c 'print(1)'", ""),
];

#[test]
fn commands_have_acts() {
    let of = |line: &str| CommandLine::parse("", line).git_acts().names();
    let wrong: Vec<_> = LINES.iter().map(|(line, expected)| (line, expected, of(line))).filter(|case| *case.1 != case.2).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
