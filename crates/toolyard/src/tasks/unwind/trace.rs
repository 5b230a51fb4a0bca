//! Where a panic was raised. Only a panic hook can see that: at the catch, the stack is gone.
//!
//! The hook notes the last panic of each thread, and the catch on that thread takes the note. It does nothing else, and
//! nothing at all while no subscriber wants lines of level ERROR.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    cell::RefCell,
    env,
    panic::{PanicHookInfo, set_hook, take_hook},
    sync::{Once, OnceLock},
    thread,
};
use tracing::level_filters::LevelFilter;

thread_local! {
    /// The last panic of this thread that nobody has taken.
    static LAST: RefCell<Option<Box<Trace>>> = const { RefCell::new(None) };
}

/// Where a panic was raised.
pub(crate) struct Trace {
    /// Tells a note of another panic, which was caught elsewhere.
    message: Option<String>,
    location: String,
    backtrace: Backtrace,
}

impl Trace {
    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// The stack; `None` if the environment forbids it or the platform has none.
    pub(crate) fn backtrace(&self) -> Option<&Backtrace> {
        Some(&self.backtrace).filter(|backtrace| backtrace.status() == BacktraceStatus::Captured)
    }
}

/// Installs the hook, once in a process, before the one that is there.
pub(crate) fn prepare() {
    static HOOK: Once = Once::new();
    // The hook cannot be changed during a panic.
    if !thread::panicking() {
        HOOK.call_once(|| {
            let before = take_hook();
            set_hook(Box::new(move |panic| {
                note(panic);
                before(panic);
            }));
        });
    }
}

/// The note of the last panic of this thread, if it has this message.
pub(crate) fn take(message: Option<&str>) -> Option<Box<Trace>> {
    let last = LAST.try_with(RefCell::take).ok().flatten();
    last.filter(|trace| trace.message.as_deref() == message)
}

/// Puts back the note of a panic that is raised again, maybe on another thread than at first.
pub(crate) fn put_back(trace: Option<Box<Trace>>) {
    let _ = LAST.try_with(|last| last.replace(trace));
}

fn note(panic: &PanicHookInfo<'_>) {
    if LevelFilter::current() < LevelFilter::ERROR {
        return;
    }
    put_back(Some(Box::new(Trace {
        message: panic.payload_as_str().map(str::to_owned),
        location: panic.location().map(ToString::to_string).unwrap_or_default(),
        backtrace: if is_wanted() { Backtrace::force_capture() } else { Backtrace::disabled() },
    })));
}

/// Whether stacks are captured: unless the standard library's variables say 0.
fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        let said = env::var_os("RUST_LIB_BACKTRACE").or_else(|| env::var_os("RUST_BACKTRACE"));
        said.is_none_or(|value| value != "0")
    })
}
