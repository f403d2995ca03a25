//! Asks permission questions on a terminal. Without a terminal, no client can answer, and the
//! permission broker denies the calls.

use std::io::{BufRead, IsTerminal, Write};

use super::output::print_stderr;
use crate::api::{AnswerPermission, AnswerPermissionParams};
use crate::content::{PermissionOption, PermissionOptionKind};
use crate::id::PermissionId;
use crate::local::LocalClient;
use crate::terminal_text::question_line;

/// How permission questions are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approver {
    /// Questions are not answered here.
    None,
    /// The user answers at the terminal.
    Terminal,
    /// Every question is answered with yes (`demo --yes`).
    Yes,
}

impl Approver {
    /// `Terminal` if both standard input and standard error are terminals, else `None`.
    pub(crate) fn for_terminal() -> Approver {
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() { Approver::Terminal } else { Approver::None }
    }
}

/// Answers one question about the tool call with this title. The caller has already shown the
/// content of the question. The terminal is read on a separate thread, so that a cancelled turn
/// does not wait for input.
pub(crate) async fn answer(approver: Approver, client: &LocalClient, id: &PermissionId, title: &str, options: &[PermissionOption]) {
    match approver {
        Approver::None => {}
        Approver::Yes => send(client, id, Chosen::Kind(PermissionOptionKind::AllowOnce)).await,
        Approver::Terminal => {
            let (client, id, title, options) = (client.clone(), id.clone(), title.to_string(), options.to_vec());
            tokio::spawn(async move {
                if let Ok(chosen) = tokio::task::spawn_blocking(move || ask(&title, &options)).await {
                    send(&client, &id, chosen).await;
                }
            });
        }
    }
}

/// The user's answer.
pub(crate) enum Chosen {
    /// The first option of this kind.
    Kind(PermissionOptionKind),
    /// One of several options that allow; its id.
    Option(String),
}

async fn send(client: &LocalClient, id: &PermissionId, chosen: Chosen) {
    let (option_id, outcome) = match chosen {
        Chosen::Kind(kind) => (None, Some(kind)),
        Chosen::Option(id) => (Some(id), None),
    };
    let params = AnswerPermissionParams::new(id.clone(), option_id, outcome, None);
    // A late answer is not an error: the turn may have been cancelled.
    let _ = client.call::<AnswerPermission>(params).await;
}

/// Asks at the terminal until the user gives one of the offered answers. End of input denies. If
/// several options allow, they are numbered. Holds the lock on standard input, so that only one
/// question is asked at a time.
pub(crate) fn ask(title: &str, options: &[PermissionOption]) -> Chosen {
    let offered = |kind| options.iter().find(|option: &&PermissionOption| option.kind == kind);
    let allowing: Vec<&PermissionOption> = options.iter().filter(|option| option.kind == PermissionOptionKind::AllowOnce).collect();
    let several = allowing.len() > 1;
    let mut question = format!("Allow {}?", question_line(title));
    if several {
        for (index, option) in allowing.iter().enumerate() {
            question += &format!("  [{}] {}", index + 1, question_line(&option.name));
        }
    } else {
        question += "  [y]es";
    }
    question += "  [n]o";
    if let Some(option) = offered(PermissionOptionKind::AllowAlways) {
        question += &format!("  [a] {}", question_line(&option.name).replacen("Always", "always", 1));
    }
    if offered(PermissionOptionKind::RejectAlways).is_some() {
        question += "  [r] always reject";
    }
    let mut input = std::io::stdin().lock();
    loop {
        // Print the question in one write, so that no other output splits it.
        print_stderr(format!("{question}: "));
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        match input.read_line(&mut line) {
            Ok(0) | Err(_) => return Chosen::Kind(PermissionOptionKind::RejectOnce),
            Ok(_) => {}
        }
        let answer = line.trim().to_lowercase();
        let number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).filter(|_| several);
        if let Some(option) = number.and_then(|index| allowing.get(index)) {
            return Chosen::Option(option.option_id.clone());
        }
        return Chosen::Kind(match answer.as_str() {
            "y" | "yes" if !several => PermissionOptionKind::AllowOnce,
            "n" | "no" => PermissionOptionKind::RejectOnce,
            "a" if offered(PermissionOptionKind::AllowAlways).is_some() => PermissionOptionKind::AllowAlways,
            "r" if offered(PermissionOptionKind::RejectAlways).is_some() => PermissionOptionKind::RejectAlways,
            _ => continue,
        });
    }
}
