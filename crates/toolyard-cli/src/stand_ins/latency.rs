//! How long a mocked call takes.

use super::dice::Dice;
use std::{f64::consts::TAU, time::Duration};

/// The longest a mocked call takes, which a distribution without an end is cut at.
pub(crate) const LATENCY_MAX: Duration = Duration::from_secs(3600);

/// How long calls take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Latency {
    /// Always this long.
    Fixed(Duration),
    /// Between these, evenly.
    Uniform(Duration, Duration),
    /// Half of them up to the median, and a few very long: the logarithm is spread normally, by sigma.
    Lognormal {
        /// Half of the calls take no longer.
        median: Duration,
        /// How far they spread: 0 is not at all, 0.5 has 5 of 100 calls over 2.3 times the median.
        sigma: f64,
    },
}

impl Latency {
    /// That of the attempt with these lots.
    pub(super) fn of(self, dice: &Dice) -> Duration {
        let [one, other] = dice.latency;
        match self {
            Self::Fixed(latency) => latency,
            Self::Uniform(least, most) => least + (most - least).mul_f64(one),
            Self::Lognormal { median, sigma } => {
                // Box and Muller's method; the logarithm of 0 has no value.
                let normal = (-2.0 * (1.0 - one).ln()).sqrt() * (TAU * other).cos();
                let seconds = median.as_secs_f64() * (sigma * normal).exp();
                Duration::try_from_secs_f64(seconds).unwrap_or(LATENCY_MAX)
            }
        }
        .min(LATENCY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A grid of lots.
    fn drawn(latency: Latency) -> Vec<Duration> {
        let grid = || (0..100).map(|at| f64::from(at) / 100.0);
        let pairs = grid().flat_map(|one| grid().map(move |other| [one, other]));
        let mut all: Vec<_> = pairs.map(|lots| latency.of(&Dice { failure: 0.0, latency: lots })).collect();
        all.sort_unstable();
        all
    }

    /// KT-10: what is fixed does not vary, and what is uniform keeps its bounds and is even.
    #[test]
    fn bounds_are_kept() {
        assert!(drawn(Latency::Fixed(20 * MS)).iter().all(|drawn| *drawn == 20 * MS));
        let uniform = drawn(Latency::Uniform(10 * MS, 30 * MS));
        assert!(uniform.first() == Some(&(10 * MS)) && *uniform.last().unwrap() < 30 * MS);
        let middle = uniform[uniform.len() / 2];
        assert!(middle > 19 * MS && middle < 21 * MS, "{middle:?}");
    }

    /// KT-10: half of the lognormal ones are up to the median, about 95 of 100 within two sigmas, and none beyond an hour.
    #[test]
    fn lognormal_is_spread_around_its_median() {
        let all = drawn(Latency::Lognormal { median: 20 * MS, sigma: 0.5 });
        let share = |most: f64| {
            all.iter().filter(|drawn| drawn.as_secs_f64() <= most).count() as f64 / all.len() as f64
        };
        assert!((share(0.020) - 0.5).abs() < 0.02, "{}", share(0.020));
        let within = share(0.020 * 1.0_f64.exp()) - share(0.020 * (-1.0_f64).exp());
        assert!((within - 0.954).abs() < 0.02, "{within}");
        let endless = Latency::Lognormal { median: LATENCY_MAX, sigma: 3.0 };
        assert_eq!(drawn(endless).last(), Some(&LATENCY_MAX));
        let none = drawn(Latency::Lognormal { median: 20 * MS, sigma: 0.0 });
        assert!(none.iter().all(|drawn| *drawn == 20 * MS));
    }
}
