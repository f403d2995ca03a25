//! Patches that would overwrite a file.

use serde_json::json;

use super::told;
use harness::Home;

#[tokio::test]
async fn patch_does_not_add_or_move_over_an_existing_file() {
    for (patch, expected) in [
        ("*** Begin Patch\n*** Add File: b\n+new\n*** End Patch", "b: the file exists; update it, or delete it"),
        ("*** Begin Patch\n*** Add File: empty\n+new\n*** End Patch", "empty: the file exists"),
        ("*** Begin Patch\n*** Add File: link\n+new\n*** End Patch", "link: the file exists"),
        ("--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+new\n", "b: the file exists"),
        ("diff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+new\n", "b: the file exists"),
        ("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch", "b exists, so no file is moved there"),
        ("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-a\n+c\n*** End Patch", "b exists"),
        ("diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n", "b exists"),
        ("*** Begin Patch\n*** Add File: new\n+1\n*** Add File: b\n+2\n*** End Patch", "nothing was changed"),
    ] {
        let home = Home::new();
        home.put("a", "a\n");
        home.put("b", "b\n");
        home.put("empty", "");
        std::os::unix::fs::symlink("b", home.work().join("link")).unwrap();
        let text = told(&home, "apply_patch", &json!({ "patch": patch })).await;
        assert!(text.starts_with("error: ") && text.contains(expected), "{patch}: {text}");
        let files = ["a", "b", "empty", "link", "new"].map(|name| home.get(name));
        assert_eq!(files, [Some("a\n"), Some("b\n"), Some(""), Some("b\n"), None].map(|text| text.map(str::to_owned)), "{patch}");
    }
}
