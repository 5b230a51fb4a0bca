//! Which deliberate fault the engines of a thread have. `.ci/faults` makes this file the crate `fault` of its copy of
//! the sources; the patches beside it ask [`is_on`].

use std::{cell::Cell, sync::LazyLock};

/// The fault that every thread starts with: the variable `TOOLYARD_FAULT`.
static AT_START: LazyLock<Option<&'static str>> =
    LazyLock::new(|| std::env::var("TOOLYARD_FAULT").ok().map(|name| &*name.leak()));

thread_local! {
    static CHOSEN: Cell<Option<&'static str>> = Cell::new(*AT_START);
}

/// Whether this thread's engines have this fault.
pub fn is_on(name: &str) -> bool {
    CHOSEN.get() == Some(name)
}

/// Chooses the fault of this thread's engines, or none.
pub fn set(name: Option<&'static str>) {
    CHOSEN.set(name);
}
