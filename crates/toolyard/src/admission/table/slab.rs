//! Values in numbered slots, whose keys tell a slot's former content from its present one.

use std::{fmt, num::NonZeroU32};

/// Names one value of one slab, and nothing once that value has been taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    at: u32,
    generation: NonZeroU32,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at, self.generation)
    }
}

#[derive(Debug, Clone)]
struct Slot<T> {
    generation: NonZeroU32,
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
            return Key { at, generation: slot.generation };
        }
        let at = u32::try_from(self.slots.len()).expect("a table holds fewer than 2^32 of anything");
        self.slots.push(Slot { generation: NonZeroU32::MIN, value: Some(value) });
        Key { at, generation: NonZeroU32::MIN }
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.at as usize)?;
        if slot.generation == key.generation { slot.value.as_ref() } else { None }
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.at as usize)?;
        if slot.generation == key.generation { slot.value.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let slot = &mut self.slots[key.at as usize];
        // After 2^32 uses of one slot an old key would name a new value: by then nobody holds it.
        slot.generation = slot.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.empty.push(key.at);
        slot.value.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| {
            let at = u32::try_from(at).expect("a table holds fewer than 2^32 of anything");
            Some((Key { at, generation: slot.generation }, slot.value.as_ref()?))
        })
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}
