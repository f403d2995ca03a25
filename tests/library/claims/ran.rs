//! The checks that shell command lines make.

use nuncio::internal::claims::{Exit, Kinds, kinds};

/// Asserts what a line makes: the checks with what the exit code says, and `?` for unknown parts.
fn check(line: &str, expected: &str) {
    let found = kinds(line);
    let exit = |exit| match exit {
        Exit::Decides => "",
        Exit::ZeroPasses => " (0)",
        Exit::Nothing => " (-)",
    };
    let mut shown: Vec<String> =
        found.checks.iter().map(|check| format!("{}{}", check.words.join(" "), exit(check.exit))).collect();
    shown.extend(found.unknown.then(|| "?".to_owned()));
    assert_eq!(shown.join(", "), expected, "{line}");
}

#[test]
fn programs_in_command_position_are_checks() {
    check("cargo test", "cargo test");
    check("cargo +nightly --locked test -p a -- --nocapture", "cargo test");
    check("cargo --manifest-path a/Cargo.toml clippy", "cargo clippy");
    check("cd x && cargo test", "cargo test");
    check("(cd x && cargo test)", "cargo test");
    check("cd x; cargo test;", "cargo test");
    check("cargo test\n", "cargo test");
    check("cargo \\\n  test", "cargo test");
    check("pytest -q 2>&1", "pytest");
    check("pytest > out.txt 2>&1", "pytest");
    check("pytest &> out.txt", "pytest");
    check("go -C server test ./...", "go test");
    check("mvn -q clean verify", "mvn verify");
    check("./gradlew clean :app:test --tests Foo", "gradle test");
    check("cmake --build build -j", "cmake --build");
    check("node --test", "node --test");
    check("./node_modules/.bin/jest", "jest");
    check("# run the tests\ncargo test", "cargo test");
}

#[test]
fn wrappers_run_other_programs() {
    check("RUST_LOG=a env B=c timeout -k 5 60 nice -n 5 time cargo test", "cargo test");
    check("npx --yes -p typescript tsc --noEmit", "tsc");
    check("uv run --with x pytest", "pytest");
    check("uv run python -m pytest", "pytest");
    check("python3.12 -W error -m pytest", "pytest");
    check("coverage run -m pytest", "pytest");
    check("sudo -u app poetry run ruff check .", "ruff check");
    check("bundle exec rspec", "rspec");
    check("php vendor/bin/phpunit", "phpunit");
    check("bash -lc 'cd a && cargo test'", "cargo test");
    check("bash -c 'cargo test | tail'", "cargo test (-)");
    check("sh -c 'cargo test' | tail", "cargo test (-)");
}

#[test]
fn other_positions_are_no_checks() {
    for line in [
        "echo cargo test",
        "echo 'cargo test' && ls",
        "cat src/main.rs",
        "grep -rn 'cargo test' .",
        "git log --grep 'cargo test'",
        "which pytest",
        "command -v cargo",
        "cargo --version",
        "pytest --version",
        "cargo test --help",
        "pytest --collect-only",
        "npm install && git status",
        "cat > a.sh <<'EOF'\ncargo test\n$(x)\nEOF",
        "cat <<EOF > a.md\ncargo test\nEOF\nls",
        "source .venv/bin/activate",
        "printf '%s\\n' \"cargo test\" > x",
        "ls # cargo test",
        "",
    ] {
        check(line, "");
    }
}

#[test]
fn exit_codes_say_something_or_nothing() {
    check("cargo test | tail -5", "cargo test (-)");
    check("cargo test |& tee log", "cargo test (-)");
    check("cargo test || true", "cargo test (-)");
    check("cargo test; echo done", "cargo test (-)");
    check("cargo test\nls", "cargo test (-)");
    check("! cargo test", "?");
    check("cargo test &", "cargo test (-)");
    check("cargo test && echo ok", "cargo test");
    check("cargo fmt && cargo test", "cargo fmt (0), cargo test (0)");
    check("cargo build; cargo test", "cargo build (-), cargo test");
    check("set -e; cargo build; cargo test", "cargo build (0), cargo test (0)");
    check("cargo test && git status", "cargo test (0)");
    check("grep foo x && cargo test", "cargo test (0)");
    check("(false; cargo test) && echo ok", "cargo test (0), ?");
    check("cat x | cargo test", "cargo test (0)");
    check("gofmt -l .", "gofmt (-)");
    check("ruff check --exit-zero", "ruff check (-)");
}

#[test]
fn what_is_not_understood_is_unknown() {
    for line in [
        "make test",
        "tail -f test.log",
        "curl localhost:8080",
        "npm test",
        "npm run test",
        "yarn vitest",
        "just test",
        "./test.sh",
        "bash scripts/ci.sh",
        "python run_tests.py",
        "python -c 'import pytest; pytest.main()'",
        "docker compose run app pytest",
        "xargs cargo test",
        "find . -name x -exec cargo test ;",
        "$CARGO test",
        "echo $(cargo test)",
        "echo `cargo test`",
        "diff <(cargo test) x",
        "eval cargo test",
        "for i in 1 2; do cargo test; done",
        "if cargo test; then echo ok; fi",
        "bin/test",
        "./test",
        "git commit -m x",
        "cargo xtask ci",
        "cargo run",
        "cargo 'unterminated",
        "cat <<EOF\ncargo test",
        "cargo test () { ls; }",
        "command_of_the_project",
        "npx -c 'jest'",
        "env -S 'cargo test'",
        "ls; ) cargo test",
    ] {
        assert!(kinds(line).unknown, "{line}: {:?}", kinds(line));
    }
}

#[test]
fn kinds_follow_the_program() {
    let kind = |line: &str| kinds(line).checks.first().map(|check| check.kinds);
    assert_eq!(kind("cargo test --no-run"), Some(Kinds::BUILD));
    assert_eq!(kind("tsc --noEmit"), Some(Kinds::TYPES));
    assert_eq!(kind("ruff format --check"), Some(Kinds::FORMAT));
    assert!(kinds("git stash").replaces_files);
    assert!(!kinds("git status").replaces_files);
}

#[test]
fn damaged_lines_do_not_panic() {
    let line = "FOO=1 timeout 5 bash -c \"cd 'ä' && cargo test | tail\" <<'EOF' && (x; y) || `z` ${A:-b} $(c) 2>&1 >| d\nEOF\n";
    let places: Vec<usize> = line.char_indices().map(|(place, _)| place).collect();
    for start in &places {
        for end in &places {
            if let Some(part) = line.get(*start..*end) {
                kinds(part);
            }
        }
    }
}
