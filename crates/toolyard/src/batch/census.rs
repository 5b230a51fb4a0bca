//! What is refused for what the batch is as a whole: too many calls, ids used twice.

use foldhash::{HashSet, HashSetExt};
use toolyard_core::{Batch, Call, CallError, ErrorKind};

/// The bound of a batch (CC-4) and its repeated ids (CL-8), looked at once.
pub(super) struct Census {
    calls_max: usize,
    /// Whether the call at an index has an id that an earlier one has; empty when none has.
    repeats: Vec<bool>,
}

impl Census {
    pub(super) fn of(batch: &Batch, calls_max: usize) -> Self {
        let calls = batch.calls();
        let mut repeats = Vec::new();
        if calls.len() > 1 {
            let mut seen = HashSet::with_capacity(calls.len());
            for (at, call) in calls.iter().enumerate() {
                if !seen.insert(call.id.as_str()) {
                    repeats.resize(calls.len(), false);
                    repeats[at] = true;
                }
            }
        }
        Self { calls_max, repeats }
    }

    /// Whether this call, the one at `at`, may be looked at.
    pub(super) fn check(&self, call: &Call, at: usize) -> Result<(), CallError> {
        if at >= self.calls_max {
            let most = self.calls_max;
            let message = format!("the batch has more than {most} calls: send the rest in another batch");
            return Err(CallError::new(ErrorKind::Overloaded, message));
        }
        if self.repeats.get(at) == Some(&true) {
            let message = format!("call id '{}' is used twice in this batch; only the first is run", call.id);
            return Err(CallError::new(ErrorKind::InvalidInput, message));
        }
        Ok(())
    }
}
