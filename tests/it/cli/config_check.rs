//! `nuncio config check` reports settings that are well-formed and have no effect.

use super::check;
use harness::Home;

const AGENT: &str = "[agents.codex]\nkind = \"codex\"\n";

#[tokio::test]
async fn settings_without_an_effect_are_reported() {
    let home = Home::new();
    home.put("hook.sh", "#!/bin/sh\n");
    let hook = |command: &str| format!("[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [{command}]\n");
    let cases: &[(String, &[&str])] = &[
        (format!("[agents]\nallowed = [\"codx\"]\n{AGENT}"), &["agents.allowed", "codx", "did you mean `codex`?"]),
        ("[agents]\nallowed = [\"pi\"]\n".into(), &["agents.allowed", "pi", "[agents.pi]"]),
        (
            "[providers.local]\nprotocol = \"openai-chat\"\nbase_url = \"localhost:8080/v1\"\n".into(),
            &["providers.local.base_url", "localhost:8080/v1", "http://"],
        ),
        ("[telemetry]\notlp_endpoint = \"127.0.0.1:4318\"\n".into(), &["telemetry.otlp_endpoint"]),
        ("[telemetry]\notlp_endpoint = \"grpc://collector:4317\"\n".into(), &["telemetry.otlp_endpoint", "http or https"]),
        ("[update]\nurl = \"releases.example/latest\"\n".into(), &["update.url", "http or https"]),
        ("[update]\nurl = \"file:///latest\"\n".into(), &["update.url", "http or https"]),
        ("[cluster]\naddress = \"http://node-1:8686\"\n".into(), &["cluster.address", "scheme https"]),
        ("[cluster]\naddress = \"node-1:8686\"\n".into(), &["cluster.address", "https://"]),
        ("[store]\nurl = \"mysql://me:secret@db/x\"\n".into(), &["store.url", "postgres or postgresql"]),
        ("[store]\nurl = \"sqlite:///x\"\n".into(), &["store.url", "postgres or postgresql"]),
        (hook("\"no-such-guard\", \"x\""), &["hooks[0].command", "no-such-guard"]),
        (hook("\"./missing.sh\""), &["hooks[0].command", "missing.sh"]),
        (hook("\"/no/such/guard\""), &["hooks[0].command", "/no/such/guard"]),
        (hook("\"sh\"") + &hook("\"no-such-guard\""), &["hooks[1].command"]),
    ];
    for (settings, words) in cases {
        home.config(settings);
        let ran = home.run(&["config", "check"], "").await;
        check(&ran, 2, words);
        assert!(!ran.stdout.contains("are valid") && !ran.stderr.contains("secret"), "{settings}: {ran:?}");
    }
    let both = format!("[agents]\nallowed = [\"codx\"]\n{AGENT}{}", hook("\"no-such-guard\""));
    home.config(&both);
    check(&home.run(&["config", "check"], "").await, 2, &["codx", "no-such-guard"]);
}

#[tokio::test]
async fn settings_with_an_effect_are_valid() {
    let home = Home::new();
    let script = home.put("../home/guard.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.config(&format!(
        "[agents]\nallowed = [\"codex\"]\n{AGENT}\
         [providers.local]\nprotocol = \"openai-chat\"\nbase_url = \"http://localhost:8080/v1\"\n\
         [[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"sh\", \"-c\", \"true\"]\n\
         [[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"guard.sh\"]\n\
         [[hooks]]\nevent = \"tool.execute.before\"\ncommand = [{:?}]\n",
        script
    ));
    check(&home.run(&["config", "check"], "").await, 0, &["the settings are valid"]);
}

#[tokio::test]
async fn files_that_a_rule_matches_are_shown() {
    let home = Home::new();
    for path in ["app/[slug]/page.tsx", "app/[slug]/layout.tsx", "app/s/page.tsx", ".env"] {
        home.put(path, "");
    }
    let rule = |path: &str, policy: &str| format!("{{ path = \"{path}\", policy = \"{policy}\" }}");
    let rules = [rule("app/[slug]", "deny"), rule("*.tsx", "allow"), rule(".env", "ask"), rule("app/[slug]/p*", "allow")];
    home.config(&format!("permissions.rules = [{}]\n", rules.join(", ")));
    let words = [
        "permissions.rules: app/[slug]/** (deny) matches 3 files here, such as app/[slug]/layout.tsx\n",
        "permissions.rules: *.tsx (allow) matches no file here\n",
        "permissions.rules: .env/** (ask) matches 1 file here: .env\n",
        "permissions.rules: app/[slug]/p* (allow) matches 2 files here, such as app/[slug]/page.tsx\n",
        "the settings are valid",
    ];
    check(&home.run(&["config", "check"], "").await, 0, &words);
}
