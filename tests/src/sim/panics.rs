//! Catches panics that no script asks for: those of the engine itself, even where they are caught or swallowed.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook},
    sync::Once,
};

thread_local! {
    /// The panics of the run on this thread, if one is in progress.
    static SEEN: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs `run` and returns the panics that occurred. Scripted panics unwind without the hook and are not included.
pub(super) fn panics_of(run: impl FnOnce()) -> Vec<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !note(panic) {
                before(panic);
            }
        }));
    });
    SEEN.set(Some(Vec::new()));
    // A panic that unwinds to here has already gone through the hook.
    let _ = catch_unwind(AssertUnwindSafe(run));
    SEEN.take().unwrap_or_default()
}

/// Notes a panic of a run; returns `false` on a thread without a run.
fn note(panic: &PanicHookInfo<'_>) -> bool {
    SEEN.with_borrow_mut(|seen| seen.as_mut().map(|seen| seen.push(panic.to_string())).is_some())
}
