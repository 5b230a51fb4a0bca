//! Batches that were sent again within their turn (CL-8).

use super::{EndsNow, SortedBatch, SortedCall};
use crate::batch::Fate;
use toolyard_core::Dedupe;

impl SortedCall {
    /// A call of a batch that was sent again, which had not begun, has the result that an equal one of the turn has if a
    /// handler has run for that one: so it would have been answered in the life in which it came (CL-8), whose record of
    /// that may be missing.
    pub(super) fn answer_again(&mut self, earlier: &[SortedBatch]) {
        if !matches!(&self.fate, Fate::Open(before) if before.attempts == 0) {
            return;
        }
        let same = |it: &&Self| {
            it.call.id == self.call.id
                && it.call.name == self.call.name
                && it.call.arguments.means(&self.call.arguments)
        };
        let result = |it: &Self| match &it.fate {
            Fate::Ended { outcome, is_unknown } if outcome.attempts > 0 => {
                Some((outcome.clone(), *is_unknown))
            }
            _ => None,
        };
        let found = earlier.iter().find_map(|batch| batch.calls.iter().find(same).and_then(result));
        if let Some((mut outcome, is_unknown)) = found {
            outcome.dedupe = Dedupe::Replayed;
            self.fate = Fate::Ended { outcome, is_unknown };
            self.ends = Some(EndsNow { entry: None, attempt: None, is_edited: false });
        }
    }
}
