//! The positions of the events of one life (SM-9).

use super::{LogFault, WhatFault};
use crate::event::ENGINE_SESSION;
use std::collections::BTreeMap;

/// Which positions of a life were read. Sessions are written side by side, so a position may come a little before a
/// lower one of another session; what is kept are the gaps, of which a whole log has few and soon none.
#[derive(Debug, Clone, Default)]
pub(super) struct Positions {
    last: u64,
    /// The gaps below `last`: from the first to the last missing position of each.
    gaps: BTreeMap<u64, u64>,
    /// How many events were found missing in their sessions.
    missing: u64,
    /// The place in the log of the latest event.
    at: u64,
}

impl Positions {
    /// Reads the position of the event at this place in the log; `false` if another event had it.
    pub(super) fn read(&mut self, at: u64, position: u64) -> bool {
        self.at = at;
        if position > self.last {
            if position > self.last + 1 {
                self.gaps.insert(self.last + 1, position - 1);
            }
            self.last = position;
            return true;
        }
        let gap = self.gaps.range(..=position).next_back().map(|(first, last)| (*first, *last));
        let Some((first, last)) = gap.filter(|(_, last)| position <= *last) else { return false };
        self.gaps.remove(&first);
        if first < position {
            self.gaps.insert(first, position - 1);
        }
        if position < last {
            self.gaps.insert(position + 1, last);
        }
        true
    }

    /// Counts events that are missing according to the numbers of their session.
    pub(super) fn count_missing(&mut self, what: &WhatFault) {
        if let WhatFault::Gap { expected, found } = what {
            self.missing = self.missing.saturating_add(found - expected);
        }
    }

    /// The fault of a life that lacks more events than its sessions show: the last events of a session for example.
    pub(super) fn cut(&self) -> Option<LogFault> {
        let lacking = self.gaps.iter().fold(0_u64, |sum, (first, last)| sum.saturating_add(last - first + 1));
        let (first, last) = (*self.gaps.first_key_value()?.0, *self.gaps.last_key_value()?.1);
        let what = WhatFault::Cut {
            missing: lacking.checked_sub(self.missing).filter(|more| *more > 0)?,
            first,
            last,
        };
        Some(LogFault { at: self.at, session: ENGINE_SESSION.into(), call_id: None, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(positions: &[u64]) -> (Vec<bool>, Option<String>) {
        let mut all = Positions::default();
        let new = (1..).zip(positions).map(|(at, position)| all.read(at, *position)).collect();
        (new, all.cut().map(|fault| fault.what.to_string()))
    }

    /// SM-9: positions may come in any order, each once.
    #[test]
    fn any_order_is_whole() {
        for order in [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [2, 1, 5, 3, 4], [3, 5, 1, 4, 2]] {
            assert_eq!(read(&order), (vec![true; 5], None), "{order:?}");
        }
    }

    /// SM-9: what is missing or comes twice is found.
    #[test]
    fn what_is_missing_or_comes_twice_is_found() {
        assert_eq!(read(&[1, 2, 2, 4, 3, 3, 1]).0, [true, true, false, true, true, false, false]);
        let told = "1 event more is missing than the sessions show, at position 3";
        assert_eq!(read(&[1, 2, 4]).1.as_deref(), Some(told));
        let told = "5 events more are missing than the sessions show, at positions 1 to 7";
        assert_eq!(read(&[8, 4, 5]).1.as_deref(), Some(told));
    }

    /// SM-9: what the numbers of a session show is not told again.
    #[test]
    fn what_a_session_shows_is_not_told_again() {
        let mut all = Positions::default();
        for (at, position) in [(1, 1), (2, 4), (3, 7)] {
            all.read(at, position);
        }
        all.count_missing(&WhatFault::Gap { expected: 2, found: 5 });
        assert!(matches!(all.cut().unwrap().what, WhatFault::Cut { missing: 1, first: 2, last: 6 }));
        all.count_missing(&WhatFault::Gap { expected: 7, found: 8 });
        assert_eq!(all.cut(), None);
    }
}
