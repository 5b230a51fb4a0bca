//! The events themselves, each at the place of its position.
//!
//! ```text
//!   front                                              back
//!   [··▒▒▒▒▒▒] [▒▒▒▒▒▒▒▒] [▒▒ ▒▒▒▒▒] … [▒ ▒·····]       blocks of 128 places, which never move
//!    gone_to ┘      complete_to ┘        └ has not come yet
//! ```
//!
//! An event lies among its neighbours until somebody reads it, and has memory of its own only then: nearly all events of a
//! server that is not watched are forgotten as they came, and what is forgotten in order is also cheap to find. A block
//! whose events are all forgotten becomes the next one at the back.

use super::{Kept, kept::weight, log::Lost};
use std::{collections::VecDeque, sync::Arc};
use toolyard::Event;

/// How many places are in a block.
const BLOCK: u64 = 128;

/// A place of an event.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the large one, which is to have no memory of its own"
)]
enum Slot {
    /// It has not come, or is kept no longer.
    Empty,
    /// Nobody has read it.
    Unread(Event),
    /// Somebody has, and may share its line with others.
    Read(Arc<Kept>),
}

impl Slot {
    fn event(&self) -> Option<&Event> {
        match self {
            Self::Empty => None,
            Self::Unread(event) => Some(event),
            Self::Read(kept) => Some(kept.event()),
        }
    }

    /// The event for a reader.
    fn read(&mut self) -> Option<Arc<Kept>> {
        match self {
            Self::Empty => None,
            Self::Read(kept) => Some(kept.clone()),
            Self::Unread(event) => {
                let kept = Arc::new(Kept::new(event.clone()));
                *self = Self::Read(kept.clone());
                Some(kept)
            }
        }
    }
}

/// The events that are kept, by position.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// Each is for positions of its own. The first has the position after `gone_to`.
    blocks: VecDeque<Box<[Slot]>>,
    /// About how many bytes the events take.
    bytes: usize,
    /// The position of the last event that is kept no longer.
    gone_to: u64,
    /// The position up to which all events have come. It is never before `gone_to`.
    complete_to: u64,
    /// A block without events, for later.
    spare: Option<Box<[Slot]>>,
}

/// The block of a position, and the place in it.
fn place(position: u64) -> (u64, usize) {
    let at = position.saturating_sub(1);
    (at / BLOCK, (at % BLOCK) as usize)
}

fn empty_block() -> Box<[Slot]> {
    std::iter::repeat_with(|| Slot::Empty).take(BLOCK as usize).collect()
}

impl Shelf {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The position up to which all events have come.
    pub(super) fn complete_to(&self) -> u64 {
        self.complete_to
    }

    /// Whether what comes with this position comes too late to be kept.
    pub(super) fn is_gone(&self, position: u64) -> bool {
        position <= self.gone_to
    }

    /// Keeps an event, unless it [is gone](Self::is_gone).
    pub(super) fn put(&mut self, event: Event) {
        let position = event.position;
        let Some((block, at)) = self.find(position) else { return };
        while self.blocks.len() <= block {
            self.blocks.push_back(self.spare.take().unwrap_or_else(empty_block));
        }
        self.bytes += weight(&event);
        let slot = &mut self.blocks[block][at];
        // There is none yet: positions come once.
        self.bytes -= slot.event().map_or(0, weight);
        *slot = Slot::Unread(event);
        if position == self.complete_to + 1 {
            self.complete();
        }
    }

    /// Goes on over all events that have come.
    fn complete(&mut self) {
        while self.get(self.complete_to + 1).is_some() {
            self.complete_to += 1;
        }
    }

    /// Forgets the oldest event, and tells of it. Nothing before it is waited for any more.
    ///
    /// Returns `false` if there is none.
    pub(super) fn pop_with(&mut self, mut tell: impl FnMut(&Event)) -> bool {
        // Without any event nothing is passed over: what comes next is to be kept.
        while self.bytes > 0
            && let Some(block) = self.blocks.front_mut()
        {
            self.gone_to += 1;
            let (_, at) = place(self.gone_to);
            let oldest = &mut block[at];
            let is_there = oldest.event().is_some();
            if let Some(event) = oldest.event() {
                self.bytes -= weight(event);
                tell(event);
            }
            // Where it is: an event is large, and nothing of it is in a cache any more.
            *oldest = Slot::Empty;
            if at + 1 == block.len() {
                self.spare = self.blocks.pop_front();
            }
            if self.complete_to < self.gone_to {
                self.complete_to = self.gone_to;
                self.complete();
            }
            if is_there {
                return true;
            }
        }
        false
    }

    /// Where a position is that is not gone: the block, and the place in it.
    fn find(&self, position: u64) -> Option<(usize, usize)> {
        if self.is_gone(position) {
            return None;
        }
        let ((block, at), (first, _)) = (place(position), place(self.gone_to + 1));
        Some((usize::try_from(block - first).ok()?, at))
    }

    fn slot(&mut self, position: u64) -> Option<&mut Slot> {
        let (block, at) = self.find(position)?;
        self.blocks.get_mut(block)?.get_mut(at)
    }

    /// The event at this position, if it is there.
    fn get(&self, position: u64) -> Option<&Event> {
        let (block, at) = self.find(position)?;
        self.blocks.get(block)?.get(at)?.event()
    }

    /// The event at this position for a reader, if it is there.
    pub(super) fn read(&mut self, position: u64) -> Option<Arc<Kept>> {
        self.slot(position)?.read()
    }

    /// The first events after a position that all before have come to, as many as that.
    ///
    /// # Errors
    /// [`Lost`] if some of them are kept no longer.
    pub(super) fn after(&mut self, position: u64, most: usize) -> Result<Vec<Arc<Kept>>, Lost> {
        if position < self.gone_to {
            return Err(Lost(self.gone_to));
        }
        let to = self.complete_to.min(position.saturating_add(most as u64));
        Ok((position..to).filter_map(|before| self.read(before + 1)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{AgentPath, EventKind, SessionId};

    fn event(position: u64) -> Event {
        let mut event = Event::new(SessionId::from("a"), AgentPath::root(), EventKind::Attempt);
        event.position = position;
        event
    }

    fn pop(shelf: &mut Shelf) -> Option<u64> {
        let mut popped = None;
        let is_one = shelf.pop_with(|event| popped = Some(event.position));
        assert_eq!(is_one, popped.is_some());
        popped
    }

    fn positions(read: Result<Vec<Arc<Kept>>, Lost>) -> Vec<u64> {
        read.unwrap().iter().map(|event| event.position()).collect()
    }

    /// SM-9: an event is found at its position, however many have been forgotten, and read once for all.
    #[test]
    fn events_are_found_by_their_positions() {
        let mut shelf = Shelf::default();
        (1..=1000).for_each(|position| shelf.put(event(position)));
        for gone in 0..=1000 {
            assert_eq!(shelf.bytes(), (1000 - gone as usize) * weight(&event(1)));
            for position in [gone, gone + 1, gone + 127, gone + 128, gone + 129, 1000, 1001] {
                let found = shelf.get(position).map(|event| event.position);
                assert_eq!(found, (gone + 1..=1000).contains(&position).then_some(position), "{gone}");
            }
            if gone < 1000 {
                assert_eq!(pop(&mut shelf), Some(gone + 1));
            }
        }
        (1001..=1300).for_each(|position| shelf.put(event(position)));
        assert_eq!(shelf.after(999, 1).unwrap_err(), Lost(1000));
        let read = shelf.after(1100, 256).unwrap();
        assert_eq!((read[0].position(), read.len()), (1101, 200));
        let again = shelf.after(1298, 256).unwrap();
        assert!(again.len() == 2 && Arc::ptr_eq(&again[1], &read[199]));
        assert!(shelf.after(1300, 256).unwrap().is_empty());
    }

    /// SM-9: whoever reads everything reads up to the first event that is missing, in whatever order they come.
    #[test]
    fn what_has_not_come_is_waited_for() {
        let mut shelf = Shelf::default();
        (2..=400).rev().step_by(2).for_each(|position| shelf.put(event(position)));
        assert!(shelf.complete_to() == 0 && shelf.after(0, 256).unwrap().is_empty());
        (1..=399).step_by(2).filter(|position| *position != 201).for_each(|at| shelf.put(event(at)));
        assert_eq!(positions(shelf.after(190, 256)), (191..=200).collect::<Vec<_>>());
        assert!(shelf.read(201).is_none() && shelf.read(202).is_some());
        shelf.put(event(201));
        assert_eq!((shelf.complete_to(), shelf.after(0, 256).unwrap().len()), (400, 256));
    }

    /// HT-10: what has not come keeps nothing from being forgotten, and is not kept when it comes after all.
    #[test]
    fn what_has_not_come_can_be_forgotten() {
        let mut shelf = Shelf::default();
        [1, 2, 5, 6, 8].into_iter().for_each(|position| shelf.put(event(position)));
        assert_eq!([(); 3].map(|()| pop(&mut shelf)), [1, 2, 5].map(Some));
        assert_eq!(shelf.complete_to(), 6);
        shelf.put(event(4));
        assert!(shelf.is_gone(4) && shelf.bytes() == 2 * weight(&event(1)));
        assert_eq!(shelf.after(4, 9).unwrap_err(), Lost(5));
        shelf.put(event(7));
        assert_eq!(positions(shelf.after(5, 9)), [6, 7, 8]);
        while pop(&mut shelf).is_some() {}
        assert_eq!((shelf.bytes(), shelf.complete_to()), (0, 8));
        shelf.put(event(9));
        assert_eq!(positions(shelf.after(8, 9)), [9]);
    }
}
