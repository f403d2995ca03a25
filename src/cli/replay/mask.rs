//! Masks secrets and names of the user in recordings.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::{Captures, Regex};

use crate::api::App;
use crate::runtime::Models;

/// The texts that replace a secret, and the names of the user and the host.
const KEY: &str = "masked-key";
pub(super) const USER: &str = "masked-user";
const HOST: &str = "masked-host";

/// Minimum length of a secret: shorter values occur in ordinary words.
const SECRET_BYTES_MIN: usize = 6;
/// Parts of the names of variables and settings whose values are secret.
const SECRET_NAMES: [&str; 11] =
    ["key", "token", "secret", "pass", "pwd", "credential", "authorization", "cookie", "_pat", "webhook", "dsn"];
/// Names that tell nothing about a person or a machine.
const PLAIN_NAMES: [&str; 6] = ["root", "user", "nobody", "localhost", "host", "home"];

/// Keys that are known by their forms, and credentials in URLs.
const FORMS: [(&str, &str); 6] = [
    (
        "(?-u:\\b)(sk-[A-Za-z0-9_-]{16,}|sk_(live|test)_[A-Za-z0-9]{16,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|A[KS]IA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\\.eyJ[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]+)",
        KEY,
    ),
    // Also in a diff, and without its end.
    ("(?s)-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----|$)", KEY),
    ("://[^@ \t\r\n\"'<>`]+@", "://masked-key@"),
    ("(?i)(?-u:\\b)(bearer|basic) [a-z0-9._~+/=-]{8,}", KEY),
    (
        "(?i)(?-u:\\b)(rk_(live|test)_[a-z0-9]{16,}|sg\\.[a-z0-9_-]{16,}\\.[a-z0-9_-]{16,}|xapp-[a-z0-9-]{10,}|gsk_[a-z0-9]{20,}|ya29\\.[a-z0-9_-]{20,}|gocspx-[a-z0-9_-]{20,})",
        KEY,
    ),
    // The value of an assignment whose name says that it is secret, in a file or an output.
    (
        "(?i)((?-u:\\b)[a-z0-9_.-]*(?:api_?key|access_?key|secret|password|passwd|_token|_pat|_pwd|_pass)[\"']?\\s*[=:]\\s*[\"']?)[0-9]*[a-z+/=_~-][a-z0-9+/=_.~-]{5,}",
        "${1}masked-key",
    ),
];

/// The secrets and names of this machine.
pub(super) struct Masker {
    /// Secrets in all their encodings, the longest first.
    secrets: Vec<String>,
    /// The known forms and the names, with what replaces them and the kind.
    patterns: Vec<(Regex, &'static str, &'static str)>,
    /// The number of texts that were masked, by kind.
    counts: Mutex<BTreeMap<&'static str, usize>>,
}

impl Masker {
    /// Collects the values of settings and variables with secrets, and the names of user and host.
    pub(super) fn new(app: &App) -> Masker {
        let services = &app.services;
        let mut found = BTreeSet::new();
        for name in Models::secret_names(&services.user.settings) {
            found.extend(services.environment.get(&name).map(str::to_owned));
        }
        found.extend(services.environment.all().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.to_owned()));
        add_settings(services.user.table(), false, &mut found);
        // The keys that `nuncio login` stored, and the owner's token.
        let stored =
            ["keys.json", "token"].map(|name| std::fs::read_to_string(services.places.data.join(name)).unwrap_or_default());
        found.extend(stored.iter().flat_map(|text| text.split(['"', '\n'])).map(str::to_owned));
        let mut secrets: Vec<String> =
            found.into_iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN).flat_map(forms).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let word = |name: Option<String>, mask| {
            let name = name.filter(|name| name.len() > 2 && !PLAIN_NAMES.contains(&name.as_str()))?;
            Some((
                Regex::new(&format!("(?-u:\\b){}(?-u:\\b)", regex::escape(&name))).ok()?,
                mask,
                if mask == USER { "user" } else { "host" },
            ))
        };
        let variable = |name: &str| services.environment.get(name).map(str::to_owned);
        let home = variable("HOME").and_then(|home| home.rsplit('/').next().map(str::to_owned));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
        let names = [
            word(variable("USER"), USER),
            word(variable("LOGNAME"), USER),
            word(home, USER),
            word(host.or_else(|| variable("HOSTNAME")), HOST),
            word(variable("HOSTNAME"), HOST),
        ];
        let forms = FORMS.iter().filter_map(|(text, mask)| Some((Regex::new(text).ok()?, *mask, "keys")));
        Masker { secrets, patterns: forms.chain(names.into_iter().flatten()).collect(), counts: Mutex::default() }
    }

    /// Returns what was masked so far, with the number of places.
    pub(super) fn counts(&self) -> Vec<String> {
        self.counts.lock().iter().map(|(kind, count)| format!("{kind} ({count})")).collect()
    }

    fn count(&self, kind: &'static str, count: usize) {
        *self.counts.lock().entry(kind).or_default() += count;
    }

    pub(super) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            let count = text.matches(secret.as_str()).count();
            if count > 0 {
                self.count("keys", count);
                text = text.replace(secret.as_str(), KEY);
            }
        }
        for (pattern, mask, kind) in &self.patterns {
            let mut count = 0;
            let masked = pattern.replace_all(&text, |found: &Captures<'_>| {
                count += 1;
                let mut replaced = String::new();
                found.expand(mask, &mut replaced);
                replaced
            });
            if count > 0 {
                self.count(kind, count);
                text = masked.into_owned();
            }
        }
        text
    }

    /// Masks the content of a file. `None` if it is not text and has a secret.
    pub(super) fn content(&self, content: Vec<u8>) -> Option<Vec<u8>> {
        match String::from_utf8(content) {
            Ok(text) => Some(self.text(&text).into_bytes()),
            Err(binary) => {
                let lossy = String::from_utf8_lossy(binary.as_bytes()).into_owned();
                (self.text(&lossy) == lossy).then(|| binary.into_bytes())
            }
        }
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
        && !name.ends_with("_env")
        && !name.ends_with("max_tokens")
        && !name.ends_with("_path")
}

/// Adds the texts of settings whose names say that they are secret.
fn add_settings(table: &toml::Table, secret: bool, found: &mut BTreeSet<String>) {
    for (name, value) in table {
        add_setting(value, secret || is_secret(name) || name == "headers" || name == "env", found);
    }
}

fn add_setting(value: &toml::Value, secret: bool, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::String(text) if secret => drop(found.insert(text.clone())),
        toml::Value::Array(list) => list.iter().for_each(|value| add_setting(value, secret, found)),
        toml::Value::Table(table) => add_settings(table, secret, found),
        _ => {}
    }
}

/// Characters that JavaScript's encodeURIComponent leaves as they are.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'!').remove(b'*');

/// Returns the forms in which a secret can occur: as it is, in JSON, in a URL, in hexadecimal, and
/// in base64 at any offset.
fn forms(secret: String) -> Vec<String> {
    let urls = [NON_ALPHANUMERIC, UNESCAPED].map(|set| utf8_percent_encode(&secret, set).to_string());
    let json = serde_json::Value::from(secret.as_str()).to_string().trim_matches('"').to_owned();
    let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = (0..3).map(|before| {
        let encoded = STANDARD.encode([&vec![0; before], secret.as_bytes()].concat());
        // The first and the last group also depend on the bytes around the secret.
        let start = if before == 0 { 0 } else { 4 };
        encoded[start..encoded.len() - 4].to_owned()
    });
    let forms = base64.filter(|form| form.len() >= SECRET_BYTES_MIN).collect::<Vec<_>>();
    let safe: Vec<String> = forms.iter().map(|form| form.replace('+', "-").replace('/', "_")).collect();
    [secret, json, hex].into_iter().chain(urls).chain(forms).chain(safe).collect()
}
