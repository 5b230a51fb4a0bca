//! Finding the results of an open batch by its calls (CL-8).

use crate::call::BatchState;
use std::{collections::HashMap, sync::Arc};
use toolyard_core::{Call, CallId, Outcome};

/// The results of an open batch so far. A batch may have as many pieces as calls, so that they are not searched for each
/// call.
pub(crate) struct StreamAnswers {
    pieces: Vec<Arc<BatchState>>,
    /// Where the first call of an id is: later ones have been refused and have not run.
    piece_of: HashMap<CallId, usize>,
}

impl StreamAnswers {
    pub(super) fn of(pieces: Vec<Arc<BatchState>>) -> Self {
        let mut piece_of = HashMap::new();
        for (at, piece) in pieces.iter().enumerate() {
            piece.slots.iter().for_each(|slot| {
                piece_of.entry(slot.call.id.clone()).or_insert(at);
            });
        }
        Self { pieces, piece_of }
    }

    /// The result of a call equal to this one, if a handler has run for it.
    pub(crate) fn answer(&self, call: &Call) -> Option<Outcome> {
        self.pieces[*self.piece_of.get(&call.id)?].answer(call)
    }
}
