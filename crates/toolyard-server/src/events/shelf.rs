//! The events themselves, one after another by their positions, without a gap.
//!
//! ```text
//!   front                                              back
//!   [··▒▒▒▒▒▒] [▒▒▒▒▒▒▒▒] [▒▒▒▒▒▒▒▒] … [▒▒▒·····]       blocks of 128 events, which never move
//! ```
//!
//! An event lies among its neighbours until somebody reads it, and has memory of its own only then: nearly all events of a
//! server that is not watched are forgotten as they came, and what is forgotten in order is also cheap to find.

use super::{
    Kept,
    kept::{self, weight},
    log::Lost,
};
use std::{collections::VecDeque, sync::Arc};
use toolyard::Event;

/// How many events are in a block.
const BLOCK: u64 = 128;

/// An event as it is kept.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the large one, which is to have no memory of its own"
)]
pub(super) enum Slot {
    /// Nobody has read it.
    Unread(Event),
    /// Somebody has, and may share its line with others.
    Read(Arc<Kept>),
}

impl Slot {
    #[inline]
    pub(super) fn new(event: &Event) -> Self {
        Self::Unread(kept::copy(event))
    }

    pub(super) fn event(&self) -> &Event {
        match self {
            Self::Unread(event) => event,
            Self::Read(kept) => kept.event(),
        }
    }

    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        weight(self.event())
    }

    /// The event for a reader.
    pub(super) fn read(&mut self) -> Arc<Kept> {
        match self {
            Self::Read(kept) => kept.clone(),
            Self::Unread(event) => {
                let kept = Arc::new(Kept::new(event.clone()));
                *self = Self::Read(kept.clone());
                kept
            }
        }
    }
}

/// Events without a gap.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// Each is for positions of its own; the first may have lost its beginning.
    blocks: VecDeque<VecDeque<Slot>>,
    len: usize,
    /// The position of the last event that is kept no longer.
    gone_to: u64,
}

/// The block of a position, and the place in it.
fn place(position: u64) -> (u64, usize) {
    let at = position.saturating_sub(1);
    (at / BLOCK, (at % BLOCK) as usize)
}

impl Shelf {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds the next event.
    #[inline]
    pub(super) fn push_with(&mut self, event: impl FnOnce() -> Slot) {
        let (_, place) = place(self.gone_to + self.len as u64 + 1);
        match self.blocks.back_mut().filter(|_| place > 0) {
            Some(block) => block.push_back(event()),
            None => {
                let mut block = VecDeque::with_capacity(BLOCK as usize);
                block.push_back(event());
                self.blocks.push_back(block);
            }
        }
        self.len += 1;
    }

    /// Forgets the oldest event.
    pub(super) fn pop(&mut self) -> Option<Slot> {
        let block = self.blocks.front_mut()?;
        let oldest = block.pop_front()?;
        if block.is_empty() {
            self.blocks.pop_front();
        }
        self.len -= 1;
        self.gone_to += 1;
        Some(oldest)
    }

    /// The event at this position, if it is there.
    pub(super) fn get(&mut self, position: u64) -> Option<&mut Slot> {
        let first = self.gone_to + 1;
        if position < first {
            return None;
        }
        let ((block, at), (first_block, lost)) = (place(position), place(first));
        let at = if block == first_block { at - lost } else { at };
        self.blocks.get_mut(usize::try_from(block - first_block).ok()?)?.get_mut(at)
    }

    /// The first events after a position, as many as that.
    ///
    /// # Errors
    /// [`Lost`] if some of them are kept no longer.
    pub(super) fn after(&mut self, position: u64, most: usize) -> Result<Vec<Arc<Kept>>, Lost> {
        if position < self.gone_to {
            return Err(Lost(self.gone_to));
        }
        let mut read = Vec::new();
        while read.len() < most
            && let Some(slot) = self.get(position + 1 + read.len() as u64)
        {
            read.push(slot.read());
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{AgentPath, EventKind, SessionId};

    fn slot(position: u64) -> Slot {
        let mut event = Event::new(SessionId::from("a"), AgentPath::root(), EventKind::Attempt);
        event.position = position;
        Slot::new(&event)
    }

    /// SM-9: an event is found at its position, however many have been forgotten, and read once for all.
    #[test]
    fn events_are_found_by_their_positions() {
        let mut shelf = Shelf::default();
        (1..=1000).for_each(|position| shelf.push_with(|| slot(position)));
        for gone in 0..=1000 {
            assert_eq!(shelf.len(), 1000 - gone as usize);
            for position in [gone, gone + 1, gone + 127, gone + 128, gone + 129, 1000, 1001] {
                let found = shelf.get(position).map(|slot| slot.event().position);
                assert_eq!(found, (gone + 1..=1000).contains(&position).then_some(position), "{gone}");
            }
            assert_eq!(shelf.pop().map(|slot| slot.event().position), (gone < 1000).then_some(gone + 1));
        }
        (1001..=1300).for_each(|position| shelf.push_with(|| slot(position)));
        assert_eq!(shelf.after(999, 1).unwrap_err(), Lost(1000));
        let read = shelf.after(1100, 256).unwrap();
        assert_eq!((read[0].position(), read.len()), (1101, 200));
        let again = shelf.after(1298, 256).unwrap();
        assert!(again.len() == 2 && Arc::ptr_eq(&again[1], &read[199]));
        assert!(shelf.after(1300, 256).unwrap().is_empty());
    }
}
