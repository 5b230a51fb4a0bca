//! The operator's view of breakers and zombies, and control over them (CB-10, SC-6).

use super::Engine;
use crate::{
    call::EngineCore,
    tool::{SharedBreaker, Transition},
};
use serde::Serialize;
use smallvec::SmallVec;
use std::sync::Arc;
use toolyard_core::{BreakerState, EventKind, Sandbox};

/// Identifies a breaker by its owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerOf {
    /// A tool's own breaker.
    Tool(Arc<str>),
    /// The breaker of a back-end that tools work through (CB-9).
    Backend(Arc<str>),
    /// The breaker of a sandbox that calls run in (CB-9). The host has none.
    Sandbox(Sandbox),
}

impl BreakerOf {
    /// The breaker of this tool.
    pub fn tool(name: impl Into<Arc<str>>) -> Self {
        Self::Tool(name.into())
    }

    /// The breaker of this back-end.
    pub fn backend(name: impl Into<Arc<str>>) -> Self {
        Self::Backend(name.into())
    }

    /// The breaker of this sandbox.
    pub fn sandbox(sandbox: Sandbox) -> Self {
        Self::Sandbox(sandbox)
    }

    /// The breaker that an event `breaker.transition` is about; `None` for another event, or one that names nothing.
    ///
    /// # Examples
    /// ```
    /// use toolyard::{BreakerOf, BreakerState, EventKind, Sandbox};
    /// let (from, to) = (BreakerState::Closed, BreakerState::Open);
    /// let sandbox = Some(Sandbox::Process);
    /// let event = EventKind::BreakerTransition { tool_name: None, backend: None, sandbox, from, to };
    /// assert_eq!(BreakerOf::of_event(&event), Some(BreakerOf::sandbox(Sandbox::Process)));
    /// ```
    pub fn of_event(event: &EventKind) -> Option<Self> {
        let EventKind::BreakerTransition { tool_name, backend, sandbox, .. } = event else { return None };
        let of_tool = tool_name.clone().map(Self::Tool);
        let of_backend = || backend.clone().map(Self::Backend);
        of_tool.or_else(of_backend).or(sandbox.map(Self::Sandbox))
    }
}

/// The state of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BreakerStatus {
    /// Whose breaker it is.
    pub of: BreakerOf,
    /// Its state.
    pub state: BreakerState,
    /// Failed attempts in its window.
    pub failures: u64,
    /// Successful attempts in its window.
    pub successes: u64,
    /// Handlers of the tool that were abandoned and still run (SC-6).
    pub zombies: usize,
}

impl Engine {
    /// The state of all breakers: those of the tools by name, then those of the back-ends by name, then those of the
    /// sandboxes that a call was to run in.
    pub fn breakers(&self) -> Vec<BreakerStatus> {
        breakers(&self.core)
    }

    /// Opens a breaker until an operator changes it again: no call passes. Returns `false` if there is no such
    /// breaker (CB-10).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{BreakerOf, Call, Engine, ToolContext, ToolSpec, tool_fn};
    /// let ping = tool_fn(ToolSpec::pure("ping"), |(): (), _: ToolContext| async { Ok("pong") });
    /// let engine = Engine::builder().tool(ping).build().await.unwrap();
    /// assert!(engine.force_open(&BreakerOf::tool("ping")));
    /// let outcome = engine.session("demo").call(Call::new("call_1", "ping", "{}")).await;
    /// assert_eq!(outcome.error().unwrap().kind.code(), "circuit_open");
    /// engine.reset_breaker(&BreakerOf::tool("ping"));
    /// assert!(engine.session("demo").call(Call::new("call_2", "ping", "{}")).await.success());
    /// # }
    /// ```
    pub fn force_open(&self, of: &BreakerOf) -> bool {
        self.core.operate(of, |breaker| breaker.force_open().into_iter().collect())
    }

    /// Closes a breaker until an operator changes it again: every call passes, whatever fails. Returns `false` if
    /// there is no such breaker (CB-10).
    pub fn force_closed(&self, of: &BreakerOf) -> bool {
        self.core.operate(of, |breaker| breaker.force_closed().into_iter().collect())
    }

    /// Closes a breaker and clears its counts; from then on it follows its policy. Returns `false` if there is no
    /// such breaker (CB-10).
    pub fn reset_breaker(&self, of: &BreakerOf) -> bool {
        self.core.operate(of, |breaker| breaker.reset().into())
    }

    /// Releases everything held for the zombies of this tool, its handlers that were abandoned and still run: their
    /// permits, the serial lease, and the order of their batches (SC-6). The zombies run on, so later calls may run
    /// beside them. Returns how many there were.
    pub fn release_zombies(&self, tool: &str) -> usize {
        let Some(entry) = self.core.registry.get(tool) else { return 0 };
        let count = entry.guard().release_zombies();
        if count > 0 {
            self.core.emit(EventKind::ZombiesReleased { tool_name: entry.shared_name(), count });
        }
        count
    }
}

pub(super) fn breakers(engine: &EngineCore) -> Vec<BreakerStatus> {
    let now = engine.clock.now();
    let status = |of, breaker: &SharedBreaker, zombies| {
        let counts = breaker.counts(now);
        let (failures, successes) = (counts.failures, counts.successes);
        BreakerStatus { of, state: breaker.state(), failures, successes, zombies }
    };
    let tools = engine.registry.list().into_iter().map(|entry| {
        let guard = entry.guard();
        status(BreakerOf::Tool(entry.shared_name()), &guard.breaker, guard.zombies())
    });
    let backends = engine.registry.guards().backends().into_iter();
    let backends = backends.map(|(name, breaker)| status(BreakerOf::Backend(name), &breaker, 0));
    let sandboxes = engine.registry.guards().sandboxes.all();
    let sandboxes = sandboxes.map(|of| status(BreakerOf::Sandbox(of.sandbox), of.breaker, 0));
    tools.chain(backends).chain(sandboxes).collect()
}

impl EngineCore {
    fn emit_transition(&self, of: &BreakerOf, Transition { from, to }: Transition) {
        let (tool_name, backend, sandbox) = match of {
            BreakerOf::Tool(name) => (Some(name.clone()), None, None),
            BreakerOf::Backend(name) => (None, Some(name.clone()), None),
            BreakerOf::Sandbox(sandbox) => (None, None, Some(*sandbox)),
        };
        self.emit(EventKind::BreakerTransition { tool_name, backend, sandbox, from, to });
    }

    /// Applies an operator's action to a breaker; `false` if there is no such breaker.
    fn operate(&self, of: &BreakerOf, act: impl FnOnce(&SharedBreaker) -> SmallVec<[Transition; 2]>) -> bool {
        let breaker = match of {
            BreakerOf::Tool(name) => self.registry.get(name).map(|entry| entry.guard().breaker.clone()),
            BreakerOf::Backend(name) => self.registry.guards().backend(name),
            BreakerOf::Sandbox(sandbox) => {
                self.registry.guards().sandboxes.of(*sandbox).map(|of| of.breaker.clone())
            }
        };
        let moves = breaker.as_deref().map(act);
        moves.iter().flatten().for_each(|transition| self.emit_transition(of, *transition));
        moves.is_some()
    }
}
