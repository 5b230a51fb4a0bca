//! How a turn follows its batches, and what it answers when one of them comes again (CL-8).

use super::Turn;
use crate::{
    batch::{StreamAnswers, TakenUp, Watch},
    call::BatchState,
};
use std::sync::Arc;
use toolyard_core::{Call, Outcome};

/// Watches a batch whose calls all run.
pub(super) struct FreshBatch<'a>(pub(super) &'a Turn);

/// Watches a batch that may be a repetition of an earlier one.
pub(super) struct ResentBatch<'a> {
    turn: &'a Turn,
    /// The turn's batches before this one.
    earlier: Vec<Earlier>,
}

/// Watches a batch that an earlier life of the engine has left open.
pub(super) struct TakenUpBatch<'a> {
    pub(super) turn: &'a Turn,
    pub(super) taken_up: TakenUp,
}

/// The results of an earlier batch so far.
pub(super) enum Earlier {
    Whole(Arc<BatchState>),
    Streamed(StreamAnswers),
}

impl<'a> ResentBatch<'a> {
    pub(super) fn of(turn: &'a Turn) -> Self {
        let batches = turn.state.lock().all().to_vec();
        Self { turn, earlier: batches.iter().map(super::TurnBatch::answers).collect() }
    }
}

impl Earlier {
    /// The result of a call equal to this one, if a handler has run for it.
    fn answer(&self, call: &Call) -> Option<Outcome> {
        match self {
            Self::Whole(batch) => batch.answer(call),
            Self::Streamed(answers) => answers.answer(call),
        }
    }
}

impl Watch for FreshBatch<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn replay(&self, _: &Call) -> Option<Outcome> {
        None
    }

    fn opened(&self, batch: &Arc<BatchState>) {
        self.0.opened(batch);
    }

    fn keeps(&self, batch: &Arc<BatchState>) -> bool {
        self.0.keeps(batch)
    }
}

impl Watch for ResentBatch<'_> {
    fn is_cancelled(&self) -> bool {
        self.turn.is_cancelled()
    }

    fn replay(&self, call: &Call) -> Option<Outcome> {
        self.earlier.iter().find_map(|batch| batch.answer(call))
    }

    fn is_resend(&self) -> bool {
        self.turn.keeps
    }

    fn opened(&self, batch: &Arc<BatchState>) {
        self.turn.opened(batch);
    }

    fn keeps(&self, batch: &Arc<BatchState>) -> bool {
        self.turn.keeps(batch)
    }
}

impl Watch for TakenUpBatch<'_> {
    fn is_cancelled(&self) -> bool {
        self.turn.is_cancelled()
    }

    fn replay(&self, _: &Call) -> Option<Outcome> {
        None
    }

    fn taken_up(&self) -> Option<&TakenUp> {
        Some(&self.taken_up)
    }

    fn opened(&self, batch: &Arc<BatchState>) {
        self.turn.opened(batch);
    }

    fn keeps(&self, batch: &Arc<BatchState>) -> bool {
        self.turn.keeps(batch)
    }
}
