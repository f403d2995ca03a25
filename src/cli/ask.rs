//! Permission questions on a terminal. Where there is none, nobody attends, and the answer is no.

use std::io::{BufRead, IsTerminal, Write};

use crate::content::{PermissionOption, PermissionOptionKind};
use crate::id::PermissionId;
use crate::session::Session;
use crate::terminal_text::question_line;

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

/// Answers one question about the call `title`; what it would do is shown already. A terminal is read on a thread: a turn that is
/// cancelled meanwhile does not wait for it.
pub fn answer(answers: Answers, session: &Session, id: &PermissionId, title: &str, options: &[PermissionOption]) {
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
            let (title, options) = (title.to_string(), options.to_vec());
            std::thread::spawn(move || {
                let kind = ask(&title, &options);
                pick(kind, &options);
            });
        }
    }
}

/// Asks at the terminal until there is an answer that is offered, one question after the other; the end of the input is a no.
pub fn ask(title: &str, options: &[PermissionOption]) -> PermissionOptionKind {
    let offered = |kind| options.iter().find(|option: &&PermissionOption| option.kind == kind);
    let mut question = format!("Allow {}?  [y]es  [n]o", question_line(title));
    if let Some(option) = offered(PermissionOptionKind::AllowAlways) {
        question += &format!("  [a] {}", question_line(&option.name).replacen("Always", "always", 1));
    }
    if offered(PermissionOptionKind::RejectAlways).is_some() {
        question += "  [r] always reject";
    }
    let mut input = std::io::stdin().lock();
    loop {
        // At once: nothing of somebody else's comes between.
        eprint!("{question}: ");
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        match input.read_line(&mut line) {
            Ok(0) | Err(_) => return PermissionOptionKind::RejectOnce,
            Ok(_) => {}
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return PermissionOptionKind::AllowOnce,
            "n" | "no" => return PermissionOptionKind::RejectOnce,
            "a" if offered(PermissionOptionKind::AllowAlways).is_some() => return PermissionOptionKind::AllowAlways,
            "r" if offered(PermissionOptionKind::RejectAlways).is_some() => return PermissionOptionKind::RejectAlways,
            _ => {}
        }
    }
}
