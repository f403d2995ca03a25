//! Intervals and tests, without a dependence on the order of runs.

/// The quantile of the standard normal distribution for 95 %.
const Z_95: f64 = 1.959_963_984_540_054;

/// Number of samples of a bootstrap.
const SAMPLES: usize = 10_000;

/// The seed of the bootstrap: the same results have the same interval.
const SEED: u64 = 0x006e_756e_6369_6f01;

/// A rate with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateInterval {
    pub rate: f64,
    pub low: f64,
    pub high: f64,
}

/// Returns Wilson's interval of `solved` of `all` runs of different tasks.
pub(super) fn wilson(solved: usize, all: usize) -> RateInterval {
    if all == 0 {
        return RateInterval { rate: 0.0, low: 0.0, high: 1.0 };
    }
    let (n, rate) = (all as f64, solved as f64 / all as f64);
    let square = Z_95 * Z_95;
    let centre = (rate + square / (2.0 * n)) / (1.0 + square / n);
    let half = Z_95 / (1.0 + square / n) * (rate * (1.0 - rate) / n + square / (4.0 * n * n)).sqrt();
    RateInterval { rate, low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
}

/// Returns the mean of the tasks' rates. The interval is a bootstrap over tasks, because the runs
/// of one task depend on each other.
pub(super) fn bootstrap(rates: &[f64]) -> RateInterval {
    if rates.is_empty() {
        return wilson(0, 0);
    }
    let mean = |sum: f64| sum / rates.len() as f64;
    let mut random = SEED;
    let mut means: Vec<f64> = (0..SAMPLES)
        .map(|_| mean((0..rates.len()).map(|_| rates[(next(&mut random) % rates.len() as u64) as usize]).sum()))
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |part: f64| means[((SAMPLES - 1) as f64 * part).round() as usize];
    RateInterval { rate: mean(rates.iter().sum()), low: at(0.025), high: at(0.975) }
}

/// Returns the next number of the generator SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns the two-sided probability of the exact sign test, which is McNemar's exact test for
/// pairs: that of a split at least as uneven as `better` to `worse`, if both were equally likely.
pub(super) fn sign_test(better: usize, worse: usize) -> f64 {
    let (few, all) = (better.min(worse), better + worse);
    // The terms of the binomial distribution, by their logarithms.
    let logarithm = |count: usize| (1..=count).map(|number| (number as f64).ln()).sum::<f64>();
    let term =
        |count: usize| (logarithm(all) - logarithm(count) - logarithm(all - count) - all as f64 * std::f64::consts::LN_2).exp();
    (2.0 * (0..=few).map(term).sum::<f64>()).min(1.0)
}
