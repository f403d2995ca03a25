//! Secrets and names that are planted in a session are not in its recording.

use serde_json::json;

use super::{export, files, replay, repository, session};
use harness::steps::{bash, call, calls, write};

/// Texts that must not occur, and where they come from.
const PLANTED: [(&str, &str); 16] = [
    ("variable of a provider", "anthropic-4711-secret-key"),
    ("variable by its name", "hunter2-hunter2"),
    ("header in the settings", "header-secret-0815"),
    ("base64 of a variable", "aHVudGVyMi1odW50ZXIy"),
    ("known form", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("private key", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
    ("credentials in a URL", "alice:letmein"),
    ("variable of a database", "dbsecret01"),
    ("hexadecimal of a variable", "64627365637265743031"),
    ("assignment in a file", "dotenv-secret-99"),
    ("bearer token", "abcDEF123456789.zz"),
    ("known form of another service", "rk_live_abcdefghijklmnop1234"),
    ("private key in a diff", "b3BlbnNzaC1rZXktdjEAAAAA"),
    ("password with a slash in a URL", "ss-word@db"),
    ("user", "janedoe"),
    ("host", "janes-laptop"),
];

#[tokio::test]
async fn planted_secrets_and_names_are_masked_in_every_file() {
    needs_linux!("sandbox");
    let home = repository();
    home.env("ANTHROPIC_API_KEY", "anthropic-4711-secret-key");
    home.env("DEPLOY_PASSWORD", "hunter2-hunter2");
    home.env("DB_PASS", "dbsecret01");
    home.env("USER", "janedoe");
    home.env("HOSTNAME", "janes-laptop");
    home.config("[providers.own]\nbase_url = \"https://example.com/v1\"\nheaders = { x-auth = \"header-secret-0815\" }\n");
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n";
    let all = PLANTED
        .map(|(_, text)| text)
        .join("\n")
        .replace("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "")
        .replace("alice:letmein", "https://alice:letmein@example.com/x")
        .replace("ss-word@db", "postgres://u:pa/ss-word@db")
        .replace("dotenv-secret-99", "SMTP_PASSWORD=dotenv-secret-99")
        .replace("abcDEF123456789.zz", "Authorization: Bearer abcDEF123456789.zz")
        .replace(
            "b3BlbnNzaC1rZXktdjEAAAAA",
            "------BEGIN OPENSSH PRIVATE KEY-----\n-b3BlbnNzaC1rZXktdjEAAAAA\n------END OPENSSH PRIVATE KEY-----",
        );
    home.put("secrets.txt", &format!("{all}\n{key}"));
    home.put("AGENTS.md", "Ask janedoe.\nThe token is ghp_abcdefghijklmnopqrstuvwxyz0123456789.\n");
    let outside = home.work().join("../elsewhere.txt");
    std::fs::write(&outside, "x\n").unwrap();
    let steps = json!([
        calls(&[call("read", json!({"file_path": "secrets.txt"}))]),
        bash("cat secrets.txt; echo $DEPLOY_PASSWORD"),
        write("copy.txt", &all),
        {"text": format!("The key is anthropic-4711-secret-key, in {}", outside.display())},
    ]);
    let id = session(&home, steps, &["-p", "Use header-secret-0815 of janedoe."]).await;
    let exported = export(&home, &id).await;
    assert!(
        exported.stdout.contains("masked: host (") && exported.stdout.contains("keys (") && exported.stdout.contains("user ("),
        "{exported:?}"
    );
    let top = home.work().parent().unwrap().to_str().unwrap().to_owned();
    for (path, text) in files(&home.work().join("../recording")) {
        for (what, planted) in PLANTED.iter().chain(&[("home", top.as_str())]) {
            assert!(!text.contains(planted), "{what} in {path:?}: {text}");
        }
    }
    let read = home.get("../recording/expected/requests.json").unwrap();
    assert!(read.contains("masked-key") && read.contains("masked-user") && read.contains("masked-host"), "{read}");
    assert_eq!(replay(&home, &[]).await.code, 0);
}
