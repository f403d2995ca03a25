//! Permission questions on a terminal. Where there is none, nobody attends, and the answer is no.

use std::io::{BufRead, IsTerminal, Write};

use crate::content::{PermissionOption, PermissionOptionKind, ToolContent};
use crate::id::PermissionId;
use crate::patch;
use crate::session::Session;

/// How questions are answered here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// By nobody.
    None,
    /// By whoever sits at the terminal.
    Terminal,
    /// With yes (`demo --yes`).
    Yes,
}

impl Answers {
    /// A terminal to ask at, and to show the question on.
    pub fn here() -> Answers {
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() { Answers::Terminal } else { Answers::None }
    }
}

/// Answers one question. A terminal is read on a thread: a turn that is cancelled meanwhile does not wait for it.
pub fn answer(answers: Answers, session: &Session, id: &PermissionId, content: &[ToolContent], options: &[PermissionOption]) {
    let broker = session.broker.clone();
    let id = id.clone();
    let pick = move |kind: PermissionOptionKind, options: &[PermissionOption]| {
        let option = options.iter().find(|option| option.kind == kind);
        if let Some(option) = option {
            // Too late is no error: the turn may have been cancelled.
            let _ = broker.answer(&id, &option.option_id, "terminal", None);
        }
    };
    match answers {
        Answers::None => {}
        Answers::Yes => pick(PermissionOptionKind::AllowOnce, options),
        Answers::Terminal => {
            let question = question(content);
            let options = options.to_vec();
            std::thread::spawn(move || {
                let kind = ask(&question, &options);
                pick(kind, &options);
            });
        }
    }
}

pub fn question(content: &[ToolContent]) -> String {
    let shown = content.iter().map(|content| match content {
        ToolContent::Content { content } => content.as_text(),
        ToolContent::Diff { path, old_text, new_text } => {
            patch::unified(&path.display().to_string(), old_text.as_deref().unwrap_or(""), new_text)
        }
    });
    shown.flat_map(|text| text.lines().map(|line| format!("  {line}\n")).collect::<Vec<_>>()).collect()
}

/// Asks at the terminal until there is an answer; the end of the input is a no.
pub fn ask(question: &str, options: &[PermissionOption]) -> PermissionOptionKind {
    let always =
        options.iter().find(|option| option.kind == PermissionOptionKind::AllowAlways).map_or("", |option| option.name.as_str());
    eprint!("{question}");
    loop {
        eprint!("  Allow it?  [y]es  [n]o  [a] {always}  [r] always reject: ");
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => return PermissionOptionKind::RejectOnce,
            Ok(_) => {}
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return PermissionOptionKind::AllowOnce,
            "n" | "no" => return PermissionOptionKind::RejectOnce,
            "a" => return PermissionOptionKind::AllowAlways,
            "r" => return PermissionOptionKind::RejectAlways,
            _ => {}
        }
    }
}
