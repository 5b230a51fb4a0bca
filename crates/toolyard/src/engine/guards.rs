//! What an operator sees and does of the breakers and the zombies of tools (CB-10, SC-6).

use super::{Engine, EngineCore};
use crate::{
    breaker::{SharedBreaker, Transition},
    guard::Moved,
    registry::ToolEntry,
};
use serde::Serialize;
use smallvec::SmallVec;
use std::sync::Arc;
use toolyard_core::{BreakerState, EventKind};

/// Whose breaker it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerOf {
    /// That of a tool.
    Tool(Arc<str>),
    /// That of what tools work through (CB-9).
    Backend(Arc<str>),
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
}

/// How a breaker stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BreakerStatus {
    /// Whose it is.
    pub of: BreakerOf,
    /// Where it is.
    pub state: BreakerState,
    /// Attempts in its window that failed.
    pub failures: u64,
    /// Attempts in its window that did not.
    pub successes: u64,
    /// Handlers of the tool that were given up and still run (SC-6).
    pub zombies: usize,
}

impl Engine {
    /// How the breakers of all tools, and then those of their back-ends, stand, each by name.
    pub fn breakers(&self) -> Vec<BreakerStatus> {
        breakers(&self.core)
    }

    /// Has a breaker let nobody through until it is told otherwise; `false` when there is no such breaker (CB-10).
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

    /// Has a breaker let everybody through, whatever fails, until it is told otherwise; `false` when there is no such
    /// breaker (CB-10).
    pub fn force_closed(&self, of: &BreakerOf) -> bool {
        self.core.operate(of, |breaker| breaker.force_closed().into_iter().collect())
    }

    /// Closes a breaker and has it forget what it counted; it goes on by its policy. `false` when there is no such
    /// breaker (CB-10).
    pub fn reset_breaker(&self, of: &BreakerOf) -> bool {
        self.core.operate(of, |breaker| breaker.reset().into())
    }

    /// Gives up what is held for handlers of this tool that were given up and do not stop: their permits, the serial
    /// lease, and the order of their batches (SC-6). They run on, so what comes behind them may run beside them. Says
    /// how many there were.
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
    tools.chain(backends.map(|(name, breaker)| status(BreakerOf::Backend(name), &breaker, 0))).collect()
}

impl EngineCore {
    /// Tells of moves of the breakers before a tool.
    pub(crate) fn tell_moves(&self, entry: &ToolEntry, moves: &[Moved]) {
        for Moved { transition, of_backend } in moves {
            let backend = entry.guard().backend.as_ref().filter(|_| *of_backend);
            let of = match backend {
                Some(backend) => BreakerOf::Backend(backend.name.clone()),
                None => BreakerOf::Tool(entry.shared_name()),
            };
            self.tell_move(&of, *transition);
        }
    }

    fn tell_move(&self, of: &BreakerOf, Transition { from, to }: Transition) {
        let (tool_name, backend) = match of {
            BreakerOf::Tool(name) => (Some(name.clone()), None),
            BreakerOf::Backend(name) => (None, Some(name.clone())),
        };
        self.emit(EventKind::BreakerTransition { tool_name, backend, from, to });
    }

    /// What an operator does to a breaker.
    fn operate(&self, of: &BreakerOf, act: impl FnOnce(&SharedBreaker) -> SmallVec<[Transition; 2]>) -> bool {
        let breaker = match of {
            BreakerOf::Tool(name) => self.registry.get(name).map(|entry| entry.guard().breaker.clone()),
            BreakerOf::Backend(name) => self.registry.guards().backend(name),
        };
        let moves = breaker.as_deref().map(act);
        moves.iter().flatten().for_each(|transition| self.tell_move(of, *transition));
        moves.is_some()
    }
}
