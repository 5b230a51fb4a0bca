//! Subscribes to `tracing` on one thread while other threads, which do not subscribe, run the same code.

use std::sync::OnceLock;
use tracing::{Dispatch, Subscriber, subscriber};

/// Subscribes this thread until the guard is dropped.
///
/// While only one subscriber exists, the first thread that reaches a callsite decides for all threads whether it is
/// enabled, and that thread may be one that does not subscribe. So that `tracing` asks every subscriber, a second one
/// always exists.
pub fn listen(listener: impl Subscriber + Send + Sync + 'static) -> subscriber::DefaultGuard {
    static ANOTHER: OnceLock<Dispatch> = OnceLock::new();
    ANOTHER.get_or_init(|| Dispatch::new(subscriber::NoSubscriber::default()));
    subscriber::set_default(listener)
}
