//! A call in the air, and of whom something is asked because of it.

use std::sync::{Arc, OnceLock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard::ToolContext;

/// The way back to a call; it travels with its request.
#[derive(Clone)]
pub(super) struct Sink(pub(super) Arc<InAir>);

/// A call in the air.
pub(super) struct InAir {
    pub(super) context: ToolContext,
    pub(super) end: End,
}

impl Sink {
    /// That of a call, which is in the air until the guard is dropped.
    pub(super) fn of(context: &ToolContext) -> (Self, Landing) {
        let end = End::default();
        (Self(Arc::new(InAir { context: context.clone(), end: end.clone() })), Landing(end))
    }

    /// The call alone, for what belongs to it without a doubt.
    pub(super) fn caller(&self) -> Caller {
        Caller { call: self.0.clone(), is_certain: true, ends: vec![self.0.end.clone()] }
    }
}

/// When a call was over.
#[derive(Debug, Clone, Default)]
pub(super) struct End(Arc<OnceLock<Instant>>, CancellationToken);

impl End {
    /// When it was; `None` while it is in the air.
    pub(super) fn at(&self) -> Option<Instant> {
        self.0.get().copied()
    }

    async fn wait(&self) {
        self.1.cancelled().await;
    }
}

/// Ends what is in the air.
pub(super) struct Landing(End);

impl Drop for Landing {
    fn drop(&mut self) {
        let End(at, token) = &self.0;
        at.get_or_init(Instant::now);
        token.cancel();
    }
}

/// Of whom something is asked.
pub(super) struct Caller {
    /// The call; or, where that is not certain, one of those that the same client has made.
    pub(super) call: Arc<InAir>,
    pub(super) is_certain: bool,
    ends: Vec<End>,
}

impl Caller {
    /// Somebody whose calls these are; nobody for none.
    pub(super) fn of(calls: Vec<Arc<InAir>>) -> Option<Self> {
        let ends = calls.iter().map(|call| call.end.clone()).collect();
        let is_certain = calls.len() == 1;
        Some(Self { call: calls.into_iter().next()?, is_certain, ends })
    }

    /// Waits until none of the calls is in the air.
    pub(super) async fn over(&self) {
        for end in &self.ends {
            end.wait().await;
        }
    }
}
