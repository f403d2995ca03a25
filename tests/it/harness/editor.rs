//! The editor's side of `fs/*` and `terminal/*`: buffers that may not be saved, real commands in its terminals, and bad manners.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// What an editor does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    /// What it should; what it is given to write it saves.
    Saves,
    /// The same, but it only changes its buffer.
    Buffers,
    Errs,
    Silent,
    /// It says that it has written, and has not.
    Lies,
    /// It cannot read, and saves what it is given.
    CannotRead,
    /// It reads, and cannot write.
    CannotWrite,
    /// While it reads a file, somebody else adds a line to it.
    Disturbed,
}

pub struct Editor {
    pub manner: Manner,
    /// What it has open and not saved.
    pub buffers: HashMap<PathBuf, String>,
    /// The methods that were called, in order.
    pub calls: Vec<String>,
    terminals: HashMap<String, Terminal>,
    later: (mpsc::UnboundedSender<Value>, mpsc::UnboundedReceiver<Value>),
}

struct Terminal {
    group: Pid,
    output: PathBuf,
    status: tokio::sync::watch::Receiver<Option<std::process::ExitStatus>>,
    _directory: tempfile::TempDir,
}

impl Editor {
    pub fn new(manner: Manner) -> Editor {
        let later = mpsc::unbounded_channel();
        Editor { manner, buffers: HashMap::new(), calls: Vec::new(), terminals: HashMap::new(), later }
    }

    pub fn with(manner: Manner, buffers: &[(PathBuf, &str)]) -> Editor {
        let buffers = buffers.iter().map(|(path, text)| (path.clone(), (*text).to_owned())).collect();
        Editor { buffers, ..Editor::new(manner) }
    }

    /// What it says that it can do.
    pub fn capabilities() -> Value {
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true})
    }

    /// An answer that comes later.
    pub async fn later(&mut self) -> Value {
        self.later.1.recv().await.expect("it has a sender itself")
    }

    /// The answer to a request; none: it comes later, or never.
    pub fn answer(&mut self, id: &Value, method: &str, params: &Value) -> Option<Value> {
        self.calls.push(method.into());
        let done = match self.manner {
            Manner::Silent => return None,
            Manner::Errs => Err("broken editor".to_owned()),
            _ => self.done(id, method, params).transpose()?,
        };
        Some(match done {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(message) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}}),
        })
    }

    fn done(&mut self, id: &Value, method: &str, params: &Value) -> Result<Option<Value>, String> {
        let path = PathBuf::from(params["path"].as_str().unwrap_or_default());
        let terminal = params["terminalId"].as_str().unwrap_or_default();
        match method {
            "fs/read_text_file" if self.manner == Manner::CannotRead => Err("no reading".into()),
            "fs/write_text_file" if self.manner == Manner::CannotWrite => Err("no writing".into()),
            "fs/read_text_file" if self.manner == Manner::Disturbed => {
                let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
                std::fs::write(&path, format!("{text}somebody else's\n")).map_err(|error| error.to_string())?;
                Ok(Some(json!({ "content": text })))
            }
            "fs/read_text_file" => match self.buffers.get(&path) {
                Some(text) => Ok(Some(json!({ "content": text }))),
                None => {
                    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
                    Ok(Some(json!({"content": text.replace("\r\n", "\n")})))
                }
            },
            "fs/write_text_file" => {
                let text = params["content"].as_str().unwrap();
                match self.manner {
                    Manner::Saves | Manner::CannotRead => {
                        self.buffers.remove(&path);
                        std::fs::write(&path, text).map_err(|error| error.to_string())?;
                    }
                    Manner::Buffers => drop(self.buffers.insert(path, text.replace("\r\n", "\n"))),
                    _ => {}
                }
                Ok(Some(json!({})))
            }
            "terminal/create" => Ok(Some(json!({"terminalId": self.create(params)}))),
            "terminal/wait_for_exit" => {
                let (mut status, later, id) = (self.terminals[terminal].status.clone(), self.later.0.clone(), id.clone());
                tokio::spawn(async move {
                    let ended = status.wait_for(Option::is_some).await.unwrap().unwrap();
                    let signal = ended.signal().map(|number| if number == 9 { "SIGKILL" } else { "SIGTERM" });
                    let _ = later.send(json!({"jsonrpc": "2.0", "id": id, "result": {"exitCode": ended.code(), "signal": signal}}));
                });
                Ok(None)
            }
            "terminal/output" => {
                let output = std::fs::read_to_string(&self.terminals[terminal].output).unwrap();
                Ok(Some(json!({"output": output, "truncated": false})))
            }
            "terminal/kill" => {
                self.kill(terminal);
                Ok(Some(json!({})))
            }
            "terminal/release" => {
                self.kill(terminal);
                assert!(self.terminals.remove(terminal).is_some(), "released twice: {terminal}");
                Ok(Some(json!({})))
            }
            _ => Err(format!("there is no method {method}")),
        }
    }

    fn create(&mut self, params: &Value) -> String {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("output");
        let file = std::fs::File::create(&output).unwrap();
        let mut command = Command::new(params["command"].as_str().unwrap());
        command.args(params["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()));
        for variable in params["env"].as_array().unwrap() {
            command.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
        }
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.current_dir(params["cwd"].as_str().unwrap()).stdin(Stdio::null());
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let mut child = command.spawn().unwrap();
        let group = Pid::from_child(&child);
        let (ended, status) = tokio::sync::watch::channel(None);
        std::thread::spawn(move || ended.send_replace(Some(child.wait().unwrap())));
        let id = format!("terminal-{}", self.calls.len());
        self.terminals.insert(id.clone(), Terminal { group, output, status, _directory: directory });
        id
    }

    fn kill(&self, terminal: &str) {
        // It may be over.
        let _ = kill_process_group(self.terminals[terminal].group, Signal::KILL);
    }
}
