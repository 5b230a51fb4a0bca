//! What is refused for what the batch is as a whole: too many calls, ids used twice.

use foldhash::fast::RandomState;
use std::{collections::HashSet, hash::BuildHasher};
use toolyard_core::{Batch, Call, CallError, ErrorKind};

/// The bound of a batch (CC-4) and its repeated ids (CL-8), looked at once.
pub(super) struct Census {
    calls_max: usize,
    /// The places of calls whose id an earlier one has.
    repeats: HashSet<usize>,
}

impl Census {
    pub(super) fn of(batch: &Batch, calls_max: usize) -> Self {
        let calls = batch.calls();
        let repeats = if may_repeat(calls) { repeats(calls) } else { HashSet::new() };
        Self { calls_max, repeats }
    }

    /// Whether this call, the one at `at`, may be looked at.
    pub(super) fn check(&self, call: &Call, at: usize) -> Result<(), CallError> {
        if at >= self.calls_max {
            let most = self.calls_max;
            let message = format!("the batch has more than {most} calls: send the rest in another batch");
            return Err(CallError::new(ErrorKind::Overloaded, message));
        }
        if self.repeats.contains(&at) {
            let message = format!("call id '{}' is used twice in this batch; only the first is run", call.id);
            return Err(CallError::new(ErrorKind::InvalidInput, message));
        }
        Ok(())
    }
}

/// Whether two ids have the same hash. Ids hardly ever repeat, and sorted hashes say so without a table of ids.
fn may_repeat(calls: &[Call]) -> bool {
    if calls.len() < 2 {
        return false;
    }
    let state = RandomState::default();
    let mut hashes: Vec<u64> = calls.iter().map(|call| state.hash_one(call.id.as_str())).collect();
    hashes.sort_unstable();
    hashes.windows(2).any(|pair| pair[0] == pair[1])
}

fn repeats(calls: &[Call]) -> HashSet<usize> {
    let mut seen = HashSet::with_capacity(calls.len());
    let repeated = calls.iter().enumerate().filter(|(_, call)| !seen.insert(call.id.as_str()));
    repeated.map(|(at, _)| at).collect()
}
