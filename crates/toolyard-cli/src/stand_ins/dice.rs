//! The lots of a mocked call: the same for the same seed and the same call, whatever runs beside it.

use super::key::CallKey;
use toolyard::ContentHash;

/// What is drawn for one attempt. Numbers come from a hash, not from a generator: calls share no state, and the numbers
/// stay the same in every version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dice {
    /// Decides whether it fails.
    pub(crate) failure: f64,
    /// Decides how long it takes.
    pub(crate) latency: [f64; 2],
}

impl Dice {
    /// The lots of an attempt, counted from 1.
    pub(super) fn of(seed: u64, key: &CallKey, attempt: u32) -> Self {
        let hash = ContentHash::new("toolyard mock 1").number(seed).bytes(&key.hash()).number(attempt.into());
        let hash = hash.finish();
        let share = |part: usize| {
            let bytes = &hash[8 * part..8 * part + 8];
            let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            // The 53 bits that a number with a fraction holds.
            (number >> 11) as f64 / (1_u64 << 53) as f64
        };
        Self { failure: share(0), latency: [share(1), share(2)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_ins::key::{EpisodeKey, of_value};
    use serde_json::json;

    fn dice(seed: u64, occurrence: u32, attempt: u32) -> [f64; 3] {
        let episode = EpisodeKey { id: "e".into(), number: 1 };
        let arguments = of_value(&json!({}));
        let key = CallKey { episode, turn: 1, tool: "t".into(), arguments, occurrence };
        let Dice { failure, latency: [one, other] } = Dice::of(seed, &key, attempt);
        [failure, one, other]
    }

    /// KT-10: the same seed and call have the same lots in every version; another seed, call or attempt has others.
    #[test]
    fn the_same_call_has_the_same_lots() {
        assert_eq!(dice(1, 1, 1), dice(1, 1, 1));
        let others = [dice(2, 1, 1), dice(1, 2, 1), dice(1, 1, 2)];
        assert!(others.iter().all(|other| other.iter().zip(dice(1, 1, 1)).all(|(a, b)| *a != b)));
    }

    /// KT-10: lots are spread evenly over 0 to 1.
    #[test]
    fn lots_are_even() {
        let lots: Vec<f64> = (1..=2_000).flat_map(|occurrence| dice(7, occurrence, 1)).collect();
        assert!(lots.iter().all(|lot| (0.0..1.0).contains(lot)));
        for tenth in 0..10 {
            let range = f64::from(tenth) / 10.0..f64::from(tenth + 1) / 10.0;
            let share = lots.iter().filter(|lot| range.contains(lot)).count() as f64 / lots.len() as f64;
            assert!((0.08..0.12).contains(&share), "{tenth}: {share}");
        }
    }
}
