//! Amounts of dollars in flags.

pub(super) fn dollars(text: &str) -> std::result::Result<f64, String> {
    let amount: Option<f64> = text.trim_start_matches('$').parse().ok();
    amount.filter(|amount| *amount >= 0.0 && amount.is_finite()).ok_or_else(|| "expected a number of US dollars".to_owned())
}
