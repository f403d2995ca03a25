//! The requests to the scripted models of a home, which the program writes as the providers would
//! receive them. They are judged at the end of the home.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::rules::{Refusal, judge_line};

/// Names the file of requests to debug builds of the program, which no released program reads.
const VARIABLE: &str = "NUNCIO_TEST_REQUESTS";
/// The number of tools that a server without a name accepts is not known.
const NUMBER_OF_TOOLS: u8 = 10;
/// Length of the start of a refused request in a message, in characters.
const SHOWN_CHARS: usize = 4000;

/// The file of the requests, and the rules that do not apply to them.
pub struct WrittenRequests {
    file: PathBuf,
    lax: BTreeSet<u8>,
}

impl WrittenRequests {
    pub fn new(directory: &Path) -> WrittenRequests {
        WrittenRequests { file: directory.join("requests.jsonl"), lax: BTreeSet::new() }
    }

    /// Returns the environment variable that names the file.
    pub fn variable(&self) -> (&'static str, PathBuf) {
        (VARIABLE, self.file.clone())
    }

    pub fn lax(&mut self, rules: &[u8]) {
        self.lax.extend(rules);
    }

    /// Returns the lines of the file that are complete: a killed process may leave a part of one.
    pub fn lines(&self) -> Vec<String> {
        let bytes = std::fs::read(&self.file).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: BTreeSet<&str> = text.lines().filter(|line| line.ends_with('}')).collect();
        lines.into_iter().map(str::to_owned).collect()
    }

    /// Returns what the providers refuse in the requests.
    pub fn refusals(&self) -> Vec<String> {
        let is_lax = |refusal: &Refusal, line: &str| {
            self.lax.contains(&refusal.rule) || refusal.rule == NUMBER_OF_TOOLS && line.starts_with(r#"{"provider":"","#)
        };
        let mut found = Vec::new();
        for line in self.lines() {
            let Ok(refusals) = judge_line(&line) else { continue };
            let refused: Vec<&Refusal> = refusals.iter().filter(|refusal| !is_lax(refusal, &line)).collect();
            if !refused.is_empty() {
                let request: String = line.chars().take(SHOWN_CHARS).collect();
                found.extend(refused.iter().map(|refusal| refusal.to_string()));
                found.push(format!("in {request}"));
            }
        }
        found
    }
}
