//! The spans of running calls, for what their handlers dispatch from tasks without a span.

use super::state::BatchState;
use tracing::Span;

impl BatchState {
    /// Keeps the span in which the handler of this call runs.
    pub(crate) fn keep_span(&self, index: u32, span: &Span) {
        self.slots[index as usize].make_aside().set_span(Some(span.clone()));
    }

    /// Forgets the span of a handler that is over, and returns it: a span is only closed when nothing holds it.
    pub(crate) fn forget_span(&self, index: u32) -> Option<Span> {
        self.slots[index as usize].aside()?.set_span(None).map(|span| *span)
    }

    /// The span of a running call; none if no subscriber listens.
    pub(crate) fn span_of(&self, index: u32) -> Span {
        self.slots[index as usize].aside().map_or_else(Span::none, |aside| aside.span())
    }
}
