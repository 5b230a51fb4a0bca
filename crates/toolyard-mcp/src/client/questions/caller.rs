//! Calls in flight, and the client that is asked on behalf of a call.

use std::sync::{Arc, OnceLock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard::ToolContext;

/// The link from a request back to its call. It travels with the request.
#[derive(Clone)]
pub(crate) struct CallLink(pub(crate) Arc<CallInFlight>);

/// A call in flight.
pub(crate) struct CallInFlight {
    pub(crate) context: ToolContext,
    pub(crate) end: End,
}

impl CallLink {
    /// The link to a call, which is in flight until the guard is dropped.
    pub(crate) fn of(context: &ToolContext) -> (Self, EndGuard) {
        let end = End::default();
        (Self(Arc::new(CallInFlight { context: context.clone(), end: end.clone() })), EndGuard(end))
    }

    /// The caller for what certainly belongs to this call.
    pub(crate) fn caller(&self) -> Caller {
        Caller { call: self.0.clone(), is_certain: true, ends: vec![self.0.end.clone()] }
    }
}

/// The end of a call: whether and when it has ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct End(Arc<OnceLock<Instant>>, CancellationToken);

impl End {
    /// When the call ended; `None` while it is in flight.
    pub(crate) fn at(&self) -> Option<Instant> {
        self.0.get().copied()
    }

    async fn wait(&self) {
        self.1.cancelled().await;
    }
}

/// Guard that ends a call in flight on drop.
pub(crate) struct EndGuard(End);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let End(at, token) = &self.0;
        at.get_or_init(Instant::now);
        token.cancel();
    }
}

/// The client to ask, known by its calls.
pub(crate) struct Caller {
    /// The call; or, if that is not certain, one of the client's calls.
    pub(crate) call: Arc<CallInFlight>,
    pub(crate) is_certain: bool,
    ends: Vec<End>,
}

impl Caller {
    /// The caller of these calls; `None` if there are none.
    pub(crate) fn of(calls: Vec<Arc<CallInFlight>>) -> Option<Self> {
        let ends = calls.iter().map(|call| call.end.clone()).collect();
        let is_certain = calls.len() == 1;
        Some(Self { call: calls.into_iter().next()?, is_certain, ends })
    }

    /// Waits until none of the calls is in flight.
    pub(crate) async fn ended(&self) {
        for end in &self.ends {
            end.wait().await;
        }
    }
}
