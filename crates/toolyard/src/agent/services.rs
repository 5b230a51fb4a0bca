//! What a call needs of its engine: limits, rules, permits, time, and who is told.
//!
//! The engine holds this and knows its sessions and attempts besides. Nothing here knows of a call or a batch.

use super::{request_ids::RequestIds, result_capacity::ResultCapacity, scopes::Scopes, units::ToolUnits};
use crate::{
    chance::Chance,
    clock::Clock,
    config::{Budgets, Limits, OnInterrupted, OnSerialFailure, RECORD_WAIT, RECORD_WAIT_AT_LAST, Waits},
    pool::PoolLeases,
    record::{Content, EventBus, EventPlace, Pending, Reconciler, RecordError, Recording, Sequence, When},
    tasks::{Blocking, Contained, Tasks, caught, log_error},
    tool::{BreakerMove, Lengthy, MoveOf, Registry, RulesInForce, ToolEntry, Transition},
};
use futures::{
    FutureExt,
    future::{Either, select},
};
use std::{
    num::NonZeroUsize,
    pin::pin,
    sync::{Arc, OnceLock, atomic::AtomicUsize},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard_admission::{Admission, UnitId};
use toolyard_core::{
    AgentPath, Approver, Capabilities, Confirmations, Event, EventKind, Hooks, PathScope, Resources,
    SessionId,
    event::{ENGINE_SESSION, Epoch},
};
use toolyard_redact::Redactor;

/// What is logged of a result that is given although it is not durable.
const NOT_RECORDED: &str =
    "the result of a call could not be recorded; it is given all the same, and says so";

/// What the calls of an engine share.
pub(crate) struct Services {
    pub(crate) registry: Registry,
    /// The registered tools and the policy, as they are in force.
    pub(crate) rules: Arc<RulesInForce>,
    /// Capabilities that bound every session.
    pub(crate) capabilities: Option<Arc<Capabilities>>,
    pub(crate) confirmations: Confirmations,
    pub(crate) approver: Option<Contained<Arc<dyn Approver>>>,
    /// Names approval requests.
    pub(crate) requests: RequestIds,
    pub(crate) hooks: Option<Contained<Arc<dyn Hooks>>>,
    pub(crate) limits: Limits,
    /// Where arguments are validated that take long.
    pub(crate) lengthy: Lengthy,
    pub(crate) content: Content,
    pub(crate) admission: Arc<Admission>,
    pub(crate) leases: Arc<PoolLeases>,
    pub(crate) read: UnitId,
    pub(crate) bus: EventBus,
    /// Who is asked for what must be durable. Boxed, because few engines have one.
    pub(crate) recorder: Option<Box<Recording>>,
    /// Redacts what is recorded and shown; `None` if there is nothing to look for.
    pub(crate) redactor: Option<Redactor>,
    /// Redacts results.
    pub(crate) results_redactor: Option<Redactor>,
    /// Numbers the engine's own events.
    pub(crate) sequence: Sequence,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    /// Names its life.
    pub(crate) epoch: Epoch,
    pub(crate) blocking: Arc<dyn Blocking>,
    /// The unit of the threads of blocking handlers.
    pub(crate) threads: UnitId,
    pub(crate) tasks: Tasks,
    pub(crate) grace: Duration,
    /// Fires when a drain gives running handlers no more time to stop.
    pub(crate) abandon: CancellationToken,
    /// When that was.
    pub(crate) gave_up_at: OnceLock<Instant>,
    /// How many handlers were asked to stop and then abandoned.
    pub(crate) abandoned: AtomicUsize,
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    pub(crate) tree_max_in_flight: Option<NonZeroUsize>,
    /// The memory of all results.
    pub(crate) results: ResultCapacity,
    pub(crate) waits: Waits,
    pub(crate) budgets: Budgets,
    /// Named serial scopes.
    pub(crate) scopes: Scopes,
    /// Tool limits that count over the whole engine.
    pub(crate) tools: ToolUnits,
    pub(crate) on_serial_failure: OnSerialFailure,
    pub(crate) on_interrupted: OnInterrupted,
    pub(crate) reconciler: Option<Arc<dyn Reconciler>>,
    pub(crate) resources: Arc<Resources>,
    pub(crate) scope: Option<Contained<Arc<dyn PathScope>>>,
}

impl Services {
    /// Emits an event of the engine itself, under the session name reserved for that.
    pub(crate) fn emit(&self, kind: EventKind) {
        if self.bus.is_listening() {
            let (session, agent) = (SessionId::from(ENGINE_SESSION), AgentPath::root());
            let mut publisher =
                self.sequence.publisher(&self.bus, &self.clock, (&session, &agent), When::Now, 1);
            publisher.publish(kind, EventPlace::default());
        }
    }

    /// Emits events for the transitions of the breakers that an attempt of this tool passed.
    pub(crate) fn emit_transitions(&self, entry: &ToolEntry, moves: &[BreakerMove]) {
        for BreakerMove { transition: Transition { from, to }, of } in moves {
            let backend = || entry.guard().backend.as_ref().map(|backend| backend.name.clone());
            let (tool_name, backend, sandbox) = match of {
                MoveOf::Tool => (Some(entry.shared_name()), None, None),
                MoveOf::Backend => (None, backend(), None),
                MoveOf::Sandbox(sandbox) => (None, None, Some(*sandbox)),
            };
            self.emit(EventKind::BreakerTransition { tool_name, backend, sandbox, from: *from, to: *to });
        }
    }

    /// Tells the writers that an engine was built: they may append to what another engine wrote. It has the number 0,
    /// because it is not one of the events that sinks and subscribers count.
    pub(crate) fn begin_log(&self) {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let kind = EventKind::EngineStarted { version, epoch: self.epoch };
        let mut event = Event::new(SessionId::from(ENGINE_SESSION), AgentPath::root(), kind);
        let now = self.clock.now();
        (event.wall_ms, event.mono_us) = (self.clock.wall_ms(now), self.clock.mono_us(now));
        self.bus.to_writers(event);
    }

    /// A drain gives running handlers no more time to stop, and records a last while.
    pub(crate) fn gives_up(&self) {
        let _ = self.gave_up_at.set(self.clock.now());
        self.abandon.cancel();
    }

    /// Waits until something is durable, until this instant, or a last while once a drain gives up.
    pub(crate) async fn durable(
        &self,
        durable: impl Future<Output = Result<(), RecordError>>,
        until: Instant,
    ) -> Result<(), RecordError> {
        let gives_up = pin!(async {
            self.abandon.cancelled().await;
            let at = self.gave_up_at.get().copied().unwrap_or_else(|| self.clock.now());
            self.tasks.timeout_at(at + RECORD_WAIT_AT_LAST, std::future::pending::<()>()).await;
        });
        match self.tasks.timeout_at(until, select(pin!(durable), gives_up)).await {
            Some(Either::Left((durable, _))) => durable,
            Some(Either::Right(_)) | None => Err(RecordError::late()),
        }
    }

    /// Waits in this way for the record of a result. Returns whether it is durable.
    pub(crate) async fn recorded(&self, pending: Pending, until: Instant) -> bool {
        let durable = self.durable(pending, until).await;
        if let Err(error) = &durable {
            self.log_unrecorded(NOT_RECORDED, error);
        }
        durable.is_ok()
    }

    /// How long the reply of a batch waits for records; `None` if it does not. What a handler has dispatched is its own
    /// affair, and it has no time for that: all those calls have not run.
    pub(crate) fn reply_until(&self, is_nested: bool) -> Option<Instant> {
        (!is_nested).then(|| self.clock.now() + RECORD_WAIT)
    }

    /// Waits for the record of a call that has not run, or of the end of a batch, as long as its reply does. Returns
    /// `false` if that is not durable then, or for a reply that does not wait, if it is known to have failed.
    pub(crate) async fn recorded_for_reply(&self, pending: Pending, until: Option<Instant>) -> bool {
        match until {
            Some(until) => self.recorded(pending, until).await,
            None => !matches!(pending.now_or_never(), Some(Err(_))),
        }
    }

    /// Logs why a record is not durable, and what comes of that.
    #[cold]
    pub(crate) fn log_unrecorded(&self, what: &'static str, error: &RecordError) {
        log_error(what, error, self.redactor.as_ref());
    }

    /// Ends what waits for events, for questions or for changes of the tools: there are none any more.
    pub(crate) fn end_waits(&self) {
        self.bus.end_subscriptions();
        self.registry.end_watches();
        self.no_more_questions();
    }

    /// Tells the approver that the engine asks nothing more.
    pub(crate) fn no_more_questions(&self) {
        let Some(approver) = &self.approver else { return };
        if let Err(panic) = caught(|| approver.no_more_questions()) {
            let what = "an approver panicked when it was told that the engine has ended";
            panic.log(what, None, self.redactor.as_ref());
        }
    }
}
