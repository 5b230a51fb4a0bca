//! Ids for calls that came without one.

use std::{collections::HashSet, sync::Arc};

/// Generates ids that are unique in one message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    taken: HashSet<Arc<str>>,
    generated: HashSet<Arc<str>>,
    next: u64,
}

impl Ids {
    /// Marks a provider's id as taken, so that it is not generated.
    pub(crate) fn reserve(&mut self, id: &str) {
        if !self.taken.contains(id) {
            self.taken.insert(id.into());
        }
    }

    /// The id under which a call runs in the engine: its own if it has one, otherwise a generated one. Two calls
    /// that share an id both keep it, and the engine answers that.
    ///
    /// In a stream an id may be generated before the provider sends the very same one. The later call then gets a
    /// different internal id, and its own still goes back to the provider.
    pub(crate) fn internal(&mut self, id: Option<&str>) -> Arc<str> {
        match id {
            Some(id) if !self.generated.contains(id) => {
                self.reserve(id);
                id.into()
            }
            _ => self.generate(),
        }
    }

    fn generate(&mut self) -> Arc<str> {
        loop {
            self.next += 1;
            let id: Arc<str> = format!("call_{}", self.next).into();
            if self.taken.insert(id.clone()) {
                self.generated.insert(id.clone());
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_id_avoids_those_the_provider_uses() {
        let mut ids = Ids::default();
        ids.reserve("call_1");
        assert_eq!(&*ids.internal(None), "call_2");
        assert_eq!(&*ids.internal(Some("call_1")), "call_1");
        assert_eq!(&*ids.internal(Some("call_1")), "call_1");
    }

    #[test]
    fn an_id_that_arrives_after_it_was_generated_is_replaced() {
        let mut ids = Ids::default();
        assert_eq!(&*ids.internal(None), "call_1");
        assert_eq!(&*ids.internal(Some("call_1")), "call_2");
    }
}
