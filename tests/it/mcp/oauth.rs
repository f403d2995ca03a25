//! Signing in to MCP servers with OAuth.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::{calls, session, text, turn};
use harness::steps::calls_one;
use harness::{Agent, Answer, Bridge, Home, bounded};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/mcp/oauth.py");

/// The server with its authorization server, which ends with this value.
pub(super) struct OauthServer {
    address: SocketAddr,
    log: PathBuf,
    child: Child,
}

impl OauthServer {
    /// Starts it, and adds it to the settings as `docs`. Access tokens are valid for `seconds`.
    async fn start(home: &Home, seconds: u32, settings: &str) -> OauthServer {
        OauthServer::start_with(home, &[&seconds.to_string()], settings).await
    }

    /// Starts it with these arguments.
    pub(super) async fn start_with(home: &Home, arguments: &[&str], settings: &str) -> OauthServer {
        let log = home.put("oauth.log", "");
        let mut command = Command::new("python3");
        command.arg(SERVER).arg(&log).args(arguments).stdout(std::process::Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = bounded("the port of oauth.py", lines.next_line()).await.unwrap().unwrap();
        home.config(&format!("[mcp.docs]\nurl = \"http://127.0.0.1:{port}/mcp\"\n{settings}"));
        OauthServer { address: SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap())), log, child }
    }

    pub(super) fn log(&self) -> Vec<String> {
        std::fs::read_to_string(&self.log).unwrap().lines().map(String::from).collect()
    }

    /// Sends a command: `revoke`, `forget` or `break`.
    async fn command(&self, name: &str) {
        Bridge { address: self.address, token: String::new() }.post(&format!("/{name}"), &json!({})).expect(200).await;
    }
}

/// `nuncio mcp login docs`, which waits for a browser.
pub(super) struct Login {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(super) address: String,
}

impl Login {
    pub(super) async fn start(home: &Home) -> Login {
        let mut child = home.spawn(&["mcp", "login", "docs"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = bounded("the address", lines.next_line()).await.unwrap().expect("no address");
            if line.starts_with("http://") {
                return Login { child, lines, address: line };
            }
        }
    }

    /// Opens the address like a browser. Returns the address of the redirection.
    pub(super) async fn browse(&self) -> String {
        let answer = get(&self.address).await;
        assert_eq!(answer.status, 302, "{answer:?}");
        answer.header("location").unwrap().to_owned()
    }

    /// The exit code, and the rest of the output.
    pub(super) async fn end(mut self) -> (i32, String) {
        let mut rest = String::new();
        bounded("the end of the login", async {
            self.lines.get_mut().read_to_string(&mut rest).await.unwrap();
            (self.child.wait().await.unwrap().code().unwrap(), rest)
        })
        .await
    }
}

pub(super) async fn get(address: &str) -> Answer {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    Bridge { address: host.parse().unwrap(), token: String::new() }.get(&format!("/{path}")).without("authorization").send().await
}

async fn sign_in(home: &Home) {
    let login = Login::start(home).await;
    assert_eq!(get(&login.browse().await).await.status, 200);
    let (code, output) = login.end().await;
    assert_eq!((code, output.contains("signed in to docs")), (0, true), "{output}");
}

async fn check(home: &Home) -> (i32, String) {
    let ran = home.run(&["mcp", "check"], "").await;
    (ran.code, ran.stdout)
}

const REQUIRED: &str = "it requires authorization: nuncio mcp login docs";

#[tokio::test]
async fn login_stores_tokens_that_calls_use_until_logout() {
    let home = Home::new();
    let guarded = OauthServer::start(&home, 600, "").await;
    let (code, output) = check(&home).await;
    assert_eq!((code, output.contains(REQUIRED)), (1, true), "{output}");
    sign_in(&home).await;
    let (code, output) = check(&home).await;
    assert_eq!((code, output.contains("1 tools, 0 prompts; guarded 1")), (0, true), "{output}");
    let finished = calls(&home, &[calls_one("mcp__docs__whoami", json!({}))]).await;
    assert_eq!(text(&finished[0]), "the owner");
    assert_eq!(guarded.log(), ["authorization_code ok"]);
    // The tokens, and the file that processes lock.
    let files: Vec<_> = std::fs::read_dir(home.data().join("mcp-tokens")).unwrap().map(Result::unwrap).collect();
    let tokens: Vec<_> = files.iter().filter(|file| file.path().extension().is_none_or(|extension| extension != "lock")).collect();
    assert_eq!(tokens.len(), 1, "{files:?}");
    assert_eq!(tokens[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let ran = home.run(&["mcp", "logout", "docs"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "removed the tokens of docs\n"));
    assert!(check(&home).await.1.contains(REQUIRED));
    let ran = home.run(&["mcp", "logout", "docs"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "there are no tokens of docs\n"));
}

#[tokio::test]
async fn expired_tokens_are_refreshed_once_by_concurrent_processes() {
    let home = Home::new();
    // Tokens count as expired 30 s before their end.
    let guarded = OauthServer::start(&home, 1, "").await;
    sign_in(&home).await;
    let (one, two, three) = tokio::join!(check(&home), check(&home), check(&home));
    assert_eq!([one.0, two.0, three.0], [0, 0, 0], "{one:?} {two:?} {three:?}");
    let log = guarded.log();
    assert!(log[1..].iter().all(|line| line == "refresh_token ok") && log.len() > 1, "{log:?}");
    assert_eq!(check(&home).await.0, 0);
    assert_eq!(guarded.log(), log);
}

#[tokio::test]
async fn revoked_tokens_require_another_login() {
    let home = Home::new();
    let guarded = OauthServer::start(&home, 600, "").await;
    sign_in(&home).await;
    guarded.command("revoke").await;
    let (code, output) = check(&home).await;
    assert_eq!((code, output.contains(REQUIRED)), (1, true), "{output}");
    assert_eq!(guarded.log(), ["authorization_code ok", "refresh_token refused"]);
    sign_in(&home).await;
    assert_eq!(check(&home).await.0, 0);
}

#[tokio::test]
async fn registered_client_and_pasted_address() {
    let home = Home::new();
    home.env("CLIENT_SECRET", "secret");
    let settings = "[mcp.docs.oauth]\nclient_id = \"known\"\nclient_secret_env = \"CLIENT_SECRET\"\nscopes = [\"tools\"]\n";
    let guarded = OauthServer::start(&home, 1, settings).await;
    let mut login = Login::start(&home).await;
    assert!(login.address.contains("client_id=known") && login.address.contains("scope=tools"), "{}", login.address);
    let pasted = login.browse().await;
    login.child.stdin.as_mut().unwrap().write_all(format!("nonsense\n{pasted}\n").as_bytes()).await.unwrap();
    assert_eq!(login.end().await.0, 0);
    let (code, output) = check(&home).await;
    assert_eq!(code, 0, "{output}");
    assert_eq!(guarded.log(), ["authorization_code ok", "refresh_token ok"]);
}

#[tokio::test]
async fn redirections_of_others_do_not_end_the_login() {
    let home = Home::new();
    let guarded = OauthServer::start(&home, 600, "").await;
    let login = Login::start(&home).await;
    let real = login.browse().await;
    let (callback, query) = real.split_once('?').unwrap();
    let foreign = [
        format!("{callback}?code=x&state=y"),
        format!("{callback}?error=access_denied&state=y"),
        callback.to_owned(),
        callback.replace("/callback", "/favicon.ico"),
    ];
    for address in foreign {
        assert_eq!(get(&address).await.status, 404, "{address}");
    }
    let state = query.split('&').find(|pair| pair.starts_with("state=")).unwrap();
    assert_eq!(get(&format!("{callback}?error=access_denied&{state}")).await.status, 400);
    assert_eq!(login.end().await.0, 4);
    assert!(guarded.log().is_empty(), "{:?}", guarded.log());
}

#[tokio::test]
async fn address_that_is_not_on_the_web_is_refused() {
    for address in ["javascript:alert(1)//", "file:///etc/passwd", "data:text/html,x"] {
        let home = Home::new();
        let _guarded = OauthServer::start_with(&home, &["600", &format!("authorize={address}")], "").await;
        let ran = home.run(&["mcp", "login", "docs"], "").await;
        assert!(ran.code != 0 && !ran.stdout.contains("open this address"), "{address}: {ran:?}");
    }
}

#[tokio::test]
async fn wrong_uses_are_errors() {
    let home = Home::new();
    home.env("KEY", "k");
    let cases = [
        ("[mcp.docs]\ncommand = [\"x\"]\n", 2, "is a program, not a URL"),
        ("[mcp.docs]\nurl = \"http://127.0.0.1:9/mcp\"\nbearer_token_env = \"KEY\"\n", 2, "has a token in the settings"),
        ("[mcp.docs]\nurl = \"http://127.0.0.1:9/mcp\"\n", 1, "signing in to docs failed: "),
        ("[mcp.other]\nurl = \"http://127.0.0.1:9/mcp\"\n", 2, "MCP server \"docs\" is unknown"),
        ("[mcp.docs]\ncommand = [\"x\"]\n[mcp.docs.oauth]\nport = 1\n", 2, "oauth: only for servers with a url"),
        (
            "[mcp.docs]\nurl = \"http://127.0.0.1:9/mcp\"\n[mcp.docs.oauth]\nclient_id = \"x\"\nclient_secret_env = \"NOT_THERE\"\n",
            2,
            "NOT_THERE is not set",
        ),
    ];
    for (settings, code, error) in cases {
        home.config(settings);
        let ran = home.run(&["mcp", "login", "docs"], "").await;
        assert!(ran.code == code && ran.stderr.contains(error), "{settings}: {ran:?}");
    }
}

/// The description of the notice with this title in an update, if any.
fn notice(updates: &[Value], title: &str) -> Option<String> {
    let found = updates.iter().find(|update| update["sessionUpdate"] == "notice" && update["title"] == title);
    found.map(|notice| notice["description"].as_str().unwrap_or_default().to_owned())
}

/// Runs turns until the session reports that the server is ready. Returns the description.
async fn ready(agent: &mut Agent, id: &str) -> String {
    for _ in 0..10_000 {
        let (_, updates) = agent.turn(id, "go").await;
        if let Some(description) = notice(&updates, "MCP server docs is ready") {
            return description;
        }
    }
    panic!("the server is not ready");
}

#[tokio::test]
async fn login_repairs_the_running_sessions() {
    let home = Home::new();
    let _guarded = OauthServer::start(&home, 600, "").await;
    let (mut agent, first) = session(&home, json!([])).await;
    let second = agent.new_session(&home).await;
    for id in [&first, &second] {
        let (_, updates) = agent.turn(id, "go").await;
        assert!(notice(&updates, "MCP server docs failed").unwrap().contains(REQUIRED), "{updates:?}");
    }
    sign_in(&home).await;
    for id in [&first, &second] {
        assert_eq!(ready(&mut agent, id).await, "new tools: mcp__docs__whoami");
    }
    agent.finish().await;
}

#[tokio::test]
async fn sign_in_that_ends_during_a_session_is_reported() {
    let home = Home::new();
    let guarded = OauthServer::start(&home, 600, "").await;
    sign_in(&home).await;
    let whoami = calls_one("mcp__docs__whoami", json!({}));
    let steps = json!([whoami, {"text": "1"}, whoami, {"text": "2"}, whoami, {"text": "3"}]);
    let (mut agent, id) = session(&home, steps).await;
    assert_eq!(text(&turn(&mut agent, &id, 1).await[0]), "the owner");
    guarded.command("break").await;
    let failed = text(&turn(&mut agent, &id, 1).await[0]);
    assert!(failed.contains("the MCP server docs: the request failed: ") && failed.contains("500"), "{failed}");
    assert!(failed.ends_with("; its effect is unknown"), "{failed}");
    guarded.command("revoke").await;
    let refused = text(&turn(&mut agent, &id, 1).await[0]);
    assert!(refused.contains(&format!("the MCP server docs: {REQUIRED}")), "{refused}");
    let (_, updates) = agent.turn(&id, "go").await;
    assert!(notice(&updates, "MCP server docs failed").unwrap().contains(REQUIRED), "{updates:?}");
    sign_in(&home).await;
    ready(&mut agent, &id).await;
    agent.finish().await;
}

#[tokio::test]
async fn forgotten_registration_is_reported_with_the_login() {
    let home = Home::new();
    let guarded = OauthServer::start(&home, 1, "").await;
    sign_in(&home).await;
    guarded.command("forget").await;
    let (code, output) = check(&home).await;
    assert_eq!((code, output.contains("; if this persists: nuncio mcp login docs")), (1, true), "{output}");
}

#[tokio::test]
async fn failures_of_the_exchange_have_exit_codes() {
    let home = Home::new();
    // The authorization server refuses the code, the tokens cannot be locked, it does not run.
    for (fault, code) in [("refused", 4), ("lock", 1), ("stopped", 1)] {
        let mut guarded = OauthServer::start(&home, 600, "").await;
        let login = Login::start(&home).await;
        let callback = login.browse().await;
        let directory = home.data().join("mcp-tokens");
        match fault {
            "refused" => guarded.command("forget").await,
            "lock" => std::fs::rename(&directory, home.data().join("moved")).and_then(|()| std::fs::write(&directory, "")).unwrap(),
            _ => {
                std::fs::remove_file(&directory).unwrap();
                guarded.child.kill().await.unwrap();
            }
        }
        assert_eq!(get(&callback).await.status, 400, "{fault}");
        assert_eq!(login.end().await.0, code, "{fault}");
    }
}
