//! The editor's side of `fs/*` and `terminal/*`: unsaved buffers, real commands in terminals, and
//! faulty behaviours.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The behaviour of an editor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    /// Correct; writes are saved to disk.
    Saves,
    /// Correct; writes change only the buffer.
    Buffers,
    /// Answers every request with an internal error (-32603), as for a refusal by the user.
    Errs,
    /// Supports no method (-32601).
    Lacks,
    /// Finds no file to read (-32002); writes are saved.
    FindsNothing,
    /// Refuses to read files named `secret…` and to write files named `locked…`; otherwise like
    /// `Saves`.
    Refuses,
    Silent,
    /// Confirms writes without writing.
    Lies,
    /// Supports no reading; writes are saved.
    CannotRead,
    /// Supports reading, but no writing.
    CannotWrite,
    /// Like CodeCompanion: reads the disk; writes into an open buffer, line by line, and saves the
    /// buffer with one extra line end.
    AddsBlankLine,
    /// Like Avante: reads an open buffer without its final newline; writes go to the disk
    /// unchanged.
    DropsFinalNewline,
    /// Saves writes, but every read returns the text of the first read.
    Stale,
    /// Writes the file and does not answer, like Avante with an unsaved buffer.
    WritesSilently,
    /// Answers a write with a string and does not write, like Avante when the directory is missing.
    Malformed,
    /// Another program appends a line to a file while the editor reads the file.
    Disturbed,
}

/// Code and message of a JSON-RPC error.
type Failure = (i32, String);

fn failure(error: std::io::Error) -> Failure {
    (if error.kind() == std::io::ErrorKind::NotFound { -32002 } else { -32603 }, error.to_string())
}

pub struct Editor {
    pub manner: Manner,
    /// Changes a written text as it is saved, as a formatter does. Only for `Saves`.
    pub on_save: fn(&str) -> String,
    /// Announces that texts have exactly the final newlines of files.
    pub has_exact_texts: bool,
    /// The path that another program replaces by a symlink to the second path, at the next call of
    /// the method.
    pub swap: Option<(&'static str, PathBuf, PathBuf)>,
    /// Unsaved buffers.
    pub buffers: HashMap<PathBuf, String>,
    /// The called methods, in order.
    pub calls: Vec<String>,
    /// The text of the first read of each file.
    first: HashMap<PathBuf, String>,
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
        let (buffers, calls, first, terminals) = (HashMap::new(), Vec::new(), HashMap::new(), HashMap::new());
        let on_save = |text: &str| text.to_owned();
        Editor { manner, on_save, has_exact_texts: false, swap: None, buffers, calls, first, terminals, later }
    }

    pub fn with_buffers(manner: Manner, buffers: &[(PathBuf, &str)]) -> Editor {
        let buffers = buffers.iter().map(|(path, text)| (path.clone(), (*text).to_owned())).collect();
        Editor { buffers, ..Editor::new(manner) }
    }

    /// The client capabilities of an editor.
    pub fn capabilities() -> Value {
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true})
    }

    /// The next deferred answer.
    pub async fn later(&mut self) -> Value {
        self.later.1.recv().await.expect("it has a sender itself")
    }

    /// The answer to a request; none if the answer is deferred or never sent.
    pub fn answer(&mut self, id: &Value, method: &str, params: &Value) -> Option<Value> {
        self.calls.push(method.into());
        if let Some((_, path, target)) = self.swap.take_if(|(at, ..)| *at == method) {
            std::fs::rename(&path, path.with_extension("former")).unwrap();
            std::os::unix::fs::symlink(target, path).unwrap();
        }
        let done = match self.manner {
            Manner::Silent => return None,
            Manner::Errs => Err((-32603, "broken editor".to_owned())),
            Manner::Lacks => Err((-32601, "method not found".to_owned())),
            _ => self.done(id, method, params).transpose()?,
        };
        Some(match done {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
        })
    }

    fn done(&mut self, id: &Value, method: &str, params: &Value) -> Result<Option<Value>, Failure> {
        let path = PathBuf::from(params["path"].as_str().unwrap_or_default());
        let terminal = params["terminalId"].as_str().unwrap_or_default();
        let named = |prefix: &str| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
        match method {
            "fs/read_text_file" => match self.manner {
                Manner::CannotRead => Err((-32601, "no reading".into())),
                Manner::FindsNothing => Err((-32002, "no such file".into())),
                Manner::Refuses if named("secret") => Err((-32603, "the user said no".into())),
                _ => Ok(Some(json!({"content": self.read(path)?}))),
            },
            "fs/write_text_file" => match self.manner {
                Manner::CannotWrite => Err((-32601, "no writing".into())),
                Manner::Malformed => Ok(Some(json!("Failed to write file"))),
                Manner::Refuses if named("locked") => Err((-32603, "the user said no".into())),
                manner => {
                    let written = self.write(path, params["content"].as_str().unwrap())?;
                    Ok(Some(written).filter(|_| manner != Manner::WritesSilently))
                }
            },
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
            _ => Err((-32601, format!("there is no method {method}"))),
        }
    }

    fn read(&mut self, path: PathBuf) -> Result<String, Failure> {
        let disk = || std::fs::read_to_string(&path).map(|text| text.replace("\r\n", "\n")).map_err(failure);
        let text = match (self.manner, self.buffers.get(&path)) {
            (Manner::AddsBlankLine, _) | (_, None) => disk()?,
            (Manner::DropsFinalNewline, Some(text)) => text.strip_suffix('\n').unwrap_or(text).to_owned(),
            (_, Some(text)) => text.clone(),
        };
        match self.manner {
            Manner::Disturbed => std::fs::write(&path, format!("{text}somebody else's\n")).map_err(failure)?,
            Manner::Stale => return Ok(self.first.entry(path).or_insert(text).clone()),
            _ => {}
        }
        Ok(text)
    }

    fn write(&mut self, path: PathBuf, text: &str) -> Result<Value, Failure> {
        let (shown, saved) = match self.manner {
            Manner::Lies | Manner::Disturbed => return Ok(json!({})),
            Manner::Buffers => {
                self.buffers.insert(path, text.replace("\r\n", "\n"));
                return Ok(json!({}));
            }
            Manner::AddsBlankLine if self.buffers.contains_key(&path) => (Some(text), format!("{text}\n")),
            Manner::AddsBlankLine => (None, text.to_owned()),
            Manner::DropsFinalNewline => (self.buffers.contains_key(&path).then_some(text), text.to_owned()),
            _ => (None, (self.on_save)(text)),
        };
        self.buffers.remove(&path);
        if let Some(shown) = shown {
            self.buffers.insert(path.clone(), shown.to_owned());
        }
        std::fs::write(&path, saved).map_err(failure)?;
        Ok(json!({}))
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
        // The process group may have ended.
        let _ = kill_process_group(self.terminals[terminal].group, Signal::KILL);
    }
}
