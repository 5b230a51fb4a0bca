//! Seeded randomness.

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use std::ops::RangeInclusive;

/// A seeded source of randomness. Its algorithm is fixed, so a seed means the same on every machine.
#[derive(Debug, Clone)]
pub struct Dice {
    rng: Xoshiro256PlusPlus,
}

impl Dice {
    /// The dice of this seed. Dice of equal seeds but different `purpose` are independent.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mixed = seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(mixed) }
    }

    /// A number from this range.
    pub fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.rng.random_range(range)
    }

    /// A count from this range, with a preference for small ones: the smaller of two throws.
    pub fn few(&mut self, range: RangeInclusive<usize>) -> usize {
        let range = *range.start() as u64..=*range.end() as u64;
        self.range(range.clone()).min(self.range(range)) as usize
    }

    /// True with this probability, in thousandths.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.range(0..=999) < per_mille
    }

    /// One of these values.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.range(0..=of.len() as u64 - 1) as usize]
    }

    /// The index of one of those that fit, if any does.
    pub fn one_of<T>(&mut self, of: &[T], fits: impl Fn(&T) -> bool) -> Option<usize> {
        let fit: Vec<_> = (0..of.len()).filter(|at| fits(&of[*at])).collect();
        (!fit.is_empty()).then(|| self.pick(&fit))
    }

    /// `Some` with this probability, in thousandths.
    pub fn maybe<T>(&mut self, per_mille: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(per_mille).then(|| make(self))
    }
}
