//! A batch as the handlers of its calls see it.

use super::intake::{Dispatch, Order, Origin};
use super::nested::dispatch_nested;
use crate::call::{BatchState, CallRef, TurnOf, span};
use std::{any::Any, sync::Arc};
use tokio_util::sync::CancellationToken;
use toolyard_core::{AgentPath, Batch, Call, CallScope, Dispatching, EventKind, Resources, SessionId};

impl CallScope for BatchState {
    fn session(&self) -> &SessionId {
        &self.session.id
    }

    fn agent(&self) -> &AgentPath {
        &self.session.path
    }

    fn turn(&self) -> u64 {
        self.turn
    }

    fn batch(&self) -> u64 {
        self.base.number
    }

    fn call(&self, index: u32) -> &Call {
        self.at(index).call()
    }

    fn idempotency_key(&self, index: u32) -> Option<&str> {
        self.at(index).idempotency_key()
    }

    fn resources(&self) -> &Resources {
        &self.session.resources
    }

    fn cancel_token(&self, index: u32) -> &CancellationToken {
        self.at(index).token()
    }

    fn is_cancelled(&self, index: u32) -> bool {
        self.at(index).cancelled().is_some()
    }

    /// Streamed output is dropped once its call has ended.
    fn output_delta(&self, index: u32, attempt: u32, text: &str) {
        let call = self.at(index);
        let life = call.slot().life();
        if life.is_running() {
            match &self.session.engine.redactor {
                None => {
                    call.emit(Some(attempt), || EventKind::OutputDelta { text: text.to_owned() });
                }
                Some(redactor) => call.stream(attempt, redactor, text),
            }
        }
    }

    /// The calls belong to the turn of the handler's own call.
    fn dispatch(self: Arc<Self>, index: u32, batch: Batch) -> Dispatching {
        Box::pin(async move {
            let turn = TurnOf { number: self.turn, is_whole: false, allowance: self.allowance().cloned() };
            let (session, call) = (self.session.clone(), CallRef { batch: self, index });
            let span = span::here(Some(&call));
            let dispatch = Dispatch {
                session: &session,
                turn,
                order: Order::Runs,
                watch: None,
                origin: Origin::Outside,
                span,
                can_be_resumed: false,
            };
            dispatch_nested(call, dispatch, batch).await
        })
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
