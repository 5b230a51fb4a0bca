use super::*;
use crate::tool::breaker::window::{Slice, Slicing, Window};
use proptest::prelude::*;

fn counts(successes: u64, failures: u64) -> Counts {
    Counts { successes, failures }
}

/// CB-2: a window of 60 s is ten slices of 6 s.
#[test]
fn time_is_cut_into_tenths_of_the_window() {
    let slicing = Slicing::new(60 * SECOND);
    for (millis, slice) in [(0, 0), (5999, 0), (6000, 1), (59_999, 9), (60_000, 10)] {
        assert_eq!(slicing.slice_at(millis * MILLI), slice);
    }
    assert_eq!(Slicing::new(SECOND).slice_at(Duration::MAX), Slice::MAX);
    assert_eq!(Slicing::new(Duration::MAX).slice_at(1_000_000 * SECOND), 0);
}

/// CB-2: a slice leaves the window when it is ten slices old, and no earlier.
#[test]
fn a_slice_counts_for_ten() {
    let mut window = Window::default();
    window.add(3, counts(2, 1));
    window.add(12, counts(0, 5));
    assert_eq!(window.sum(), counts(2, 6));
    window.advance(13);
    assert_eq!(window.sum(), counts(0, 5));
    window.advance(Slice::MAX);
    assert_eq!(window.sum(), counts(0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// CB-2, TS-1: the window agrees with a list of all results, including late ones.
    #[test]
    fn it_holds_what_a_list_says(
        ends in proptest::collection::vec((0..4_u32, 0..12_u32, 0..3_u64, 0..3_u64), 1..40),
    ) {
        let (mut window, mut list, mut now) = (Window::default(), Vec::new(), 0);
        for (steps, late, successes, failures) in ends {
            now += steps * steps;
            let slice = now.saturating_sub(late);
            window.add(slice, counts(successes, failures));
            list.push((slice, successes, failures));
            let head = list.iter().map(|end| end.0).max().unwrap();
            let held = list.iter().filter(|end| end.0 + 10 > head);
            let expected = held.fold((0, 0), |sum, end| (sum.0 + end.1, sum.1 + end.2));
            prop_assert_eq!(window.sum(), counts(expected.0, expected.1));
        }
    }
}
