//! Maps of source trees.

use super::*;

#[tokio::test]
async fn definitions_of_each_language_are_found() {
    let sources = [
        (
            "a.rs",
            "pub struct One<T> {\n    x: T,\n}\nimpl One<u8> {\n    pub async fn two(\n        &self,\n        x: u8,\n    ) -> u8 {\n        x\n    }\n}\n\
             trait Three {\n    fn four();\n}\nmod five {}\nmod not;\nconst SIX: u8 = 6;\nenum Seven { A }\nmacro_rules! eight { () => {} }\n",
            "1: pub struct One<T>|5: pub async fn two( &self, x: u8, ) -> u8|12: trait Three|13: fn four()|15: mod five|17: const SIX: u8 = 6|\
             18: enum Seven|19: macro_rules! eight { () => {} }",
        ),
        (
            "b.py",
            "ONE = 1\n\nclass Two(Base):\n    def three(self, x: int) -> str:\n        four = 4\n\n@deco\nasync def five(\n    x,\n):\n    pass\n",
            "1: ONE = 1|3: class Two(Base)|4: def three(self, x: int) -> str|8: async def five( x, )",
        ),
        (
            "c.ts",
            "export interface One { two(): void }\ntype Three = string;\nexport enum Four { A }\nabstract class Five { abstract six(): void; seven() {} }\n\
             export const eight = (x: number): number => {\n  return x\n}\nexport function nine(x: string) { let inner = 1 }\nnamespace Ten {}\n",
            "1: export interface One|1: two(): void|2: type Three = string|3: export enum Four|4: abstract class Five|4: abstract six(): void|4: seven()|\
             5: export const eight = (x: number): number =>|8: export function nine(x: string)|9: namespace Ten",
        ),
        (
            "d.tsx",
            "export const One = () => <p/>;\nfunction Two() { return <One/> }\n",
            "1: export const One = () => <p/>|2: function Two()",
        ),
        (
            "e.js",
            "class One { two() {} constructor() {} }\nfunction* three() {}\nconst four = function () {}\nmodule.exports.five = () => 5\nvar six = 6\nlet seven = 7\n",
            "1: class One|1: two()|1: constructor()|2: function* three()|3: const four = function () {}|4: module.exports.five = () => 5|6: let seven = 7",
        ),
        (
            "f.go",
            "package p\n\ntype One struct {\n\tx int\n}\n\nfunc (o *One) Two(x int) error {\n\treturn nil\n}\n\nfunc three() {}\n\nconst (\n\tFour = 4\n)\n\nvar Five = 5\n\ntype Six = One\n",
            "3: One struct|7: func (o *One) Two(x int) error|11: func three()|14: Four = 4|17: Five = 5|19: Six = One",
        ),
        (
            "g.c",
            "#define ONE 1\n#define TWO(x) (x)\nstruct three {\n    int x;\n};\nstruct three;\ntypedef struct {\n    int y;\n} four;\nenum five { A };\n\
             static int *six(int x)\n{\n    return 0;\n}\nint seven(void);\nint eight(void) { return 0; }\n",
            "1: #define ONE 1|2: #define TWO(x) (x)|3: struct three|9: typedef struct … four|10: enum five|11: static int *six(int x)|15: int seven(void)|16: int eight(void)",
        ),
        (
            "h.cpp",
            "namespace n {\nclass One : public Base {\npublic:\n    int two(int x) const;\n    int three() { return 3; }\n};\n\
             int One::two(int x) const {\n    return x;\n}\nconst int &n::m::four() { return x; }\nusing Five = int;\ntemplate <class T> T six(T x) { return x; }\n}\n",
            "2: class One : public Base|4: int two(int x) const|5: int three()|7: int One::two(int x) const|10: const int &n::m::four()|11: using Five = int|12: T six(T x)",
        ),
        (
            "i.h",
            "#pragma once\nclass One {\n    void two();\n};\nvoid three(void);\n",
            "2: class One|3: void two()|5: void three(void)",
        ),
        (
            "J.java",
            "package p;\npublic class One extends Two {\n    public One(int x) { }\n    @Override\n    public String three() { return null; }\n    interface Four { void five(); }\n}\n\
             enum Six { A }\nrecord Seven(int x) { }\n",
            "2: public class One extends Two|3: public One(int x)|5: @Override public String three()|6: interface Four|6: void five()|8: enum Six|9: record Seven(int x)",
        ),
    ];
    for (path, source, expected) in sources {
        let world = World::with_files(&[(path, source)]);
        let lines = expected.replace('|', "\n  ");
        assert_eq!(world.told("repo_map", json!({})).await, format!("ok {path}:\n  {lines}\n"), "{path}");
    }
}

/// A tree with a core that all files use, a helper that one file uses, and an unused file.
fn tree() -> World {
    let world = World::with_files(&[
        ("src/core.rs", "pub struct Engine;\nimpl Engine {\n    pub fn ignite(&self) {}\n    fn unseen(&self) {}\n}\n"),
        ("src/helper.rs", "pub fn assist() {}\n"),
        ("src/alone.rs", "fn lonely() {}\n"),
        ("tests/engine.rs", "fn ignites() { Engine.ignite() }\n"),
        (".gitignore", "built/\n"),
        ("built/x.rs", "fn built() { assist() }\n"),
        ("README.md", "Engine\n"),
    ]);
    for number in 0..5 {
        world.put(&format!("src/use_{number}.rs"), format!("fn user_{number}(engine: &Engine) {{ engine.ignite() }}\n"));
    }
    world.put("src/use_0.rs", "fn user_0(engine: &Engine) { assist() }\n");
    world
}

#[tokio::test]
async fn most_mentioned_definitions_come_first() {
    let world = tree();
    let told = world.told("repo_map", json!({"budget_tokens": 25})).await;
    let shown = "src/core.rs:\n  1: pub struct Engine\n  3: pub fn ignite(&self)\nsrc/helper.rs:\n  1: pub fn assist()\n";
    assert!(told.starts_with(&format!("ok {shown}")), "{told}");
    assert!(told.ends_with("[3 of 11 definitions in 9 files; set path or raise budget_tokens to see more]"), "{told}");
    let output = world.call("repo_map", json!({"path": "src"})).await.unwrap();
    assert_eq!(output.details, json!({"files": 8, "definitions": 10, "shown": 10, "truncated": false}));
    let told = plain_text(&output.parts);
    assert!(told.starts_with("src/core.rs:\n  1: pub struct Engine\n  3: pub fn ignite(&self)\n  4: fn unseen(&self)\n"), "{told}");
    assert!(!told.contains("built"), "{told}");
    assert_eq!(world.told("repo_map", json!({"path": "src/helper.rs"})).await, "ok src/helper.rs:\n  1: pub fn assist()\n");
}

#[tokio::test]
async fn map_fits_its_budget() {
    let world = World::new();
    for number in 0..300 {
        world.put(&format!("src/file_{number}.py"), format!("def function_with_a_name_{number}(argument, another):\n    pass\n"));
    }
    for (budget, most) in [(json!(null), 8_000), (json!(100), 400), (json!(1_000_000), 80_000)] {
        let told = world.told("repo_map", json!({ "budget_tokens": budget })).await;
        let map = told.strip_prefix("ok ").unwrap();
        let map = map.split('[').next().unwrap();
        assert!(map.len() <= most && (map.len() > most - 90 || !told.contains('[')), "{budget}: {} bytes", map.len());
    }
}

#[tokio::test]
async fn changed_files_are_read_again_and_hidden_files_are_omitted() {
    let mut world = tree();
    let before = world.told("repo_map", json!({})).await;
    assert_eq!(world.told("repo_map", json!({})).await, before);
    world.put("src/helper.rs", "\npub fn assist(more: u8) {}\n");
    let after = world.told("repo_map", json!({})).await;
    assert_eq!(after, before.replace("  1: pub fn assist()", "  2: pub fn assist(more: u8)"));
    std::fs::remove_file(world.path("src/alone.rs")).unwrap();
    assert!(!world.told("repo_map", json!({})).await.contains("lonely"));
    let secret = world.path("src/core.rs");
    world.context.path_filter = Some(Arc::new(move |real: &Path| real == secret));
    assert!(!world.told("repo_map", json!({})).await.contains("core.rs"));
}

#[tokio::test]
async fn unsupported_and_skipped_files_are_reported() {
    let world = World::with_files(&[
        ("a.txt", "fn x() {}"),
        ("broken.rs", "fn ok() {}\nfn ((((\nstruct {{{ fn also() {}\n"),
        ("bytes.c", ""),
    ]);
    std::fs::create_dir(world.path("empty")).unwrap();
    world.put("bytes.c", b"int one(void);\0\xff\xfe int two(void);\n");
    world.put("huge.py", "def x():\n    pass\n".repeat(40_000));
    let none = "error empty has no source files in a supported language (Rust, Python, TypeScript, TSX, JavaScript, Go, C, C++, Java); use list";
    assert_eq!(world.told("repo_map", json!({"path": "empty"})).await, none);
    let told = world.told("repo_map", json!({"path": "none"})).await;
    assert_eq!(told, "error mapping none: No such file or directory (os error 2)");
    let told = world.told("repo_map", json!({})).await;
    assert!(told.contains("fn ok()") && told.contains("int one(void)"), "{told}");
    assert!(told.ends_with("[1 files were skipped: too large, too many or too slow to read; set path]"), "{told}");
}
