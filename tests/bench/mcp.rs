//! Benchmark of a tool call of an MCP server over stdio, compared with the server's own time: the
//! same call, written and read on the server's pipes by this program. The runs alternate; prints
//! medians.

#![allow(clippy::print_stdout)]

mod process;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio::internal::mcp::{CallOptions, McpLaunch, McpServers, McpTokens, McpTransport};
use nuncio::internal::process::ProcessLauncher;
use nuncio::internal::web::HttpClients;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../it/mcp/server.py");
const ROUNDS: usize = 1000;

/// The server without nuncio.
struct Direct {
    child: std::process::Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Direct {
    fn start() -> Direct {
        let mut command = Command::new("python3");
        let mut child = command.arg(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut direct = Direct { child, output };
        direct.request("initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
        direct
    }

    fn request(&mut self, method: &str, params: &Value) -> Duration {
        let begun = Instant::now();
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{request}").expect("a running server");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        let _: Value = serde_json::from_str(&line).expect("JSON");
        begun.elapsed()
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::main]
async fn main() {
    let tokens = McpTokens::new(&std::env::temp_dir().join("no-tokens"));
    let servers = McpServers::new(ProcessLauncher::new(process::binary()), HttpClients::default(), tokens);
    let command = vec!["python3".into(), SERVER.into()];
    let (env, env_removed) = (Vec::new(), Vec::new());
    let transport = McpTransport::Stdio { command, env, env_removed, cwd: "/".into(), confined: None, hint: None };
    let launch = McpLaunch { name: "bench".into(), transport, roots: Vec::new(), sampling: false };
    let server = servers.server(launch).expect("a free place");
    let connection = server.connection(tokio::time::Instant::now() + Duration::from_secs(30)).await.expect("a server");
    let mut direct = Direct::start();
    let (mut through, mut own) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(direct.request("tools/call", &json!({ "name": "echo", "arguments": { "text": "hello" } })));
        let arguments = serde_json::Map::from_iter([("text".to_owned(), Value::from("hello"))]);
        let (cancel, on_progress) = (CancellationToken::new(), Arc::new(|_| ()));
        let options = CallOptions { timeout: Duration::from_secs(30), cancel, on_progress, requests: None };
        let begun = Instant::now();
        connection.call("echo", arguments, options).await.expect("a result");
        through.push(begun.elapsed());
    }
    let (through, own) = (median(&mut through), median(&mut own));
    println!("mcp call {through:?}, server alone {own:?}, above {:?}", through.saturating_sub(own));
    let _ = direct.child.kill();
    let _ = direct.child.wait();
    drop((connection, server));
    servers.shut_down().await;
}
