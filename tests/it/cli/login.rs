//! `nuncio login` and `nuncio logout`: stored API keys.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::check;
use crate::providers::lists::OK;
use harness::{Home, Site};

/// A home whose provider `work` is this site, with the keys that it accepts.
async fn home() -> (Home, Site) {
    let (home, site) = (Home::new(), Site::start().await);
    home.config(&format!("[providers.work]\nbase_url = \"{}\"\n", site.url("/work")));
    site.page("/work/models", OK, json!({"data": [{"id": "a"}, {"id": "b"}]}).to_string());
    (home, site)
}

#[tokio::test]
async fn stored_key_is_sent_until_it_is_removed() {
    let (home, site) = home().await;
    check(&home.run(&["login", "--list"], "").await, 0, &["no provider has an API key", "nuncio login"]);
    let file = home.data().join("keys.json");
    check(&home.run(&["login", "work"], " sk-secret-1\n").await, 0, &[&file.display().to_string(), "accepted; 2 models"]);
    assert!(site.asked()[0].to_lowercase().contains("authorization: bearer sk-secret-1\r\n"), "{:?}", site.asked());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = home.run(&["login", "--list"], "").await;
    check(&listed, 0, &["work", "nuncio login, in", "keys.json"]);
    let json = home.run(&["login", "--list", "--json"], "").await;
    assert_eq!(json.lines()[0]["provider"], "work", "{json:?}");
    let doctor = home.run(&["doctor", "--model", &home.script(json!([]))], "").await;
    check(&doctor, 0, &["ok   key", "work: from nuncio login, in"]);
    let ran = home.run(&["models", "--refresh"], "").await;
    assert!(site.asked().last().unwrap().contains("sk-secret-1"), "{ran:?}");
    // A second key replaces it.
    check(&home.run(&["login", "work"], "sk-secret-2").await, 0, &["accepted"]);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("sk-secret-1"));
    check(&home.run(&["logout"], "").await, 0, &["removed the API key of work"]);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("sk-secret"));
    check(&home.run(&["logout", "work"], "").await, 0, &["no API key of work is stored"]);
    check(&home.run(&["logout"], "").await, 0, &["no API key is stored"]);
    for ran in [listed, json, ran] {
        assert!(!format!("{ran:?}").contains("sk-secret"), "{ran:?}");
    }
}

#[tokio::test]
async fn refused_key_is_not_stored() {
    let (home, site) = home().await;
    check(&home.run(&["login", "work"], "sk-good-key").await, 0, &["accepted"]);
    site.page("/work/models", "401 Unauthorized", r#"{"error":{"message":"bad key sk-wrong-key"}}"#);
    let refused = home.run(&["login", "work"], "sk-wrong-key").await;
    assert!(refused.code != 0 && refused.stderr.contains("the key was refused"), "{refused:?}");
    let stored = std::fs::read_to_string(home.data().join("keys.json")).unwrap();
    assert!(stored.contains("sk-good-key") && !stored.contains("sk-wrong-key"), "{stored}");
    assert!(!format!("{refused:?}").contains("sk-wrong-key"), "{refused:?}");
    // If the check fails for another reason, the key is stored.
    site.page("/work/models", "500 Internal Server Error", "");
    check(&home.run(&["login", "work"], "sk-other-key").await, 0, &["not checked", "HTTP 500"]);
    check(&home.run(&["login", "work", "--no-check"], "sk-other-key").await, 0, &["(not checked)"]);
}

#[tokio::test]
async fn settings_and_variables_precede_stored_keys() {
    let (home, site) = home().await;
    home.env("WORK_KEY", "from-the-variable");
    home.config(&format!("{}api_key_env = \"WORK_KEY\"\n", home.config_text()));
    check(&home.run(&["login", "work"], "sk-stored-key").await, 0, &["$WORK_KEY precedes it"]);
    home.run(&["models", "work"], "").await;
    assert!(site.asked().iter().all(|asked| !asked.contains("sk-stored-key")), "{:?}", site.asked());
    home.env("WORK_KEY", "");
    home.run(&["models", "work", "--refresh"], "").await;
    assert!(site.asked().last().unwrap().contains("sk-stored-key"), "{:?}", site.asked());
    // A built-in provider with a stored key is the default.
    check(&home.run(&["login", "groq", "--no-check"], "sk-groq-key").await, 0, &["keys.json"]);
    home.env("GROQ_BASE_URL", "http://127.0.0.1:1/v1");
    check(&home.run(&["doctor"], "").await, 1, &["FAIL model     groq/"]);
    let several = home.run(&["logout"], "").await;
    check(&several, 2, &["groq, work"]);
}

/// Stands in for `secret-tool`, which needs a session of the desktop.
const SECRET_TOOL: &str = r#"#!/bin/sh
echo "$@" >> "$KEYRING/calls"
test -e "$KEYRING/unlocked" || exit 1
action=$1; shift
case $1 in --label=*) shift;; esac
case $action in
store) cat > "$KEYRING/$6" ;;
lookup) cat "$KEYRING/$6" ;;
clear) rm "$KEYRING/$6" ;;
esac
"#;

#[tokio::test]
async fn keyring_is_used_if_there_is_one() {
    let (home, site) = home().await;
    let tool = home.put("../bin/secret-tool", SECRET_TOOL);
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let unlocked = home.put("../keyring/unlocked", "");
    let keyring = unlocked.parent().unwrap().to_owned();
    home.env("PATH", &format!("{}:/usr/bin:/bin", tool.parent().unwrap().display()));
    home.env("KEYRING", keyring.to_str().unwrap());
    let file = || std::fs::read_to_string(home.data().join("keys.json")).unwrap_or_default();
    // Without a session bus, there is no keyring.
    check(&home.run(&["login", "work"], "sk-secret-key").await, 0, &["keys.json"]);
    home.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
    check(&home.run(&["login", "work"], "sk-secret-key").await, 0, &["in the keyring (accepted; 2 models)"]);
    assert!(!file().contains("sk-secret-key"), "{}", file());
    assert_eq!(std::fs::read_to_string(keyring.join("work")).unwrap(), "sk-secret-key");
    assert!(site.asked().last().unwrap().contains("sk-secret-key"));
    check(&home.run(&["login", "--list"], "").await, 0, &["nuncio login, in the keyring"]);
    // A locked keyring.
    std::fs::remove_file(&unlocked).unwrap();
    check(&home.run(&["models", "work", "--refresh"], "").await, 3, &["from the keyring", "unlock the keyring"]);
    check(&home.run(&["login", "work"], "sk-secret-key").await, 0, &["keys.json"]);
    home.put("../keyring/unlocked", "");
    check(&home.run(&["login", "work"], "sk-secret-key").await, 0, &["in the keyring"]);
    check(&home.run(&["login", "work", "--file"], "sk-secret-key").await, 0, &["keys.json"]);
    assert!(!keyring.join("work").exists(), "the key is in the keyring and in the file");
    check(&home.run(&["login", "work"], "sk-secret-key").await, 0, &["in the keyring"]);
    check(&home.run(&["logout"], "").await, 0, &["removed"]);
    assert!(!keyring.join("work").exists());
    let calls = std::fs::read_to_string(keyring.join("calls")).unwrap();
    assert!(!calls.contains("sk-secret-key"), "the key is an argument: {calls}");
}

#[tokio::test]
async fn invalid_logins_are_errors_and_store_nothing() {
    let (home, _site) = home().await;
    let long = "x".repeat(20_000);
    for (arguments, input, message) in [
        (&["login"][..], "key", "the name of a provider is missing"),
        (&["login", "antropic"], "key", "did you mean `anthropic`?"),
        (&["login", "work"], " \n", "the API key is empty"),
        (&["login", "work"], "two words", "not an API key"),
        (&["login", "work"], &long, "not an API key"),
        (&["login", "work", "sk-key"], "", "unexpected argument"),
    ] {
        check(&home.run(arguments, input).await, 2, &[message]);
    }
    assert!(!home.data().join("keys.json").exists());
    home.put("../home/keys.json", "{");
    check(&home.run(&["login", "work"], "sk-key").await, 2, &["the content is invalid", "remove the file"]);
}

/// Editors append the arguments of the authentication method to their own command.
#[tokio::test]
async fn key_that_is_typed_at_a_terminal_is_not_shown() {
    let (home, _site) = home().await;
    let mut agent = home.start(&[]).await;
    let capabilities = json!({"auth": {"terminal": true}});
    let hello = agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let methods = hello["authMethods"].as_array().unwrap();
    let method = methods.iter().find(|method| method["type"] == "terminal").unwrap();
    let arguments: Vec<&str> = method["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    for start in [&["acp"][..], &[]] {
        let mut terminal = home.terminal(&[start, &arguments].concat());
        terminal.until("Provider: ").await;
        terminal.say("work\n").await;
        terminal.until("it is not shown").await;
        terminal.say("sk-typed-key\n").await;
        let (code, output) = terminal.end().await;
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("accepted; 2 models") && !output.contains("sk-typed-key"), "{output}");
    }
    // The agent that runs uses the key.
    let session = agent.call("session/new", json!({"cwd": home.work(), "mcpServers": []})).await;
    assert!(session["sessionId"].is_string(), "{session}");
    agent.finish().await;
}
