//! What a call goes on from that an earlier life of the engine has left open (JR-5, JR-9).

use crate::{
    call::{
        before::Before,
        ending::Ending,
        in_flight::InFlight,
        progress::{Bid, Progress},
        refusals::interrupted_error,
    },
    record::{Foundation, PastQuestion},
    tool::Paid,
};
use tokio::time::Instant;
use toolyard_core::{Dedupe, ErrorKind, EventKind};

impl<'a> InFlight<'a> {
    /// What was done for the call before.
    fn before(self) -> Option<&'a Before> {
        self.batch.rare()?.before.get()?.get(self.index as usize)
    }

    /// The question that an earlier life of the engine has asked about it.
    #[cold]
    pub(super) fn question_before(self) -> Option<&'a PastQuestion> {
        self.before()?.question.as_ref()
    }

    /// Whether an attempt with this progress is still to be made in this life of the engine: all of it is of earlier ones.
    #[cold]
    pub(super) fn is_as_before(self, progress: &Progress) -> bool {
        progress.inherited && self.before().is_some_and(|before| before.attempts == progress.attempts)
    }

    /// Whether all that has run for it was in earlier lives of the engine, whose budgets are not those of this one.
    pub(super) fn has_only_run_before(self, ending: &Ending) -> bool {
        let is_all = |before: &Before| before.attempts > 0 && before.attempts == ending.attempts;
        ending.dedupe == Dedupe::Fresh && self.before().is_some_and(is_all)
    }

    /// The bid for the call's first attempt in this life of the engine.
    #[inline(always)]
    pub(super) fn first_bid(self, ready_at: Instant) -> Bid {
        match self.batch.rare() {
            Some(rare) if rare.before.get().is_some() => self.next_bid(ready_at),
            _ => Bid::first(ready_at),
        }
    }

    #[cold]
    #[inline(never)]
    fn next_bid(self, ready_at: Instant) -> Bid {
        let Some(progress) = self.progress_before(ready_at) else { return Bid::first(ready_at) };
        let attempts = progress.attempts;
        self.emit(Some(attempts), || EventKind::Retry { delay_ms: 0, code: ErrorKind::Interrupted });
        Bid { ready_at, progress: Some(progress) }
    }

    /// How far earlier lives of the engine have come with the call, if they have started it.
    #[cold]
    pub(super) fn progress_before(self, ready_at: Instant) -> Option<Box<Progress>> {
        let before = self.before().filter(|before| before.attempts > 0)?;
        let attempts = before.attempts;
        let error = before.error.clone().unwrap_or_else(|| Box::new(interrupted_error(attempts)));
        Some(Box::new(Progress {
            attempts,
            error,
            ready_at,
            granted_at: ready_at,
            not_before: ready_at,
            paid: Paid::default(),
            span: tracing::Span::none(),
            inherited: true,
            recorded: Foundation::default(),
        }))
    }
}
