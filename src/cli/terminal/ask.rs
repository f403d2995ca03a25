//! Asks permission questions on a terminal. Without a terminal, no client can answer, and the
//! permission broker denies the calls.

use std::io::IsTerminal;
use std::sync::Arc;

use super::lines::{TerminalLines, TypedLines};
use super::output::print_stderr;
use crate::api::{AnswerPermission, AnswerPermissionParams};
use crate::client::SessionClient;
use crate::content::{HunkDecision, PermissionOption, PermissionOptionKind, ReviewOffer};
use crate::id::PermissionId;
use crate::session::permissions::broker::Responder;
use crate::terminal_text::question_line;

/// How permission questions are answered.
#[derive(Clone)]
pub(crate) enum Approver {
    /// Questions are not answered here.
    None,
    /// A client of another process may answer: this one has no terminal.
    Elsewhere,
    /// The user answers at the terminal.
    Terminal(Arc<TerminalLines>),
    /// Every question is answered with yes (`demo --yes`).
    Yes,
}

impl Approver {
    /// Returns `Terminal` if both standard input and standard error are terminals, else `None`.
    pub(crate) fn for_terminal() -> Approver {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if terminal { Approver::Terminal(Arc::default()) } else { Approver::None }
    }

    /// Restores the settings of the terminal, which a question changes while it waits for a key.
    pub(crate) fn restore_terminal(&self) {
        if let Approver::Terminal(lines) = self {
            lines.restore();
        }
    }

    /// Returns who answers questions here.
    pub(crate) fn responder(&self) -> Option<Responder> {
        match self {
            Approver::None => None,
            Approver::Terminal(_) => Some(Responder::Person),
            Approver::Yes | Approver::Elsewhere => Some(Responder::Program),
        }
    }

    /// Returns whether questions are answered here.
    pub(crate) fn answers(&self) -> bool {
        !matches!(self, Approver::None | Approver::Elsewhere)
    }
}

/// The user's answer to a question.
pub(crate) struct PermissionReply {
    pub choice: PermissionChoice,
    /// Why the user rejects the call, for the model.
    pub reason: Option<String>,
    /// Decisions about files of a review of changes that differ from the choice.
    pub files: Vec<HunkDecision>,
}

impl PermissionReply {
    /// Creates a reply without a reason.
    pub(crate) fn new(choice: PermissionChoice) -> PermissionReply {
        PermissionReply { choice, reason: None, files: Vec::new() }
    }
}

pub(crate) enum PermissionChoice {
    /// The first option of this kind.
    Kind(PermissionOptionKind),
    /// One of several options that allow; its id.
    Option(String),
}

pub(crate) async fn send(client: &SessionClient, id: &PermissionId, PermissionReply { choice, reason, files }: PermissionReply) {
    let (option_id, outcome) = match choice {
        PermissionChoice::Kind(kind) => (None, Some(kind)),
        PermissionChoice::Option(id) => (Some(id), None),
    };
    let mut params = AnswerPermissionParams::new(id.clone(), option_id, outcome, reason);
    params.hunks = files;
    // A late answer is not an error: the turn may have been cancelled.
    let _ = client.call::<AnswerPermission>(params).await;
}

/// Asks at the terminal until the user presses the key of one of the offered answers. End of input
/// denies. If several options allow, they are numbered. Other questions wait for the answer.
pub(crate) async fn ask(lines: &TerminalLines, title: &str, options: &[PermissionOption]) -> PermissionReply {
    let asked = Question { title, options, may_leave: false }.ask(lines).await;
    asked.unwrap_or(PermissionReply::new(PermissionChoice::Kind(PermissionOptionKind::RejectOnce)))
}

/// Asks about each changed file of a review. The end of the input rejects the files that were not
/// asked about.
pub(crate) async fn ask_review(lines: &TerminalLines, offer: &ReviewOffer) -> PermissionReply {
    let mut lines = lines.lock().await;
    lines.discard_typed().await;
    let (mut rejected, mut others) = (Vec::new(), None);
    for (number, file) in offer.files.iter().enumerate() {
        let accept = match others {
            Some(accept) => accept,
            None => {
                let name = question_line(&file.path.to_string_lossy());
                let text = format!("Keep {name}? ({} of {})  [y]es  [n]o  [a]ll others  [d] none: ", number + 1, offer.files.len());
                let (accept, to_others) = ask_file(&mut lines, &text).await;
                others = to_others.then_some(accept);
                accept
            }
        };
        if !accept {
            rejected.push(HunkDecision { path: file.path.clone(), hunk: None, accept: false });
        }
    }
    let kind = match rejected.len() == offer.files.len() {
        true => PermissionOptionKind::RejectOnce,
        false => PermissionOptionKind::AllowOnce,
    };
    let files = if kind == PermissionOptionKind::AllowOnce { rejected } else { Vec::new() };
    PermissionReply { files, ..PermissionReply::new(PermissionChoice::Kind(kind)) }
}

/// Asks about a file until the key is one of those offered. Returns whether the user accepts its
/// changes, and whether the answer applies to the other files, too.
async fn ask_file(lines: &mut TypedLines<'_>, text: &str) -> (bool, bool) {
    loop {
        print_stderr(text);
        let Some(character) = lines.key().await else { return (false, true) };
        print_stderr(format!("{}\n", character.to_string().trim_end()));
        match character.to_ascii_lowercase() {
            'y' => return (true, false),
            'n' => return (false, false),
            'a' => return (true, true),
            'd' => return (false, true),
            _ => {}
        }
    }
}

/// Asks like [`ask`], but the user may also leave the question open. Returns `None` in this case
/// and at the end of input.
pub(crate) async fn ask_or_leave(lines: &TerminalLines, title: &str, options: &[PermissionOption]) -> Option<PermissionReply> {
    Question { title, options, may_leave: true }.ask(lines).await
}

struct Question<'a> {
    title: &'a str,
    options: &'a [PermissionOption],
    /// Enter leaves the question open.
    may_leave: bool,
}

impl Question<'_> {
    fn offered(&self, kind: PermissionOptionKind) -> Option<&PermissionOption> {
        self.options.iter().find(|option| option.kind == kind)
    }

    /// Returns the options that allow. If there are several, they are numbered.
    fn allowing(&self) -> Vec<&PermissionOption> {
        self.options.iter().filter(|option| option.kind == PermissionOptionKind::AllowOnce).collect()
    }

    /// Asks until the key is one of those offered. Returns `None` at the end of the input, or if
    /// the question is left open.
    async fn ask(&self, lines: &TerminalLines) -> Option<PermissionReply> {
        let text = self.text();
        let mut lines = lines.lock().await;
        lines.discard_typed().await;
        loop {
            // Print the question in one write, so that no other output splits it.
            print_stderr(format!("{text}: "));
            let character = lines.key().await?;
            if self.may_leave && matches!(character, '\n' | '\r') {
                print_stderr("\n");
                return None;
            }
            let Some(choice) = self.parse(character.to_ascii_lowercase()) else {
                print_stderr("\n");
                continue;
            };
            print_stderr(format!("{character}\n"));
            let rejects = matches!(choice, PermissionChoice::Kind(PermissionOptionKind::RejectOnce));
            let reason = if rejects { self.reason(&mut lines).await } else { None };
            return Some(PermissionReply { reason, ..PermissionReply::new(choice) });
        }
    }

    /// Asks why the call is rejected.
    async fn reason(&self, lines: &mut TypedLines<'_>) -> Option<String> {
        print_stderr("  Reason for the model (Enter: none): ");
        let reason = lines.next().await?.trim().to_owned();
        (!reason.is_empty()).then_some(reason)
    }

    fn text(&self) -> String {
        let mut text = format!("Allow {}?", question_line(self.title));
        match self.allowing().as_slice() {
            several if several.len() > 1 => {
                for (index, option) in several.iter().enumerate() {
                    text += &format!("  [{}] {}", index + 1, question_line(&option.name));
                }
            }
            _ => text += "  [y]es",
        }
        text += "  [n]o";
        if let Some(option) = self.offered(PermissionOptionKind::AllowAlways) {
            text += &format!("  [a] {}", question_line(&option.name).replacen("Always", "always", 1));
        }
        if self.offered(PermissionOptionKind::RejectAlways).is_some() {
            text += "  [r] always reject";
        }
        if self.may_leave { text + "  (Enter: later)" } else { text }
    }

    fn parse(&self, answer: char) -> Option<PermissionChoice> {
        let allowing = self.allowing();
        let several = allowing.len() > 1;
        let number = answer.to_digit(10).and_then(|number| number.checked_sub(1)).filter(|_| several);
        if let Some(option) = number.and_then(|index| allowing.get(index as usize)) {
            return Some(PermissionChoice::Option(option.option_id.clone()));
        }
        let kind = match answer {
            'y' if !several => PermissionOptionKind::AllowOnce,
            'n' => PermissionOptionKind::RejectOnce,
            'a' => self.offered(PermissionOptionKind::AllowAlways)?.kind,
            'r' => self.offered(PermissionOptionKind::RejectAlways)?.kind,
            _ => return None,
        };
        Some(PermissionChoice::Kind(kind))
    }
}
