//! Listening to `tracing` on one thread, while others that do not run the same code.

use std::sync::OnceLock;
use tracing::{Dispatch, Subscriber, subscriber};

/// Has this thread listen until the guard is dropped.
///
/// As long as there is one listener alone, tracing asks the thread that comes by a place first whether anybody listens
/// there, once for all threads; and that may be one that does not. So there are always two.
pub fn listen(listener: impl Subscriber + Send + Sync + 'static) -> subscriber::DefaultGuard {
    static ANOTHER: OnceLock<Dispatch> = OnceLock::new();
    ANOTHER.get_or_init(|| Dispatch::new(subscriber::NoSubscriber::default()));
    subscriber::set_default(listener)
}
