//! The memory of a guest, counted as it grows.

use crate::ended::Limit;
use wasmtime::{Error, ResourceLimiter, Result};

/// What one element of a table takes.
const ELEMENT_BYTES: u64 = 8;

/// The most memories, tables and instances of one call: a component is made of several.
const PARTS_MAX: usize = 256;

/// Counts the memories and tables of one call together.
#[derive(Debug)]
pub(crate) struct Memory {
    most: u64,
    used: u64,
    pub(crate) peak: u64,
    /// What was last allowed, should the system not give it.
    last: u64,
    /// Set once something was refused.
    pub(crate) refused: Option<Limit>,
}

impl Memory {
    /// Up to this many bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self { most, used: 0, peak: 0, last: 0, refused: None }
    }

    fn grow(&mut self, current: usize, desired: usize, unit: u64) -> bool {
        let more = (desired.saturating_sub(current) as u64).saturating_mul(unit);
        let Some(used) = self.used.checked_add(more).filter(|used| *used <= self.most) else {
            self.refused = Some(Limit::Memory);
            return false;
        };
        (self.used, self.last) = (used, more);
        self.peak = self.peak.max(used);
        true
    }

    /// The system did not give what was allowed.
    fn not_given(&mut self) {
        self.used -= std::mem::take(&mut self.last);
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(self.grow(current, desired, 1))
    }

    fn memory_grow_failed(&mut self, _: Error) -> Result<()> {
        self.not_given();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(self.grow(current, desired, ELEMENT_BYTES))
    }

    fn table_grow_failed(&mut self, _: Error) -> Result<()> {
        self.not_given();
        Ok(())
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    fn memories(&self) -> usize {
        PARTS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-4: memories and tables count together, and what is refused is noted.
    #[test]
    fn memories_and_tables_count_together() {
        let mut memory = Memory::new(1000);
        assert!(memory.grow(0, 600, 1));
        assert!(memory.grow(0, 50, ELEMENT_BYTES));
        assert_eq!((memory.peak, memory.refused), (1000, None));
        assert!(!memory.grow(600, 601, 1));
        assert_eq!((memory.peak, memory.refused), (1000, Some(Limit::Memory)));
    }

    /// What the system did not give is not counted; a refusal that follows takes nothing off twice.
    #[test]
    fn what_was_not_given_does_not_count() {
        let mut memory = Memory::new(1000);
        assert!(memory.grow(0, 600, 1));
        memory.not_given();
        assert_eq!(memory.used, 0);
        memory.not_given();
        assert_eq!(memory.used, 0);
        assert!(!memory.grow(0, usize::MAX, ELEMENT_BYTES));
    }
}
