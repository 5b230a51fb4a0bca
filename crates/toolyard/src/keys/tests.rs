mod bounds;
mod model;
mod rules;
mod threads;

use super::*;
use serde_json::json;

/// The keys of a tree, with numbers for flights and results.
pub(super) type Numbers = Keys<u32, u32>;

pub(super) fn text(text: &str) -> Arc<str> {
    text.into()
}

pub(super) fn of(args: u32) -> Fingerprint {
    Fingerprint::of(&json!({ "args": args }), "1")
}

pub(super) fn keep(body: u32, bytes: usize, idempotent: bool) -> Finished<u32> {
    Finished::Keep { body, bytes, idempotent }
}

/// What is reserved, with a result for what is kept of it.
pub(super) fn bare(reserved: Reserved<u32, Arc<Kept<u32>>>) -> Reserved<u32, u32> {
    match reserved {
        Reserved::Lead(flight) => Reserved::Lead(flight),
        Reserved::Join(flight) => Reserved::Join(flight),
        Reserved::Replay(kept) => Reserved::Replay(**kept),
        Reserved::AlreadyExecuted => Reserved::AlreadyExecuted,
        Reserved::Mismatch => Reserved::Mismatch,
        Reserved::Overloaded => Reserved::Overloaded,
        Reserved::NotRetained => Reserved::NotRetained,
    }
}

/// The keys of one tool, with a clock.
pub(super) struct Tree {
    pub(super) keys: Numbers,
    pub(super) now: Instant,
    pub(super) tool: Arc<str>,
}

impl Tree {
    pub(super) fn new(bounds: KeyBounds) -> Self {
        Self { keys: Keys::new(bounds), now: Instant::now(), tool: text("tool") }
    }

    fn name(&self, key: &str) -> Name {
        Name::new(self.tool.clone(), text(key))
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    pub(super) fn reserve(&self, key: &str, args: u32, mutating: bool, flight: u32) -> Reserved<u32, u32> {
        bare(self.keys.reserve(&self.name(key), of(args), self.now, mutating, || flight))
    }

    pub(super) fn peek(&self, key: &str, args: u32) -> Peek<u32> {
        match self.keys.peek(&self.name(key), of(args), || self.now) {
            Peek::Unknown => Peek::Unknown,
            Peek::InFlight => Peek::InFlight,
            Peek::Replay(kept) => Peek::Replay(**kept),
            Peek::AlreadyExecuted => Peek::AlreadyExecuted,
            Peek::Mismatch => Peek::Mismatch,
        }
    }

    pub(super) fn complete(&self, key: &str, finished: Finished<u32>) {
        self.keys.complete(&self.name(key), finished, self.now);
    }

    /// Runs a mutating call and keeps its result.
    pub(super) fn ran(&self, key: &str, body: u32, bytes: usize, idempotent: bool) {
        assert_eq!(self.reserve(key, 0, true, body), Reserved::Lead(body), "{key}");
        self.complete(key, keep(body, bytes, idempotent));
    }

    pub(super) fn forget(&self, key: &str) {
        self.keys.forget(&self.name(key));
    }

    /// Counts: flights and results; tombstones, including possible ones; bytes.
    pub(super) fn held(&self) -> (usize, usize, usize) {
        let (live, lasting) = self.keys.capacity.taken();
        (live, lasting, self.keys.retention.lock().bytes())
    }
}
