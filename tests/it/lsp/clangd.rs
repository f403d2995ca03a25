//! The main path with a real language server, clangd.

use serde_json::json;

use super::{diagnostics, outputs, write};
use harness::Home;

/// A trusted home, or `None` if clangd is not installed.
async fn home() -> Option<Home> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&search).any(|directory| directory.join("clangd").is_file()) {
        eprintln!("skipped: clangd is not on PATH");
        return None;
    }
    let home = Home::new();
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    Some(home)
}

#[tokio::test]
async fn edits_of_c_files_show_new_diagnostics() {
    let Some(home) = home().await else { return };
    home.put("a b.h", "int answer(void);\n");
    home.put("main.c", "#include \"a b.h\"\nint main(void) { return answer(); }\n");
    let edit = json!({"tool_calls": [{"name": "edit", "input": {
        "file_path": "main.c", "old_string": "return answer();", "new_string": "return \"é\" + questoin;",
    }}]});
    let mend = json!({"tool_calls": [{"name": "edit", "input": {"file_path": "main.c", "old_string": "questoin", "new_string": "answer()"}}]});
    let steps = [diagnostics("main.c"), edit, mend, diagnostics("main.c"), write("b.c", "int x = y;\nint z = ;\n")];
    let outputs = outputs(&home, &steps).await;
    let told: Vec<&str> = outputs.iter().map(|(told, _)| told.as_str()).collect();
    assert_eq!(told[0], "no diagnostics in main.c");
    assert_eq!(
        told[1],
        "new diagnostics in main.c:\nmain.c:2:31: error: Use of undeclared identifier 'questoin' [clang undeclared_var_use]\n"
    );
    // clang reports a warning for the fixed line, and the warning is new.
    assert!(told[2].starts_with("new diagnostics in main.c:\nmain.c:2:"), "{told:?}");
    assert!(told[2].contains(": warning: ") && !told[2].contains(": error: "), "{told:?}");
    assert_eq!(told[3], told[2].strip_prefix("new diagnostics in main.c:\n").unwrap());
    let errors = told[4].strip_prefix("errors in b.c:\n").unwrap();
    let lines: Vec<&str> = errors.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("b.c:1:9: error: ") && lines[1].starts_with("b.c:2:9: error: "), "{told:?}");
}

#[tokio::test]
async fn killed_nuncio_leaves_no_clangd() {
    let Some(home) = home().await else { return };
    home.put("a.c", "int x = y;\n");
    let (mut agent, session) = home.session(json!([diagnostics("a.c")]), &[]).await;
    agent.turn(&session, "go").await;
    let runs = |agent: &harness::Agent| {
        let command = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        harness::marked(&agent.marker).into_iter().filter(|pid| command(*pid).starts_with("clangd")).count()
    };
    assert_eq!(runs(&agent), 1);
    agent.kill().await;
}
