//! Programs that test, build, lint and format, and programs that surely do not.

use crate::claims::check::Kinds;

const TEST: Kinds = Kinds::TEST;
const BUILD: Kinds = Kinds::BUILD;
const LINT: Kinds = Kinds::LINT;
const TYPES: Kinds = Kinds::TYPES;
const FORMAT: Kinds = Kinds::FORMAT;
const COMPILED: Kinds = BUILD.and(TYPES);

pub(crate) struct CheckProgram {
    pub(crate) name: &'static str,
    /// Subcommands, separated by spaces. Empty if the program itself is the check.
    subcommands: &'static str,
    /// The kinds of checks: a failure is a failure of these kinds.
    pub(crate) kinds: Kinds,
    /// Kinds that a success shows as well, for example that the tested code compiles.
    pub(crate) shows: Kinds,
}

const fn row(name: &'static str, subcommands: &'static str, kinds: Kinds, shows: Kinds) -> CheckProgram {
    CheckProgram { name, subcommands, kinds, shows }
}

const PROGRAMS: &[CheckProgram] = &[
    row("cargo", "test t nextest insta llvm-cov tarpaulin miri mutants careful", TEST, COMPILED),
    row("cargo", "build b check c doc d bench install rustc publish package", BUILD, TYPES),
    row("cargo", "clippy fix", LINT, COMPILED),
    row("cargo", "fmt", FORMAT, FORMAT),
    row("cargo", "deny audit machete", LINT, LINT),
    row("rustc", "", BUILD, TYPES),
    row("rustfmt", "", FORMAT, FORMAT),
    row("go", "test", TEST, COMPILED.and(LINT)),
    row("go", "build install", BUILD, TYPES),
    row("go", "vet", LINT, COMPILED),
    row("go", "fmt", FORMAT, FORMAT),
    row("gotestsum", "", TEST, COMPILED),
    row("ginkgo", "", TEST, COMPILED),
    row("gofmt", "", FORMAT, FORMAT),
    row("gofumpt", "", FORMAT, FORMAT),
    row("goimports", "", FORMAT, FORMAT),
    row("staticcheck", "", LINT, COMPILED),
    row("golangci-lint", "", LINT, COMPILED.and(FORMAT)),
    row("pytest", "", TEST, TEST),
    row("py.test", "", TEST, TEST),
    row("unittest", "", TEST, TEST),
    row("doctest", "", TEST, TEST),
    row("nose2", "", TEST, TEST),
    row("mypy", "", TYPES, LINT),
    row("dmypy", "", TYPES, LINT),
    row("pyright", "", TYPES, LINT),
    row("basedpyright", "", TYPES, LINT),
    row("ty", "check", TYPES, LINT),
    row("pyrefly", "check", TYPES, LINT),
    row("ruff", "check", LINT, LINT),
    row("ruff", "format", FORMAT, FORMAT),
    row("flake8", "", LINT, FORMAT),
    row("pylint", "", LINT, LINT),
    row("black", "", FORMAT, FORMAT),
    row("isort", "", FORMAT, LINT),
    row("autopep8", "", FORMAT, FORMAT),
    row("yapf", "", FORMAT, FORMAT),
    row("py_compile", "", BUILD, BUILD),
    row("compileall", "", BUILD, BUILD),
    row("tsc", "", TYPES, BUILD),
    row("vue-tsc", "", TYPES, BUILD),
    row("svelte-check", "", TYPES, LINT),
    row("eslint", "", LINT, FORMAT),
    row("oxlint", "", LINT, LINT),
    row("xo", "", LINT, FORMAT),
    row("standard", "", LINT, FORMAT),
    row("stylelint", "", LINT, LINT),
    row("biome", "check lint ci", LINT, FORMAT),
    row("biome", "format", FORMAT, FORMAT),
    row("prettier", "", FORMAT, FORMAT),
    row("jest", "", TEST, TEST),
    row("vitest", "", TEST, TEST),
    row("mocha", "", TEST, TEST),
    row("ava", "", TEST, TEST),
    row("karma", "", TEST, BUILD),
    row("playwright", "test", TEST, TEST),
    row("cypress", "run", TEST, TEST),
    row("bun", "test", TEST, TEST),
    row("bun", "build", BUILD, BUILD),
    row("deno", "test", TEST, COMPILED),
    row("deno", "lint", LINT, LINT),
    row("deno", "check", TYPES, BUILD),
    row("deno", "fmt", FORMAT, FORMAT),
    row("next", "build", BUILD, TYPES.and(LINT)),
    row("next", "lint", LINT, LINT),
    row("vite", "build", BUILD, BUILD),
    row("webpack", "", BUILD, TYPES),
    row("rollup", "", BUILD, TYPES),
    row("esbuild", "", BUILD, BUILD),
    row("tsup", "", BUILD, TYPES),
    row("ng", "test", TEST, COMPILED),
    row("ng", "build", BUILD, TYPES),
    row("ng", "lint", LINT, LINT),
    row("astro", "build", BUILD, TYPES),
    row("astro", "check", TYPES, LINT),
    row("rspec", "", TEST, TEST),
    row("minitest", "", TEST, TEST),
    row("rails", "test", TEST, TEST),
    row("rubocop", "", LINT, FORMAT),
    row("standardrb", "", LINT, FORMAT),
    row("sorbet", "", TYPES, TYPES),
    row("srb", "tc", TYPES, TYPES),
    row("phpunit", "", TEST, TEST),
    row("pest", "", TEST, TEST),
    row("phpstan", "", LINT, TYPES),
    row("psalm", "", LINT, TYPES),
    row("phpcs", "", LINT, FORMAT),
    row("php-cs-fixer", "", FORMAT, LINT),
    row("pint", "", FORMAT, LINT),
    row("dotnet", "test", TEST, COMPILED),
    row("dotnet", "build publish msbuild", BUILD, TYPES.and(LINT)),
    row("dotnet", "format", FORMAT, LINT),
    row("swift", "test", TEST, COMPILED),
    row("swift", "build", BUILD, TYPES),
    row("swiftlint", "", LINT, FORMAT),
    row("swiftformat", "", FORMAT, FORMAT),
    row("mvn", "test", TEST, COMPILED),
    row("mvn", "compile test-compile", BUILD, TYPES),
    row("mvn", "package verify install", BUILD, Kinds::ALL),
    row("gradle", "test", TEST, COMPILED),
    row("gradle", "assemble compileJava compileKotlin classes", BUILD, TYPES),
    row("gradle", "build check", BUILD, Kinds::ALL),
    row("ktlint", "", LINT, FORMAT),
    row("detekt", "", LINT, LINT),
    row("javac", "", BUILD, TYPES),
    row("kotlinc", "", BUILD, TYPES),
    row("ctest", "", TEST, TEST),
    row("cmake", "--build", BUILD, TYPES),
    row("meson", "test", TEST, COMPILED),
    row("meson", "compile", BUILD, TYPES),
    row("gcc", "", BUILD, TYPES),
    row("g++", "", BUILD, TYPES),
    row("cc", "", BUILD, TYPES),
    row("clang", "", BUILD, TYPES),
    row("clang++", "", BUILD, TYPES),
    row("clang-tidy", "", LINT, BUILD),
    row("clang-format", "", FORMAT, FORMAT),
    row("cppcheck", "", LINT, LINT),
    row("zig", "test", TEST, COMPILED),
    row("zig", "build-exe build-lib", BUILD, TYPES),
    row("zig", "fmt", FORMAT, FORMAT),
    row("mix", "test", TEST, COMPILED),
    row("mix", "compile", BUILD, TYPES),
    row("mix", "credo", LINT, LINT),
    row("mix", "dialyzer", TYPES, LINT),
    row("mix", "format", FORMAT, FORMAT),
    row("stack", "test", TEST, COMPILED),
    row("stack", "build", BUILD, TYPES),
    row("cabal", "test", TEST, COMPILED),
    row("cabal", "build", BUILD, TYPES),
    row("flutter", "test", TEST, COMPILED),
    row("flutter", "analyze", LINT, COMPILED),
    row("flutter", "build", BUILD, TYPES),
    row("dart", "test", TEST, COMPILED),
    row("dart", "analyze", LINT, COMPILED),
    row("dart", "format", FORMAT, FORMAT),
    row("dart", "compile", BUILD, TYPES),
    row("bazel", "test", TEST, COMPILED),
    row("bazel", "build", BUILD, TYPES),
    row("bats", "", TEST, TEST),
    row("prove", "", TEST, TEST),
    row("busted", "", TEST, TEST),
    row("shellcheck", "", LINT, LINT),
    row("shfmt", "", FORMAT, FORMAT),
    row("hadolint", "", LINT, LINT),
    row("yamllint", "", LINT, LINT),
    row("markdownlint", "", LINT, LINT),
    row("actionlint", "", LINT, LINT),
    row("terraform", "validate", LINT, BUILD),
    row("terraform", "fmt", FORMAT, FORMAT),
    row("tflint", "", LINT, LINT),
    row("helm", "lint", LINT, LINT),
    row("buf", "lint", LINT, BUILD),
    row("buf", "build", BUILD, LINT),
];

pub(crate) fn check_program(program: &str, subcommand: &str) -> Option<&'static CheckProgram> {
    let has = |list: &str| list.is_empty() || list.split(' ').any(|name| name == subcommand);
    PROGRAMS.iter().find(|row| row.name == program && has(row.subcommands))
}

/// Returns the check of a program that a sentence names without code marks, for example "clippy".
pub(crate) fn check_tool(name: &str) -> Option<(&'static CheckProgram, Vec<String>)> {
    let (program, subcommand) = match name {
        "clippy" => ("cargo", "clippy"),
        "nextest" => ("cargo", "nextest"),
        "ruff" => ("ruff", "check"),
        "rustfmt" => ("cargo", "fmt"),
        "biome" => ("biome", "check"),
        name => (name, ""),
    };
    // The names of these programs are also common words.
    let is_word = matches!(
        name,
        "black" | "standard" | "pest" | "prove" | "ava" | "mocha" | "karma" | "xo" | "pint" | "cc" | "clang" | "next"
    );
    let row = check_program(program, subcommand).filter(|_| !is_word)?;
    let words = [program, subcommand].into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect();
    Some((row, words))
}

impl CheckProgram {
    pub(crate) fn has_subcommand(&self) -> bool {
        !self.subcommands.is_empty()
    }
}

/// Commands that neither make a check nor fail in practice.
const SILENT: &str = "\
    cd pushd popd echo printf export unset true : pwd sleep date mkdir set shopt alias umask";

/// Programs that make no check. Others may make one.
const HARMLESS: &str = "\
    [ test ls cat bat head tail less more rg grep egrep fgrep ag fd tree wc sort uniq cut tr sed awk gawk \
    diff cmp comm stat file du df which type whereis jq yq xxd od hexdump md5sum sha256sum sha1sum \
    basename dirname realpath readlink cp mv rm rmdir ln touch chmod chown tar zip unzip gzip gunzip \
    ping ps kill lsof whoami id uname hostname printenv pip pip3 brew apt apt-get apk dnf \
    rustup patch tee column nl seq read uptime free locale tput clear history nproc \
    virtualenv nvm volta asdf n corepack";

/// Subcommands of programs that make no check with them.
const HARMLESS_SUBCOMMANDS: &[(&str, &str)] = &[
    ("cargo", "add remove rm new init tree metadata search update clean fetch info login locate-project vendor generate-lockfile"),
    ("go", "get mod env list version doc clean fmt work"),
    ("npm", "install i ci add uninstall remove rm ls list view info outdated audit init config root prefix why explain"),
    ("pnpm", "install i add remove ls list why outdated audit init store"),
    ("yarn", "install add remove list info why outdated audit init"),
    ("bun", "install i add remove pm init"),
    ("uv", "sync add remove lock pip venv tree python init"),
    ("poetry", "install add remove lock show env update init"),
    ("pdm", "install add remove lock list sync"),
    ("bundle", "install add update list show config lock"),
    ("composer", "install require remove update show"),
    ("dotnet", "restore add new list sln clean"),
    ("deno", "info cache add install types"),
    (
        "git",
        "status log diff show add branch blame grep ls-files rev-parse fetch clone init config remote tag describe \
        mv rm clean reflog shortlog cat-file ls-tree merge-base rev-list show-ref symbolic-ref check-ignore diff-tree",
    ),
    ("git", "stash checkout switch restore reset apply worktree"),
];

/// Subcommands of git that replace files, so that a later failure may be one of other files.
const GIT_REPLACING: &str = "stash checkout switch restore reset apply worktree";

fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// Returns whether the program neither makes a check nor fails in practice.
pub(crate) fn is_silent(program: &str) -> bool {
    has_word(SILENT, program)
}

/// Returns whether the program surely makes no check.
pub(crate) fn is_harmless(program: &str, subcommand: &str) -> bool {
    let by_subcommand = |(name, list): &(&str, &str)| *name == program && has_word(list, subcommand);
    has_word(HARMLESS, program) || HARMLESS_SUBCOMMANDS.iter().any(by_subcommand)
}

/// Returns whether the command replaces files of the project with others.
pub(crate) fn replaces_files(program: &str, subcommand: &str) -> bool {
    program == "git" && has_word(GIT_REPLACING, subcommand)
}

/// Programs that run scripts or targets of the project by name.
const SCRIPT_RUNNERS: &str =
    "npm pnpm yarn bun make gmake just task rake nox tox composer sbt ninja turbo nx lerna mise hatch pdm poe invoke inv";

/// Returns the kinds of checks that the name of a script or target promises: `npm run lint`.
/// `None` if the program runs no scripts or the name promises nothing.
pub(crate) fn script_kinds(program: &str, script: &str) -> Option<Kinds> {
    if !has_word(SCRIPT_RUNNERS, program) {
        return None;
    }
    let part = script.split([':', '-', '_', '/']).map(|part| match part {
        "test" | "tests" | "unit" | "e2e" | "spec" | "t" | "pytest" | "jest" | "vitest" => Some(TEST),
        "build" | "compile" | "bundle" => Some(BUILD),
        "lint" | "eslint" | "ruff" | "clippy" | "vet" => Some(LINT),
        "typecheck" | "types" | "type" | "tsc" | "mypy" => Some(TYPES),
        "format" | "fmt" | "prettier" => Some(FORMAT),
        "check" | "ci" | "verify" | "validate" | "all" => Some(Kinds::ALL),
        _ => None,
    });
    part.flatten().next()
}
