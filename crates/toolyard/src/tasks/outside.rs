//! Code that runs on the task of a handler and is not the handler's, such as a hook.

use super::OnDrop;
use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

thread_local! {
    /// Whether the code that is being polled is not that of the handler whose task this is.
    static IS_OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that is not the handler's on a task that may be a handler's. If that code counted as the handler's, a
/// dispatch of its own would wait for the handler's dispatch, which waits for the code.
pub(crate) fn outside<F: Future + Unpin>(other: F) -> Outside<F> {
    Outside { other: Some(other) }
}

/// A future that runs [`outside`] of any handler.
pub(crate) struct Outside<F> {
    /// `None` only during its drop.
    other: Option<F>,
}

impl<F: Future + Unpin> Future for Outside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let other = self.other.as_mut().expect("the other is set until this is dropped");
        marked(true, || Pin::new(other).poll(cx))
    }
}

impl<F> Drop for Outside<F> {
    fn drop(&mut self) {
        marked(true, || self.other = None);
    }
}

/// Runs a handler's code, also where it is polled by code that runs [`outside`].
pub(crate) fn inside<T>(it: impl FnOnce() -> T) -> T {
    marked(false, it)
}

/// Whether the code that runs here is not that of the handler whose task this is.
pub(crate) fn is_outside() -> bool {
    IS_OUTSIDE.get()
}

/// Calls `it`, marked as the handler's code or not.
fn marked<T>(is_outside: bool, it: impl FnOnce() -> T) -> T {
    let before = IS_OUTSIDE.replace(is_outside);
    let _restore = OnDrop::new(|| IS_OUTSIDE.set(before));
    it()
}
