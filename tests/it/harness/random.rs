//! Random numbers from a printed seed, and the number of random cases.

/// A generator of small numbers. The seed is new in each run, or `NUNCIO_SEED`.
pub struct Random(u64);

impl Random {
    pub fn new() -> Random {
        let given = std::env::var("NUNCIO_SEED").ok().map(|seed| seed.parse().expect("NUNCIO_SEED is a number"));
        let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = given.unwrap_or_else(now) | 1;
        eprintln!("seed {seed}");
        Random(seed)
    }

    /// A generator with a fixed seed.
    pub fn from_seed(seed: u64) -> Random {
        Random(seed << 1 | 1)
    }

    /// Another generator, with a seed from this generator.
    pub fn another(&mut self) -> Random {
        Random(self.below(1 << 31) << 1 | 1)
    }

    /// A number below `bound` (xorshift64*, Vigna 2016).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// Returns how many random cases of a kind a test runs, and prints it. `NUNCIO_RANDOM` is `short`
/// (a tenth of `full`, the default), `full`, `long` (ten times `full`) or a number.
pub fn random_cases(what: &str, full: u32) -> u32 {
    let count = match std::env::var("NUNCIO_RANDOM").as_deref() {
        Err(_) | Ok("short") => full.div_ceil(10),
        Ok("full") => full,
        Ok("long") => 10 * full,
        Ok(number) => number.parse().unwrap_or_else(|_| panic!("NUNCIO_RANDOM: {number:?} is not short, full, long or a number")),
    };
    eprintln!("random: {count} {what}");
    count
}
