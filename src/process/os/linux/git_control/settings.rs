//! Changes of a git configuration file while a command ran that could have made them: settings that
//! name no program are kept, all others are undone (git-config(1)).

/// Settings that name no program: the section, whether it has a subsection, and the key.
const HARMLESS: [(&str, bool, &str); 20] = [
    ("user", false, "name"),
    ("user", false, "email"),
    ("user", false, "signingkey"),
    ("user", false, "useconfigonly"),
    ("remote", true, "url"),
    ("remote", true, "pushurl"),
    ("remote", true, "fetch"),
    ("remote", true, "push"),
    ("remote", true, "prune"),
    ("remote", true, "tagopt"),
    ("remote", true, "promisor"),
    ("remote", true, "partialclonefilter"),
    ("branch", true, "remote"),
    ("branch", true, "pushremote"),
    ("branch", true, "merge"),
    ("branch", true, "rebase"),
    ("branch", true, "description"),
    ("branch", true, "vscode-merge-base"),
    ("submodule", true, "url"),
    ("submodule", true, "active"),
];

/// Settings that git writes when it creates a repository, a submodule or a linked worktree.
const CREATED: [(&str, bool, &str); 12] = [
    ("core", false, "repositoryformatversion"),
    ("core", false, "filemode"),
    ("core", false, "bare"),
    ("core", false, "logallrefupdates"),
    ("core", false, "ignorecase"),
    ("core", false, "precomposeunicode"),
    ("core", false, "symlinks"),
    ("core", false, "worktree"),
    ("extensions", false, "objectformat"),
    ("extensions", false, "refstorage"),
    ("extensions", false, "worktreeconfig"),
    ("extensions", false, "partialclone"),
];

/// A line of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line<'t> {
    /// The line with the header of its section, or the header itself.
    section: &'t [u8],
    text: &'t [u8],
    /// True if the line before ends with a backslash, which continues its value.
    continues: bool,
}

/// A configuration file with the changes that were kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Merge {
    pub text: Vec<u8>,
    /// The lines that were undone: `+` before an added one, `-` before a removed one.
    pub undone: Vec<String>,
}

/// Keeps the harmless changes from `before` to `now`. With `created`, also those that git makes
/// when it creates a repository.
pub(super) fn merge(before: &[u8], now: &[u8], created: bool) -> Merge {
    let (old, new) = (lines(before), lines(now));
    let is_harmless = |line: &Line<'_>| line.is_harmless(created);
    let deciding = |lines: &[Line<'_>]| {
        lines.iter().filter(|line| !is_harmless(line)).map(|line| (line.section.to_vec(), line.text.to_vec())).collect::<Vec<_>>()
    };
    // The order of all other lines counts, also across sections.
    if deciding(&old) == deciding(&new) {
        return Merge { text: now.to_vec(), undone: Vec::new() };
    }
    let mut text = Vec::new();
    for line in old.iter().filter(|line| !is_harmless(line) || line.is_header() || new.contains(line)) {
        text.extend_from_slice(line.text);
        text.push(b'\n');
    }
    for line in new.iter().filter(|line| is_harmless(line) && !line.is_header() && !line.is_blank() && !old.contains(line)) {
        text.extend([line.section, b"\n", line.text, b"\n"].concat());
    }
    let only_in = |these: &[Line<'_>], those: &[Line<'_>], sign: &str| {
        let only = these.iter().filter(|line| !is_harmless(line) && !those.contains(line));
        only.map(|line| format!("{sign}{}", String::from_utf8_lossy(line.text).trim())).collect::<Vec<_>>()
    };
    let mut undone = [only_in(&new, &old, "+"), only_in(&old, &new, "-")].concat();
    if undone.is_empty() {
        undone.push("the order of lines".into());
    }
    Merge { text, undone }
}

fn lines(text: &[u8]) -> Vec<Line<'_>> {
    let mut section: &[u8] = b"";
    let mut continues = false;
    let mut all = Vec::new();
    for text in text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n') {
        if !continues && text.trim_ascii_start().starts_with(b"[") {
            section = text;
        }
        all.push(Line { section, text, continues });
        continues = text.trim_ascii_end().ends_with(b"\\");
    }
    all
}

impl Line<'_> {
    fn is_header(&self) -> bool {
        !self.continues && self.section == self.text && !self.text.is_empty()
    }

    fn is_blank(&self) -> bool {
        !self.continues && self.text.trim_ascii().is_empty()
    }

    /// Returns whether the line names no program, wherever it stands.
    fn is_harmless(&self, created: bool) -> bool {
        if self.continues || self.text.ends_with(b"\\") {
            return false;
        }
        if self.is_blank() {
            return true;
        }
        let Some((section, has_subsection)) = header(self.section) else { return false };
        let known = || HARMLESS.iter().chain(created.then_some(&CREATED).into_iter().flatten());
        let mut known = known().filter(|(name, sub, _)| *name == section && *sub == has_subsection);
        if self.is_header() {
            return known.next().is_some();
        }
        let Ok(text) = std::str::from_utf8(self.text) else { return false };
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        // `helper::address` names a program.
        let is_plain = !value.contains("::") && !value.contains(['\\', '"', '\r', '\0']);
        is_plain && known.any(|(_, _, name)| key.trim().eq_ignore_ascii_case(name))
    }
}

/// Returns the name of the section that a header begins, and whether it has a subsection. `None` if
/// the line is not only a header in its usual form.
fn header(line: &[u8]) -> Option<(String, bool)> {
    let inner = std::str::from_utf8(line).ok()?.trim().strip_prefix('[')?.strip_suffix(']')?;
    let (name, sub) = inner.split_once(' ').map_or((inner, None), |(name, sub)| (name, Some(sub)));
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let sub = match sub {
        Some(sub) => Some(sub.strip_prefix('"')?.strip_suffix('"').filter(|sub| !sub.contains(['"', '\\', ']']))?),
        None => None,
    };
    is_word.then(|| (name.to_ascii_lowercase(), sub.is_some()))
}
