//! The parent span of a batch's spans.

use parking_lot::Mutex;
use tracing::Span;

/// The span that a batch was dispatched in, if there was one.
#[derive(Default)]
pub(crate) struct Parent(Option<Box<Mutex<Span>>>);

impl Parent {
    pub(crate) fn new(span: Span) -> Self {
        Self((!span.is_none()).then(|| Box::new(Mutex::new(span))))
    }

    /// Whether there was a span.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// The span; none once every call has ended.
    pub(crate) fn span(&self) -> Span {
        let Some(kept) = &self.0 else { return Span::none() };
        kept.lock().clone()
    }

    /// Drops the span once every call has ended. A batch may live long after that, and a span is reported only when
    /// dropped.
    pub(crate) fn release(&self) {
        let Some(kept) = &self.0 else { return };
        let span = std::mem::replace(&mut *kept.lock(), Span::none());
        drop(span); // not under the lock, because this may call the subscriber
    }
}
