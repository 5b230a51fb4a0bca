//! What passes through a proxy, while it does.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What has passed through a [`Proxy`](super::Proxy) by now, over all its connections, heads and refusals included. It can
/// be read at any time, also when the proxy has ended.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

impl Traffic {
    /// How many connections programs have made.
    pub fn connections(&self) -> u64 {
        self.0.connections.load(Ordering::Relaxed)
    }

    /// How many bytes programs have sent.
    pub fn bytes_up(&self) -> u64 {
        self.0.up.load(Ordering::Relaxed)
    }

    /// How many bytes programs have got.
    pub fn bytes_down(&self) -> u64 {
        self.0.down.load(Ordering::Relaxed)
    }

    pub(super) fn connected(&self) {
        self.0.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: u64) {
        self.0.up.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn got(&self, bytes: u64) {
        self.0.down.fetch_add(bytes, Ordering::Relaxed);
    }
}
