//! The table of results, and the comparison with other results.

use std::collections::BTreeMap;

use super::line::{RunClass, RunLine, subject};
use super::statistics::{RateInterval, bootstrap, sign_test, wilson};

/// Above this probability, a difference can be chance.
const SIGNIFICANT: f64 = 0.05;

/// The results of one model or agent.
#[derive(Default)]
struct SubjectResults<'l> {
    lines: Vec<&'l RunLine>,
}

/// Groups lines by model and agent.
fn by_subject<'l>(lines: impl IntoIterator<Item = &'l RunLine>) -> BTreeMap<String, SubjectResults<'l>> {
    let mut all: BTreeMap<String, SubjectResults<'l>> = BTreeMap::new();
    lines.into_iter().for_each(|line| all.entry(subject(&line.key)).or_default().lines.push(line));
    all
}

impl SubjectResults<'_> {
    fn count(&self, class: RunClass) -> usize {
        self.lines.iter().filter(|line| line.class == class).count()
    }

    /// Returns the rate of each task by name and digest, without errors.
    fn rates(&self) -> BTreeMap<(&str, &str), f64> {
        let mut counts: BTreeMap<(&str, &str), (u32, u32)> = BTreeMap::new();
        for line in self.lines.iter().filter(|line| line.class != RunClass::Error) {
            let (solved, all) = counts.entry((&line.key.task, &line.key.digest)).or_default();
            *solved += u32::from(line.class == RunClass::Solved);
            *all += 1;
        }
        counts.into_iter().map(|(task, (solved, all))| (task, f64::from(solved) / f64::from(all))).collect()
    }

    fn interval(&self) -> RateInterval {
        let rates: Vec<f64> = self.rates().into_values().collect();
        match self.lines.iter().any(|line| line.key.run > 1) {
            true => bootstrap(&rates),
            false => wilson(self.count(RunClass::Solved), rates.len()),
        }
    }

    /// Returns an amount of all runs per solved run, also those that failed.
    fn per_solved(&self, amount: impl Fn(&RunLine) -> Option<f64>) -> Option<f64> {
        let counted = self.lines.iter().filter(|line| line.class != RunClass::Error);
        let sum: f64 = counted.map(|line| amount(line)).sum::<Option<f64>>()?;
        let solved = self.count(RunClass::Solved);
        (solved > 0).then(|| sum / solved as f64)
    }

    fn row(&self, name: &str) -> Vec<String> {
        let RateInterval { rate, low, high } = self.interval();
        let rates = self.rates();
        let percent = |part: f64| format!("{:.0}", part * 100.0);
        let shown = |amount: Option<f64>, digits: usize| amount.map_or("-".into(), |amount| format!("{amount:.digits$}"));
        let tokens = |line: &RunLine| Some((line.used.tokens.input + line.used.tokens.output) as f64);
        let solved = match rates.is_empty() {
            true => "-".into(),
            false => format!("{} % ({} to {})", percent(rate), percent(low), percent(high)),
        };
        let harmed = self.lines.iter().filter(|line| line.harm.as_ref().is_some_and(|harm| !harm.is_none())).count();
        let counted = |class| self.count(class).to_string();
        vec![
            name.to_owned(),
            rates.len().to_string(),
            self.lines.len().to_string(),
            solved,
            counted(RunClass::Failed),
            counted(RunClass::Timeout),
            counted(RunClass::Error),
            shown(self.per_solved(tokens), 0),
            shown(self.per_solved(|line| line.used.cost), 4),
            shown(self.per_solved(|line| Some(line.used.seconds)), 1),
            harmed.to_string(),
        ]
    }

    /// Returns the kinds of harm with their sums.
    fn harm(&self) -> Option<String> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (kind, count) in self.lines.iter().filter_map(|line| line.harm.as_ref()).flat_map(|harm| harm.counts()) {
            *sums.entry(kind).or_default() += count;
        }
        let listed: Vec<String> = sums.into_iter().filter(|(_, sum)| *sum > 0).map(|(kind, sum)| format!("{sum} {kind}")).collect();
        (!listed.is_empty()).then(|| listed.join(", "))
    }
}

/// Returns the table of results: a row for each model and agent.
pub(super) fn table<'l>(lines: impl IntoIterator<Item = &'l RunLine>) -> String {
    let heading = [
        "MODEL OR AGENT",
        "TASKS",
        "RUNS",
        "SOLVED (95 %)",
        "FAILED",
        "TIMEOUT",
        "ERROR",
        "TOKENS/SOLVED",
        "$/SOLVED",
        "S/SOLVED",
        "HARMED",
    ];
    let subjects = by_subject(lines);
    let rows = subjects.iter().map(|(name, results)| results.row(name));
    let rows: Vec<Vec<String>> = [heading.map(String::from).to_vec()].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let harm = subjects.iter().filter_map(|(name, results)| Some(format!("harm of {name}: {}\n", results.harm()?)));
    rows.iter().map(line).chain(harm).collect()
}

/// Compares results with those of earlier runs: tasks that are equal in both.
pub(super) fn comparison<'l>(
    earlier: impl IntoIterator<Item = &'l RunLine>,
    lines: impl IntoIterator<Item = &'l RunLine>,
) -> String {
    let (earlier, now) = (by_subject(earlier), by_subject(lines));
    let pairs: Vec<(&String, &SubjectResults<'_>, &String, &SubjectResults<'_>)> = match (earlier.len(), now.len()) {
        // Different models can be compared if it is clear which.
        (1, 1) => earlier.iter().zip(&now).map(|((before, old), (name, new))| (before, old, name, new)).collect(),
        _ => {
            now.iter().filter_map(|(name, new)| earlier.get_key_value(name).map(|(before, old)| (before, old, name, new))).collect()
        }
    };
    if pairs.is_empty() {
        return "nothing to compare: no model or agent is in both files\n".into();
    }
    pairs.into_iter().map(|(before, old, name, new)| compared(before, old, name, new)).collect()
}

fn compared(before: &str, old: &SubjectResults<'_>, name: &str, new: &SubjectResults<'_>) -> String {
    let (old, new) = (old.rates(), new.rates());
    let shared: Vec<(f64, f64)> = new.iter().filter_map(|(task, rate)| Some((*old.get(task)?, *rate))).collect();
    let better = shared.iter().filter(|(before, after)| after > before).count();
    let worse = shared.iter().filter(|(before, after)| after < before).count();
    let probability = sign_test(better, worse);
    let verdict = match (better > worse, probability <= SIGNIFICANT) {
        _ if shared.is_empty() => "no task is equal in both".to_owned(),
        (_, false) => format!("no difference shown (p = {probability:.3})"),
        (true, true) => format!("better (p = {probability:.3})"),
        (false, true) => format!("worse (p = {probability:.3})"),
    };
    let names = if before == name { name.to_owned() } else { format!("{before} to {name}") };
    format!("{names}: {} equal tasks, {better} better, {worse} worse: {verdict}\n", shared.len())
}
