//! A slab: values in numbered slots, whose keys distinguish a slot's earlier content from its present one.

use std::{fmt, num::NonZeroU32};

/// Names one value of one slab, and nothing once that value has been removed: the number of its slot and, in the bits
/// above, how often the slot has been used. The highest bit is its holder's to use. It has four bytes because every
/// running call holds up to six.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(NonZeroU32);

/// The bits of a key that hold the slot's number, which limits a table to 67 million of anything.
const AT_BITS: u32 = 26;
/// The bit of a key that its holder may set.
const MARK: u32 = 1 << 31;
const USE: NonZeroU32 = NonZeroU32::new(1 << AT_BITS).expect("it is not zero");

impl Key {
    /// The key for the first use of a slot.
    fn first(at: usize) -> Self {
        let at = u32::try_from(at).ok().filter(|at| at >> AT_BITS == 0);
        Self(USE | at.expect("a table holds fewer than 2^26 of anything"))
    }

    /// The key for the next use of its slot. The count wraps after 31 uses, and an old key could then name a new
    /// value. The count only detects a caller that names what it has already given back, and no caller does that for
    /// so long.
    fn next(self) -> Self {
        let next = Self(self.0.checked_add(USE.get()).unwrap_or(USE));
        if next.is_marked() { Self(USE | self.number()) } else { next }
    }

    /// The key with a mark, which names nothing until it is [taken off](Self::unmarked).
    #[inline]
    pub(crate) fn marked(self) -> Self {
        Self(self.0 | MARK)
    }

    #[inline]
    pub(crate) fn is_marked(self) -> bool {
        self.0.get() & MARK != 0
    }

    /// The key without its mark.
    #[inline]
    pub(crate) fn unmarked(self) -> Self {
        NonZeroU32::new(self.0.get() & !MARK).map_or(self, Self)
    }

    #[inline]
    fn number(self) -> u32 {
        self.0.get() & (USE.get() - 1)
    }

    #[inline]
    fn at(self) -> usize {
        self.number() as usize
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.number(), self.0.get() >> AT_BITS)
    }
}

#[derive(Debug, Clone)]
struct Slot<T> {
    /// The key of its value, or of the next one.
    key: Key,
    value: Option<T>,
}

/// The slots. Empty ones are reused before new ones are added.
#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    empty: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), empty: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(at) = self.empty.pop() {
            let slot = &mut self.slots[at as usize];
            slot.value = Some(value);
            return slot.key;
        }
        let key = Key::first(self.slots.len());
        self.slots.push(Slot { key, value: Some(value) });
        key
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.at())?;
        if slot.key == key { slot.value.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.at())?;
        if slot.key == key { slot.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let slot = &mut self.slots[key.at()];
        slot.key = key.next();
        self.empty.push(key.number());
        slot.value.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().filter_map(|slot| Some((slot.key, slot.value.as_ref()?)))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}
