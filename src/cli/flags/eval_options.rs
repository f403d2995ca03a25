//! The options of `nuncio eval`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::dollars::dollars;

const EXAMPLES: &str = "\
Examples:
  nuncio eval tests/eval/tasks --prove
  nuncio eval tests/eval/tasks -m anthropic/claude-haiku-4-5 --out new.jsonl --compare old.jsonl";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct EvalOptions {
    /// Directory of tasks, or of one task; or of probes (*.json), or one probe
    #[arg(value_name = "TASKS")]
    pub path: PathBuf,
    /// Use only tasks whose names match GLOB
    #[arg(long, value_name = "GLOB")]
    pub only: Option<String>,
    /// Check the tasks instead: each must fail untouched and pass after solve.sh
    #[arg(long, conflicts_with_all = ["runs", "timeout", "max_cost", "out", "compare"])]
    pub prove: bool,
    /// Run each task N times with each model and agent
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// End a run after S seconds; without it, after those of the task
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// Stop when the runs have cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<f64>,
    /// Append a line of JSON per run to FILE, and skip the runs that are in it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Compare the results with those in FILE
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
}
