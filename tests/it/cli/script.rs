//! Paths of the scripted model that are not regular files of bounded size.

use std::process::Command;

use super::check;
use harness::Home;

#[tokio::test]
async fn script_must_be_regular_file_of_bounded_size() {
    let home = Home::new();
    let pipe = home.work().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let large = home.work().join("large");
    std::fs::File::create(&large).unwrap().set_len(harness::limits::SCRIPT_BYTES_MAX + 1).unwrap();
    let link = home.work().join("link");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    let cases = [
        (pipe.as_path(), "regular file"),
        ("/".as_ref(), "directory"),
        (large.as_path(), "larger than"),
        (link.as_path(), "regular file"),
        ("/dev/zero".as_ref(), "regular file"),
    ];
    for (path, word) in cases {
        let ran = home.run(&["run", "--model", &format!("scripted:{}", path.display()), "go"], "").await;
        check(&ran, 1, &[word, &path.display().to_string()]);
    }
    // A symbolic link to a script is valid.
    let model = home.script(serde_json::json!([{"text": "from a link"}]));
    std::os::unix::fs::symlink(model.strip_prefix("scripted:").unwrap(), home.work().join("linked.json")).unwrap();
    check(&home.run(&["run", "--model", "scripted:linked.json", "go"], "").await, 0, &["from a link"]);
}
