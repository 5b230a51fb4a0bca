//! Refusals that precede all other checks: too many calls, ids used twice, calls nested too deep, arguments too large.

use super::intake::StreamPrefix;
use crate::{config::Limits, gate};
use foldhash::fast::RandomState;
use std::{collections::HashSet, hash::BuildHasher};
use toolyard_core::{Batch, Call, CallError, CallId, ErrorKind};

/// The bounds of a batch (CC-4) and its repeated ids (CL-8), computed once.
pub(super) struct BatchChecks {
    calls_max: usize,
    arguments_bytes_max: usize,
    /// The bound on nesting, if they are beyond it.
    too_deep: Option<u32>,
    /// How many calls of the same stream precede these.
    earlier: usize,
    /// The places of calls whose id an earlier call has.
    repeats: Option<HashSet<usize>>,
}

impl BatchChecks {
    /// `depth` is how deep the calls are nested.
    pub(super) fn of(batch: &Batch, depth: u32, limits: &Limits, earlier: Option<&StreamPrefix>) -> Self {
        let calls = batch.calls();
        let is_earlier = |id: &CallId| earlier.is_some_and(|earlier| earlier.ids.contains(id));
        let repeats = match may_repeat(calls) || calls.iter().any(|call| is_earlier(&call.id)) {
            true => Some(repeats(calls, is_earlier)),
            false => None,
        };
        let earlier = earlier.map_or(0, |earlier| earlier.calls as usize);
        let Limits { batch_calls_max: calls_max, arguments_bytes_max, nested_depth_max, .. } = *limits;
        let too_deep = (depth > nested_depth_max).then_some(nested_depth_max);
        Self { calls_max, arguments_bytes_max, too_deep, earlier, repeats }
    }

    /// Checks the call at place `at`. Returns the size of its arguments.
    pub(super) fn check(&self, call: &Call, at: usize) -> Result<usize, CallError> {
        if self.earlier + at >= self.calls_max {
            let limit = self.calls_max;
            let message = format!("the batch has more than {limit} calls: send the rest in another batch");
            return Err(CallError::new(ErrorKind::Overloaded, message));
        }
        if self.repeats.as_ref().is_some_and(|repeats| repeats.contains(&at)) {
            let message =
                format!("call id '{}' is used twice in this batch; only the first call runs", call.id);
            return Err(CallError::new(ErrorKind::InvalidInput, message));
        }
        if let Some(max) = self.too_deep {
            let message =
                format!("calls may nest {max} deep, and this one is deeper: make it from a higher level");
            return Err(CallError::new(ErrorKind::DepthExceeded, message));
        }
        gate::bound(&call.arguments, self.arguments_bytes_max)
    }
}

/// Whether two ids have the same hash. Ids hardly ever repeat, and a table of hashes shows that more cheaply than a
/// set of ids.
fn may_repeat(calls: &[Call]) -> bool {
    if calls.len() < 2 {
        return false;
    }
    let state = RandomState::default();
    // At least half of it stays empty, so probes are short; zero marks an empty place.
    let mut table = vec![0u64; (2 * calls.len()).next_power_of_two()];
    let mask = table.len() - 1;
    calls.iter().any(|call| {
        let hash = state.hash_one(call.id.as_str()) | 1;
        // The low bit is always set, so the place comes from other bits.
        let mut at = usize::try_from(hash >> 32).unwrap_or_default() & mask;
        while table[at] != 0 && table[at] != hash {
            at = (at + 1) & mask;
        }
        std::mem::replace(&mut table[at], hash) == hash
    })
}

fn repeats(calls: &[Call], is_earlier: impl Fn(&CallId) -> bool) -> HashSet<usize> {
    let mut seen = HashSet::with_capacity(calls.len());
    let repeated =
        calls.iter().enumerate().filter(|(_, call)| is_earlier(&call.id) || !seen.insert(call.id.as_str()));
    repeated.map(|(at, _)| at).collect()
}
