//! The engine's source of randomness.

use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _, rngs::Xoshiro256PlusPlus};
use sha2::{Digest as _, Sha256};
use std::hash::{BuildHasher as _, RandomState};

/// The engine's random numbers. The same seed gives the same numbers, so that a run can be repeated.
pub(crate) struct Chance {
    /// For jitter.
    dice: Mutex<Xoshiro256PlusPlus>,
    /// For what nobody may guess: whoever knows some of these numbers learns nothing of the others.
    key: [u8; 32],
}

impl Chance {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        // The standard library's hashers are keyed with 128 bits of the machine's randomness, which no dependency of
        // our own would have to fetch.
        let machine = RandomState::new();
        let key = (0..4_u64).map(|part| seed.unwrap_or_else(|| machine.hash_one(part)));
        let key = key.fold(Sha256::new(), |hash, part| hash.chain_update(part.to_be_bytes()));
        let dice = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        Self { dice: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(dice)), key: key.finalize().into() }
    }

    /// A random number in `0.0..1.0`.
    pub(crate) fn roll(&self) -> f64 {
        self.dice.lock().random()
    }

    /// A number that names the life of this engine: no other engine has it.
    pub(crate) fn epoch(&self) -> u64 {
        self.secret("epoch", 0)
    }

    /// A number that nobody can guess, the same whenever it is asked for.
    pub(crate) fn secret(&self, of: &str, number: u64) -> u64 {
        let hash = Sha256::new().chain_update(self.key).chain_update(of).chain_update(number.to_be_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        hash[..8].iter().fold(0, |secret, byte| secret << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-6: without a seed, no two engines have anything in common; with one, a run can be repeated.
    #[test]
    fn secrets_differ_unless_seeded() {
        let of = |seed| {
            let chance = Chance::new(seed);
            [chance.epoch(), chance.secret("request", 1), chance.secret("request", 2)]
        };
        let mut all = [of(None), of(None), of(Some(1)), of(Some(2))].concat();
        assert_eq!(of(Some(1)), of(Some(1)));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12);
    }
}
