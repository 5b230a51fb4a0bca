//! The span of a call while its handler runs.

use tracing::{Span, span::Entered};

/// The span of a call while its handler runs. Boxed, because usually nothing listens and the task should stay small.
pub(crate) struct OpenSpan(Option<Box<Span>>);

impl OpenSpan {
    #[inline]
    pub(crate) fn new(span: Span) -> Self {
        Self((!span.is_disabled()).then(|| Box::new(span)))
    }

    #[inline]
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        self.0.as_deref().map(Span::enter)
    }

    /// The span, if anything listens.
    #[inline]
    pub(crate) fn heard(self) -> Option<Box<Span>> {
        self.0
    }

    #[inline]
    pub(crate) fn into_span(self) -> Span {
        self.0.map_or_else(Span::none, |span| *span)
    }
}
