//! The span under which the spans of a batch hang.

use crate::nesting::CallRef;
use std::sync::{Mutex, PoisonError};
use tracing::Span;

/// The span in which somebody dispatches: the one they are in, else that of the call that dispatches, which a handler
/// may do from a task that knows of no span.
pub(crate) fn here(caller: Option<&CallRef>) -> Span {
    let current = Span::current();
    match caller {
        Some(call) if current.is_none() => call.batch.span_of(call.index),
        _ => current,
    }
}

/// What a batch keeps of the span it was dispatched in; nothing where there is none.
#[derive(Default)]
pub(crate) struct Parent(Option<Box<Mutex<Span>>>);

impl Parent {
    pub(crate) fn new(span: Span) -> Self {
        Self((!span.is_none()).then(|| Box::new(Mutex::new(span))))
    }

    /// Whether there was a span to keep.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// The span, or none once every call has ended.
    pub(super) fn span(&self) -> Span {
        let Some(kept) = &self.0 else { return Span::none() };
        kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every call has ended. A batch may be kept for long after that, and a span is told of when nobody keeps it.
    pub(crate) fn let_go(&self) {
        let Some(kept) = &self.0 else { return };
        let span = std::mem::replace(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner), Span::none());
        drop(span); // not under the lock: whoever listens may be told of its end
    }
}
