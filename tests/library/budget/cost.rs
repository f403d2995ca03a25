//! The price of a request.

use nuncio::content::Usage;
use nuncio::internal::config::{Price, PriceAbove};

/// Asserts the cost in dollars of a request with these numbers of tokens: input with cached tokens,
/// output, read from the cache, written to the cache.
fn check(price: &Price, tokens: [u64; 4], expected: f64) {
    let [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens] = tokens;
    let usage = Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens };
    assert_eq!(price.cost(&usage).dollars(), expected, "{price:?} {usage:?}");
}

#[test]
fn cost_is_price_times_tokens() {
    let plain = Price { input: 3.0, output: 15.0, ..Price::default() };
    let cached = Price { cache_read: Some(0.3), cache_write: Some(3.75), ..plain.clone() };
    let above = PriceAbove { tokens: 200, input: 6.0, output: 30.0, cache_read: Some(0.6), cache_write: None };
    let tiered = Price { above: Some(above), ..cached.clone() };
    check(&plain, [0, 0, 0, 0], 0.0);
    check(&plain, [1, 0, 0, 0], 0.000003);
    check(&plain, [1_000_000, 1_000_000, 0, 0], 18.0);
    // A price without cache prices applies to cached tokens too.
    check(&plain, [100, 0, 60, 40], 0.0003);
    check(&cached, [100, 10, 60, 30], 0.000018 + 0.0001125 + 0.00003 + 0.00015);
    // A provider that reports more cached tokens than input tokens.
    check(&cached, [10, 0, 20, 0], 0.000006);
    check(&tiered, [200, 1, 0, 0], 0.000615);
    check(&tiered, [201, 1, 1, 100], 0.0012306);
    // Prices below a nano-dollar per token are rounded once per request.
    check(&Price { input: 0.0001, ..Price::default() }, [1_000_000, 0, 0, 0], 0.0001);
    check(&Price { input: 0.0004, ..Price::default() }, [1, 0, 0, 0], 0.0);
    check(&Price { input: f64::MAX, ..Price::default() }, [u64::MAX, 0, 0, 0], 18_446_744_073.709_553);
}
