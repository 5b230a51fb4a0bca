//! A person's view of an engine: the state of its pools, who waits for what, and what bounds its calls.

use super::{
    guards::{BreakerStatus, breakers},
    limits::{BudgetStatus, RateStatus, budgets, rates},
};
use crate::{
    call::EngineCore,
    pool::{PoolError, PoolStatus, Pools},
};
use foldhash::HashMap;
use serde::{Serialize, Serializer};
use std::{ops::Index, sync::Arc, time::Duration};
use toolyard_admission::{EntryState, UnitKind};
use toolyard_core::{SessionId, ToolClass};

/// The state of an engine at one moment, approximately: its parts are read one after another while calls are in
/// flight.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Engine, ToolClass};
/// let engine = Engine::builder().build().await.unwrap();
/// let status = engine.status().await.unwrap();
/// assert_eq!((status[ToolClass::Read].width, status[ToolClass::Read].running), (20, 0));
/// assert!(status.waiting.is_empty());
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EngineStatus {
    /// The pools, in the order of [`ToolClass::ALL`].
    pub pools: Vec<PoolStatus>,
    /// Handlers that await their own calls, including those that wait to resume. They hold no permit, and the pools
    /// count them as neither running nor queued.
    pub parked: usize,
    /// Who waits for permits, the longest wait first.
    pub waiting: Vec<Waiting>,
    /// The breakers of the tools, then those of their back-ends, then those of sandboxes.
    pub breakers: Vec<BreakerStatus>,
    /// The rates of the tools that have one, and the pauses that servers asked for (RT-10, RT-3), by tool.
    pub rates: Vec<RateStatus>,
    /// The budgets of the open sessions (RT-11): the 100 of which the largest part is used, the most used first. Those
    /// of turns and of forks are not among them.
    pub budgets: Vec<BudgetStatus>,
}

impl Index<ToolClass> for EngineStatus {
    type Output = PoolStatus;

    fn index(&self, class: ToolClass) -> &PoolStatus {
        &self.pools[class.index()]
    }
}

/// A group of waiters with equal needs: if one can proceed, each can, and they proceed in order of arrival (CC-3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Waiting {
    /// The session whose tree they belong to. `None` for handlers that wait to resume and may belong to several.
    pub session: Option<SessionId>,
    /// Who they are.
    pub who: Who,
    /// How many they are.
    pub count: usize,
    /// How long the first of them has waited.
    #[serde(rename = "longest_ms", serialize_with = "millis")]
    pub longest: Duration,
    /// What they need and cannot have now. Empty if all of it is free but held back for another waiter that waits
    /// longer.
    pub missing: Vec<Missing>,
    /// Whether the first has waited so long that its needs are held back for it (CC-3b).
    pub reserves: bool,
}

/// Who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Who {
    /// Calls that have not started.
    Calls {
        /// How deep they are nested; 0 for calls that no handler made.
        depth: u8,
    },
    /// Handlers whose own calls have finished and that wait to resume (CC-6).
    Handlers,
}

/// Something that a waiter needs and cannot have now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missing {
    /// A permit of a counted bound.
    Place {
        /// The bound.
        of: Bound,
        /// How many permits are taken.
        in_use: usize,
        /// How many there are.
        width: usize,
        /// How many of the taken permits are held by zombies: handlers that were abandoned and still run (SC-6).
        zombies: usize,
        /// Whether its pool is paused.
        is_paused: bool,
    },
    /// A serial lease (CC-7).
    Lease {
        /// The name of its scope; `None` for the session tree's own.
        scope: Option<Arc<str>>,
        /// The calls on its stack, from the top down. The top one runs, or has lent the lease to calls under it.
        holders: Vec<Holder>,
        /// Whether the serial pool is paused.
        is_paused: bool,
    },
}

/// A bound on how many calls run at once (CL-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Bound {
    /// The width of a pool.
    Pool(ToolClass),
    /// The limit of a tool.
    Tool,
    /// The cap of a session, or of one of its forks.
    Session,
    /// The cap of a session tree.
    Tree,
    /// The threads of blocking handlers.
    Threads,
}

/// A serial call on the stack of its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Holder {
    /// The session whose tree it belongs to; `None` if that session is closing.
    pub session: Option<SessionId>,
    /// The state of its handler.
    pub state: HolderState,
}

/// The state of a serial call's handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HolderState {
    /// It runs.
    Running,
    /// It awaits its own calls, to which the lease is lent.
    Parked,
    /// It waits to resume.
    Resuming,
    /// It has stopped, but something under it has not.
    Stopped,
    /// It was abandoned and still runs.
    Zombie,
}

pub(super) async fn status(engine: &EngineCore, pools: &Pools) -> Result<EngineStatus, PoolError> {
    let pools = pools.status().await?;
    let lines = engine.admission.lines();
    let names = Names::of(engine);
    let waiting = lines.into_iter().map(|line| names.waiting(line)).collect();
    Ok(EngineStatus {
        pools,
        parked: engine.admission.parked(),
        waiting,
        breakers: breakers(engine),
        rates: rates(engine),
        budgets: budgets(engine),
    })
}

/// The names of the open sessions, by number.
struct Names(HashMap<u64, SessionId>);

impl Names {
    fn of(engine: &EngineCore) -> Self {
        Self(engine.open_sessions().into_iter().map(|session| (session.root(), session.id.clone())).collect())
    }

    fn name(&self, root: u64) -> Option<SessionId> {
        self.0.get(&root).cloned()
    }

    fn waiting(&self, line: toolyard_admission::Line) -> Waiting {
        Waiting {
            session: line.root.and_then(|root| self.name(root)),
            who: if line.resumes { Who::Handlers } else { Who::Calls { depth: line.depth } },
            count: line.waiting,
            longest: line.oldest,
            missing: line.missing.into_iter().map(|missing| self.missing(missing)).collect(),
            reserves: line.reserves,
        }
    }

    fn missing(&self, missing: toolyard_admission::Missing) -> Missing {
        match missing {
            toolyard_admission::Missing::Unit { kind, in_use, width, zombies, paused } => {
                Missing::Place { of: kind.into(), in_use, width, zombies, is_paused: paused }
            }
            toolyard_admission::Missing::Lease { scope, stack, paused } => {
                let scope = match scope {
                    toolyard_admission::Scope::Tree => None,
                    toolyard_admission::Scope::Named(name) => Some(name),
                };
                let holder = |(root, state): (u64, EntryState)| Holder {
                    session: self.name(root),
                    state: state.into(),
                };
                Missing::Lease { scope, holders: stack.into_iter().map(holder).collect(), is_paused: paused }
            }
        }
    }
}

impl From<UnitKind> for Bound {
    fn from(kind: UnitKind) -> Self {
        match kind {
            UnitKind::Class(class) => Self::Pool(class),
            UnitKind::Tool(_) => Self::Tool,
            UnitKind::Session => Self::Session,
            UnitKind::Tree => Self::Tree,
            UnitKind::Threads => Self::Threads,
        }
    }
}

impl From<EntryState> for HolderState {
    fn from(state: EntryState) -> Self {
        match state {
            EntryState::Running => Self::Running,
            EntryState::Parked => Self::Parked,
            EntryState::Resuming => Self::Resuming,
            EntryState::Stopped => Self::Stopped,
            EntryState::Zombie => Self::Zombie,
        }
    }
}

fn millis<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
