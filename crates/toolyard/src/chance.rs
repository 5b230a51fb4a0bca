//! The engine's source of randomness.

use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _, rngs::Xoshiro256PlusPlus};
use std::hash::{BuildHasher as _, RandomState};

/// The engine's random numbers, for jitter. The same seed gives the same numbers, so that a run can be repeated.
pub(crate) struct Chance(Mutex<Xoshiro256PlusPlus>);

impl Chance {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        // The standard library's hashers are seeded by the machine: good enough for jitter, without another
        // dependency.
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        Self(Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)))
    }

    /// A random number in `0.0..1.0`.
    pub(crate) fn roll(&self) -> f64 {
        self.0.lock().random()
    }
}
