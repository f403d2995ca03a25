//! Asks permission questions on a terminal. Without a terminal, no client can answer, and the
//! permission broker denies the calls.

use std::io::{BufRead, IsTerminal, Write};

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
        Approver::Yes => send(client, id, PermissionOptionKind::AllowOnce).await,
        Approver::Terminal => {
            let (client, id, title, options) = (client.clone(), id.clone(), title.to_string(), options.to_vec());
            tokio::spawn(async move {
                if let Ok(kind) = tokio::task::spawn_blocking(move || ask(&title, &options)).await {
                    send(&client, &id, kind).await;
                }
            });
        }
    }
}

async fn send(client: &LocalClient, id: &PermissionId, outcome: PermissionOptionKind) {
    let params = AnswerPermissionParams { permission_id: id.clone(), option_id: None, outcome: Some(outcome), reason: None };
    // A late answer is not an error: the turn may have been cancelled.
    let _ = client.call::<AnswerPermission>(params).await;
}

/// Asks at the terminal until the user gives one of the offered answers. End of input denies. Holds
/// the lock on standard input, so that only one question is asked at a time.
pub(crate) fn ask(title: &str, options: &[PermissionOption]) -> PermissionOptionKind {
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
        // Print the question in one write, so that no other output splits it.
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
