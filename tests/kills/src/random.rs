//! Random numbers that a seed determines.

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of neighbouring seeds are alike.
        (0..8).for_each(|_| {
            random.below(2);
        });
        random
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    /// Whether an event of this probability happens.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}
