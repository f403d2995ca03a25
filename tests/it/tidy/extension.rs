//! The VS Code extension: one file calls VS Code's own UI, so that each text passes its `plain`.

use super::source::{assert_none, package};

/// The file that calls the UI.
const UI: &str = "ui.ts";

/// Members of `vscode.window` that show no text.
const WINDOW: &[&str] = &[
    "activeTerminal",
    "activeTextEditor",
    "onDidChangeActiveTextEditor",
    "onDidChangeTextEditorSelection",
    "onDidCloseTerminal",
    "onDidStartTerminalShellExecution",
    "registerWebviewPanelSerializer",
    "registerWebviewViewProvider",
    "state",
    "tabGroups",
    "visibleTextEditors",
];

/// Code that shows texts in another way, or hides a use of `vscode.window`.
const REFUSED: &[&str] = &[
    "MarkdownString",
    "new vscode.TreeItem",
    "vscode.diff",
    "vscode[",
    "vscode;",
    "vscode,",
    "vscode)",
    "} from \"vscode\"",
    "import(\"vscode\")",
    "require(\"vscode\")",
    ".tooltip =",
    ".badge =",
    "panel.title =",
    "inputBox.value =",
];

/// Returns what is wrong with a line of a file of the extension.
fn problem(line: &str) -> Option<String> {
    let code = line.trim_start();
    if code.starts_with("//") || code.starts_with('*') || code.starts_with("/*") || code == "import * as vscode from \"vscode\";" {
        return None;
    }
    if let Some(refused) = REFUSED.iter().find(|refused| code.contains(**refused)) {
        return Some(format!("{refused}: use {UI}"));
    }
    let mut uses = code.split("vscode.window").skip(1);
    uses.find_map(|rest| {
        let name = rest.strip_prefix('.').unwrap_or_default();
        let name = name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        (!WINDOW.contains(&name)).then(|| format!("vscode.window.{name}: use {UI}"))
    })
}

#[test]
fn texts_reach_the_ui_of_vs_code_through_one_file() {
    let directory = package().join("editors/vscode/src");
    let mut findings = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == UI {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            findings.extend(problem(line).map(|problem| format!("editors/vscode/src/{name}:{}: {problem}", number + 1)));
        }
    }
    assert_none("calls of VS Code's UI outside of ui.ts", findings);
}

#[test]
fn calls_of_the_ui_are_found() {
    for line in [
        "void vscode.window.showInformationMessage(text);",
        "const { showErrorMessage } = vscode.window;",
        "const { window } = vscode;",
        "const ui = [vscode, 1];",
        "use(vscode);",
        "vscode[\"window\"].showQuickPick([]);",
        "import { window } from \"vscode\";",
        "const item = new vscode.TreeItem(title);",
        "await vscode.commands.executeCommand(\"vscode.diff\", a, b, title);",
        "item.tooltip = new vscode.MarkdownString(text);",
    ] {
        assert!(problem(line).is_some(), "{line}");
    }
    for line in
        ["const editor = vscode.window.activeTextEditor;", "// vscode.window.showQuickPick", "import * as vscode from \"vscode\";"]
    {
        assert_eq!(problem(line), None, "{line}");
    }
}
