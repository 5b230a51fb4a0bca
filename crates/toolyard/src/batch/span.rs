//! The spans of calls whose handlers run, for what those dispatch from tasks that know of no span.

use super::state::BatchState;
use tracing::Span;

impl BatchState {
    /// The handler of this call runs in this span.
    pub(crate) fn keep_span(&self, index: u32, span: &Span) {
        self.slots[index as usize].make_aside().set_span(Some(span.clone()));
    }

    /// The handler is over: a span is told of when nobody keeps it. The one that was kept.
    pub(crate) fn forget_span(&self, index: u32) -> Option<Span> {
        self.slots[index as usize].aside()?.set_span(None).map(|span| *span)
    }

    /// The span of a call whose handler runs; none where nobody listens.
    pub(crate) fn span_of(&self, index: u32) -> Span {
        self.slots[index as usize].aside().map_or_else(Span::none, |aside| aside.span())
    }
}
