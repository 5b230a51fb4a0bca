//! Splits a batch into runs. Pure.
//!
//! ```text
//!     batch   read read | write | write | read      order is kept between runs
//!     runs    [ 0     ]   [ 1 ]   [ 2 ]   [ 3 ]     calls inside a run go together
//! ```
//!
//! A run is a maximal stretch of neighbours with equal routing; serial runs have length 1 (CL-3). A call's
//! routing depends on nothing but that call (CL-2), so runs form as calls arrive.

use std::{iter::from_fn, ops::Range};
use toolyard_core::Routing;

/// The runs of a batch, as ranges of its calls, in order.
///
/// Every call is in exactly one run and no run is empty.
pub(crate) fn runs(routing: impl IntoIterator<Item = Routing>) -> impl Iterator<Item = Range<usize>> {
    let mut calls = routing.into_iter().enumerate().peekable();
    from_fn(move || {
        let (start, first) = calls.next()?;
        let mut end = start + 1;
        while calls.next_if(|(_, next)| continues_run(first, Some(*next))).is_some() {
            end += 1;
        }
        Some(start..end)
    })
}

/// Whether a call of the routing `next` belongs to the run of the call before it.
pub(crate) fn continues_run(last: Routing, next: Option<Routing>) -> bool {
    last != Routing::Serial && next == Some(last)
}

/// One run per call, for a batch whose calls run one by one.
pub(crate) fn one_by_one(calls: usize) -> impl Iterator<Item = Range<usize>> {
    (0..calls).map(|at| at..at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `r`ead, `s`erial, `c`oncurrent, `x` short circuit; runs are set apart by `|`.
    fn check(batch: &str, expected: &str) {
        let routing: Vec<_> = batch.chars().map(routing_of).collect();
        let runs = runs(routing.iter().copied()).map(|run| &batch[run]).collect::<Vec<_>>().join("|");
        assert_eq!(runs, expected);
    }

    fn routing_of(letter: char) -> Routing {
        match letter {
            'r' => Routing::Read,
            's' => Routing::Serial,
            'c' => Routing::Concurrent,
            _ => Routing::ShortCircuit,
        }
    }

    /// CL-3.
    #[test]
    fn neighbours_with_equal_routing_form_a_run() {
        check("", "");
        check("r", "r");
        check("rrssccr", "rr|s|s|cc|r");
        check("rsr", "r|s|r");
    }

    /// CL-3: one unknown name inside a row of reads splits it in three.
    #[test]
    fn a_refused_call_splits_a_row_of_reads() {
        check("rrxrr", "rr|x|rr");
        check("xx", "xx");
    }

    proptest! {
        /// CL-3: runs cover the batch in order, are of one routing, and cannot be joined.
        #[test]
        fn runs_are_maximal_and_cover_the_batch(letters in "[rscx]{0,60}") {
            let routing: Vec<_> = letters.chars().map(routing_of).collect();
            let runs: Vec<_> = runs(routing.iter().copied()).collect();
            let covered: Vec<usize> = runs.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..routing.len()).collect::<Vec<_>>());
            for run in &runs {
                prop_assert!(routing[run.clone()].iter().all(|here| *here == routing[run.start]));
                prop_assert!(routing[run.start] != Routing::Serial || run.len() == 1);
            }
            for pair in runs.windows(2) {
                let (a, b) = (routing[pair[0].start], routing[pair[1].start]);
                prop_assert!(a != b || a == Routing::Serial);
            }
        }
    }
}
