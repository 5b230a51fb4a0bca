//! Values in numbered slots, whose keys tell a slot's former content from its present one.

use std::{fmt, num::NonZeroU32};

/// Names one value of one slab, and nothing once that value has been taken out: the number of its slot and, above that, how
/// often the slot has been used. Four bytes, for every call that runs holds up to five.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key(NonZeroU32);

/// The bits of a key that are its slot's number: a table holds 67 million of anything at most.
const AT_BITS: u32 = 26;
const USE: NonZeroU32 = NonZeroU32::new(1 << AT_BITS).expect("it is not zero");

impl Key {
    /// Of the first use of a slot.
    fn first(at: usize) -> Self {
        let at = u32::try_from(at).ok().filter(|at| at >> AT_BITS == 0);
        Self(USE | at.expect("a table holds fewer than 2^26 of anything"))
    }

    /// Of the next use of its slot. After 63 of them an old key would name a new value: it only shows that somebody names
    /// what he has given back, and nobody does so for so long.
    fn next(self) -> Self {
        Self(self.0.checked_add(USE.get()).unwrap_or(USE | self.number()))
    }

    fn number(self) -> u32 {
        self.0.get() & (USE.get() - 1)
    }

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
    /// Of what it holds, or will hold next.
    key: Key,
    value: Option<T>,
}

/// The slots. Those that are empty are used again before new ones are made.
#[derive(Debug, Clone)]
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    empty: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), empty: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> Key {
        if let Some(at) = self.empty.pop() {
            let slot = &mut self.slots[at as usize];
            slot.value = Some(value);
            return slot.key;
        }
        let key = Key::first(self.slots.len());
        self.slots.push(Slot { key, value: Some(value) });
        key
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.at())?;
        if slot.key == key { slot.value.as_ref() } else { None }
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.at())?;
        if slot.key == key { slot.value.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let slot = &mut self.slots[key.at()];
        slot.key = key.next();
        self.empty.push(key.number());
        slot.value.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().filter_map(|slot| Some((slot.key, slot.value.as_ref()?)))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}
