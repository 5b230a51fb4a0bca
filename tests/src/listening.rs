//! Subscribes to `tracing` on one thread while other threads, which do not subscribe, run the same code.

use std::sync::OnceLock;
use tracing::{Dispatch, Subscriber, subscriber};

/// Subscribes this thread until the guard is dropped.
///
/// While only one subscriber exists, `tracing` caches for all threads whether a callsite is enabled, and it asks the
/// first thread that reaches the callsite, which may be one that does not subscribe. A second subscriber therefore
/// always exists.
pub fn listen(listener: impl Subscriber + Send + Sync + 'static) -> subscriber::DefaultGuard {
    static ANOTHER: OnceLock<Dispatch> = OnceLock::new();
    ANOTHER.get_or_init(|| Dispatch::new(subscriber::NoSubscriber::default()));
    subscriber::set_default(listener)
}
