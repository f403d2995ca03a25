//! Signing in to MCP servers with OAuth.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::{call, calls, text};
use crate::harness::{Answer, Bridge, Home, bounded};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/oauth.py");

/// The server with its authorization server, which ends with this value.
struct Guarded {
    address: SocketAddr,
    log: PathBuf,
    _child: Child,
}

impl Guarded {
    /// Starts it, and adds it to the settings as `docs`. Access tokens are valid for `seconds`.
    async fn start(home: &Home, seconds: u32, settings: &str) -> Guarded {
        let log = home.put("oauth.log", "");
        let mut command = Command::new("python3");
        command.arg(SERVER).arg(&log).arg(seconds.to_string()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = bounded("the port of oauth.py", lines.next_line()).await.unwrap().unwrap();
        home.config(&format!("[mcp.docs]\nurl = \"http://127.0.0.1:{port}/mcp\"\n{settings}"));
        Guarded { address: SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap())), log, _child: child }
    }

    fn log(&self) -> Vec<String> {
        std::fs::read_to_string(&self.log).unwrap().lines().map(String::from).collect()
    }

    async fn revoke(&self) {
        Bridge { address: self.address, token: String::new() }.post("/revoke", &json!({})).expect(200).await;
    }
}

/// `nuncio mcp login docs`, which waits for a browser.
struct Login {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: String,
}

impl Login {
    async fn start(home: &Home) -> Login {
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
    async fn browse(&self) -> String {
        let answer = get(&self.address).await;
        assert_eq!(answer.status, 302, "{answer:?}");
        answer.header("location").unwrap().to_owned()
    }

    /// The exit code, and the rest of the output.
    async fn end(mut self) -> (i32, String) {
        let mut rest = String::new();
        bounded("the end of the login", async {
            self.lines.get_mut().read_to_string(&mut rest).await.unwrap();
            (self.child.wait().await.unwrap().code().unwrap(), rest)
        })
        .await
    }
}

async fn get(address: &str) -> Answer {
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
    let guarded = Guarded::start(&home, 600, "").await;
    let (code, output) = check(&home).await;
    assert_eq!((code, output.contains(REQUIRED)), (1, true), "{output}");
    sign_in(&home).await;
    let (code, output) = check(&home).await;
    assert_eq!((code, output.contains("1 tools, 0 prompts; guarded 1")), (0, true), "{output}");
    let finished = calls(&home, &[call("mcp__docs__whoami", json!({}))]).await;
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
    let guarded = Guarded::start(&home, 1, "").await;
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
    let guarded = Guarded::start(&home, 600, "").await;
    sign_in(&home).await;
    guarded.revoke().await;
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
    let guarded = Guarded::start(&home, 1, settings).await;
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
    let guarded = Guarded::start(&home, 600, "").await;
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
async fn wrong_uses_are_errors() {
    let home = Home::new();
    home.env("KEY", "k");
    let cases = [
        ("[mcp.docs]\ncommand = [\"x\"]\n", 2, "is a program, not a URL"),
        ("[mcp.docs]\nurl = \"http://127.0.0.1:9/mcp\"\nbearer_token_env = \"KEY\"\n", 2, "has a token in the settings"),
        ("[mcp.docs]\nurl = \"http://127.0.0.1:9/mcp\"\n", 1, "signing in to docs failed: "),
        ("[mcp.other]\nurl = \"http://127.0.0.1:9/mcp\"\n", 2, "MCP server \"docs\" is unknown"),
        ("[mcp.docs]\ncommand = [\"x\"]\n[mcp.docs.oauth]\nport = 1\n", 2, "oauth: only for servers with a url"),
    ];
    for (settings, code, error) in cases {
        home.config(settings);
        let ran = home.run(&["mcp", "login", "docs"], "").await;
        assert!(ran.code == code && ran.stderr.contains(error), "{settings}: {ran:?}");
    }
}
