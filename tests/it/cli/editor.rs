//! `nuncio config editor` prints the snippets of `editors/` with the path of the program, and
//! writes them into the configuration of editors.

use super::check;
use harness::{CommandResult, Home};
use std::os::unix::fs::PermissionsExt;

/// The path of the program under test, as it appears in snippets.
fn program() -> String {
    std::fs::canonicalize(harness::program()).unwrap().display().to_string()
}

/// Runs the command with a home directory of its own.
async fn editor(home: &Home, arguments: &[&str]) -> CommandResult {
    let directory = home.work().display().to_string();
    home.env("HOME", &directory);
    home.env("XDG_CONFIG_HOME", &format!("{directory}/.config"));
    home.run(&[&["config", "editor"], arguments].concat(), "").await
}

/// Name of the editor, its snippet, the path of its file relative to the home directory, and the
/// end of the line that the user adds to the own configuration.
const EDITORS: &[(&str, &str, &str, Option<&str>)] = &[
    ("zed", "zed/settings.json", ".config/zed/settings.json", None),
    ("jetbrains", "jetbrains/acp.json", ".jetbrains/acp.json", None),
    ("vscode", "vscode.json", ".config/Code/User/settings.json", None),
    ("vscodium", "vscode.json", ".config/VSCodium/User/settings.json", None),
    ("cursor", "vscode.json", ".config/Cursor/User/settings.json", None),
    ("windsurf", "vscode.json", ".config/Windsurf/User/settings.json", None),
    ("codecompanion", "nvim/codecompanion.lua", ".config/nvim/nuncio/codecompanion.lua", Some("dofile(FILE)")),
    ("avante", "nvim/avante.lua", ".config/nvim/nuncio/avante.lua", Some("dofile(FILE)")),
    ("agentic", "nvim/agentic.lua", ".config/nvim/nuncio/agentic.lua", Some("dofile(FILE)")),
    ("emacs", "emacs/nuncio.el", ".emacs.d/nuncio.el", Some("(load FILE)")),
];

#[tokio::test]
async fn snippets_start_this_program() {
    let home = Home::new();
    for (name, snippet, file, load) in EDITORS {
        let printed = editor(&home, &[name]).await;
        check(&printed, 0, &[&format!("\"{}\"", program())]);
        let source = std::fs::read_to_string(harness::package("editors").join(snippet)).unwrap();
        let changed: Vec<(&str, &str)> = source.lines().zip(printed.stdout.lines()).filter(|(one, other)| one != other).collect();
        assert_eq!((changed.len(), source.lines().count()), (1, printed.stdout.lines().count()), "{name}: {changed:?}");
        assert_eq!(changed[0].0.replace("\"nuncio\"", &format!("\"{}\"", program())), changed[0].1, "{name}");
        assert_eq!(home.get(file), None, "printing writes nothing");

        let written = editor(&home, &[name, "--write"]).await;
        let path = home.work().join(file);
        check(&written, 0, &[&format!("wrote {}\n", path.display())]);
        if let Some(load) = load {
            check(&written, 0, &[&load.replace("FILE", &format!("\"{}\"", path.display()))]);
            assert_eq!(home.get(file).as_ref(), Some(&printed.stdout));
        }
        assert!(home.get(file).unwrap().contains(&program()), "{name}");
        check(&editor(&home, &[name, "--write"]).await, 0, &["already starts this nuncio"]);
        assert!(!path.with_file_name(format!("{}.backup-1", path.file_name().unwrap().display())).exists(), "{name}");
    }
}

/// Settings before and after `--write`; PROGRAM stands for the path of the program.
const MERGED: &[(&str, &str, &str)] = &[
    ("vscode", "", "{\n  \"nuncio.command\": PROGRAM\n}\n"),
    ("vscode", "{}", "{\n  \"nuncio.command\": PROGRAM\n}"),
    ("vscode", "{ \"nuncio.command\": \"old\", \"a\": 1 }\n", "{ \"nuncio.command\": PROGRAM, \"a\": 1 }\n"),
    ("vscode", "\u{feff}{\r\n  \"a\": [1, 2,],\r\n}", "\u{feff}{\r\n  \"nuncio.command\": PROGRAM,\r\n  \"a\": [1, 2,],\r\n}"),
    (
        "zed",
        "// Zed\n{\n  // theme\n  \"theme\": \"One /* no comment */\",\n}\n",
        "// Zed\n{\n  \"agent_servers\": {\n    \"nuncio\": {\n      \"type\": \"custom\",\n      \"command\": PROGRAM,\n      \"args\": [\n        \"acp\"\n      ],\n      \"env\": {}\n    }\n  },\n  // theme\n  \"theme\": \"One /* no comment */\",\n}\n",
    ),
    (
        "zed",
        "{\"agent_servers\": /* mine */ {\"other\": {}}, \"x\": null}",
        "{\"agent_servers\": /* mine */ {\n    \"nuncio\": {\n      \"type\": \"custom\",\n      \"command\": PROGRAM,\n      \"args\": [\n        \"acp\"\n      ],\n      \"env\": {}\n    },\"other\": {}}, \"x\": null}",
    ),
    // The arguments and the environment are the user's.
    (
        "jetbrains",
        r#"{"agent_servers": {"nuncio": {"command": "nuncio", "args": ["acp", "--mode", "plan"], "env": {"KEY": "k\u00fc"}}}}"#,
        r#"{"agent_servers": {"nuncio": {"command": PROGRAM, "args": ["acp", "--mode", "plan"], "env": {"KEY": "k\u00fc"}}}}"#,
    ),
];

#[tokio::test]
async fn settings_are_merged_and_the_old_file_is_kept() {
    for (name, before, after) in MERGED {
        let home = Home::new();
        let file = home.put("settings.json", before);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        let link = home.work().join("link.json");
        std::os::unix::fs::symlink("settings.json", &link).unwrap();
        check(&editor(&home, &[name, "--write", "link.json"]).await, 0, &["settings.json.backup-1"]);
        assert_eq!(home.get("settings.json").unwrap(), after.replace("PROGRAM", &format!("\"{}\"", program())), "{name}: {before}");
        assert_eq!(home.get("settings.json.backup-1").as_deref(), Some(*before));
        for copy in ["settings.json", "settings.json.backup-1"] {
            let mode = std::fs::metadata(home.work().join(copy)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640, "{copy}");
        }
        assert!(link.is_symlink());

        // An earlier copy is not overwritten.
        home.put("settings.json", before);
        check(&editor(&home, &[name, "--write", "settings.json"]).await, 0, &["settings.json.backup-2"]);
        assert_eq!(home.get("settings.json.backup-1").as_deref(), Some(*before));
    }
}

#[tokio::test]
async fn settings_that_cannot_be_merged_are_not_changed() {
    let cases = [
        ("zed", "{ \"a\": 1"),
        ("zed", "[]"),
        ("zed", "{} {}"),
        ("zed", "{ \"agent_servers\": [] }"),
        ("zed", "{ \"a\": 1, /* open"),
        ("jetbrains", "{ 'a': 1 }"),
        ("jetbrains", "agent_servers:"),
        ("vscode", "{ \"a\": 1,, \"b\": 2 }"),
        ("vscode", "{ \"nuncio.command\": \"a\", \"nuncio.command\": \"b\" \"c\" }"),
    ];
    let home = Home::new();
    for (name, before) in cases {
        home.put("settings.json", before);
        let ran = editor(&home, &[name, "--write", "settings.json"]).await;
        check(&ran, 2, &["settings.json cannot be merged safely", "without --write, it is printed"]);
        assert_eq!(home.get("settings.json").as_deref(), Some(before));
        assert_eq!(std::fs::read_dir(home.work()).unwrap().count(), 1, "{before}: no copies");
    }
}

#[tokio::test]
async fn unknown_editors_are_an_error_with_the_names() {
    let home = Home::new();
    let names: Vec<&str> = EDITORS.iter().map(|(name, ..)| *name).collect();
    check(&editor(&home, &["vim"]).await, 2, &[&["vim"], &names[..]].concat());
    check(&editor(&home, &[]).await, 2, &["<NAME>"]);
    check(&editor(&home, &["zed", "--write", "no/such/dir/\u{1}"]).await, 0, &["wrote"]);
    check(&editor(&home, &["avante", "--write", "\u{1}.lua"]).await, 2, &["cannot be written into settings"]);
}
