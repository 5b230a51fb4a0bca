//! What one simulated run is to do, as plain data: it can be printed, changed and run again.
//!
//! ```text
//!   Program ── tools, pools, bounds ──► the engine
//!     ├─ sessions ─┬─ turns ─ batch ─ calls ─ script ─┬─ sleep, emit, write
//!     │            └─ forks ─ turns ...               └─ nested batches, forks ─ turns ...
//!     └─ orders: resize, pause, cancel, shutdown, each at its time
//! ```

mod agents;
mod care;
mod consent;
mod enrich;
mod generate;
mod govern;
mod index;
mod policy;
mod script;
mod secret;
mod shrink;

pub use agents::{Cut, CutBy, ForkPlan, How, SessionPlan, TurnPlan};
pub use care::{Care, KeyPlan, Of};
pub use consent::{AnswerPlan, Consent};
pub use generate::Shape;
pub(crate) use index::call_id;
pub use index::{Agent, Group, Index, Node, Owner, Scope};
pub use policy::PolicyPlan;
pub use script::{End, Nested, OnCancel, Script, Step};
pub use secret::Secret;
pub use shrink::smaller;

use toolyard::{BreakerPolicy, Budget, LimitScope, ToolClass};

/// One simulated run.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// How the interleaving is shaken.
    pub chaos: Chaos,
    /// Width of the read pool.
    pub read: usize,
    /// Width of an agent's concurrent pool.
    pub concurrent: usize,
    /// The session cap of sessions that name none.
    pub cap: Option<usize>,
    /// The grace after a cancel, in milliseconds.
    pub grace_ms: u64,
    /// Whether a failed serial call skips the rest of its batch.
    pub skip_rest: bool,
    /// The bound of a session's queue, where it is a small one.
    pub queue_max: Option<usize>,
    /// How long an answer of the approver is waited for, in milliseconds.
    pub answer_within_ms: u64,
    /// How long a call may wait for its permits, in milliseconds.
    pub queue_timeout_ms: Option<u64>,
    /// When calls that say nothing else have to have ended, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// Whether the engine has hooks.
    pub hooks: bool,
    /// What each turn, each agent and each tree may spend.
    pub budgets: [Budget; 3],
    /// What must show nowhere.
    pub secret: Option<Secret>,
    /// The policies that may come into force; the first one is from the start.
    pub policies: Vec<PolicyPlan>,
    /// The tools; calls name them by their place.
    pub tools: Vec<ToolPlan>,
    /// The sessions, all begun at once.
    pub sessions: Vec<SessionPlan>,
    /// What an operator does meanwhile.
    pub orders: Vec<Order>,
}

/// How the interleaving is shaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chaos {
    /// The seed of the shaking alone.
    pub seed: u64,
    /// Of a thousand polls, so many yield first.
    pub yields: u64,
    /// Of a thousand polls, so many sleep a little first.
    pub naps: u64,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPlan {
    /// Its class.
    pub class: ToolClass,
    /// The most calls of it at once.
    pub limit: Option<usize>,
    /// Where they count.
    pub limit_scope: LimitScope,
    /// The number of its serial scope, where it has one that is not its tree's.
    pub scope: Option<usize>,
    /// Where it runs.
    pub placement: Where,
    /// Its attempt timeout in milliseconds.
    pub timeout_ms: u64,
    /// What has to happen before it runs.
    pub consent: Consent,
    /// Whether sub-agents do not see it.
    pub hidden_from_forks: bool,
    /// Whether agents may call it that have capabilities and not for it.
    pub needs_no_capability: bool,
    /// Whether it is declared to spawn agents: such a one has no timeout.
    pub recursive: bool,
    /// What keeps its calls alive, and what spares it.
    pub care: Care,
}

/// Where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// In a task.
    Task,
    /// In place as far as its first wait.
    Inline,
    /// Where it cannot be dropped.
    Blocking,
}

/// A batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchPlan {
    /// Its calls.
    pub calls: Vec<CallPlan>,
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPlan {
    /// Its number in the program.
    pub node: u32,
    /// Its tool; one that is not there is unknown to the engine.
    pub tool: usize,
    /// Whether its arguments are broken JSON.
    pub broken: bool,
    /// Whether it has the id of the batch's first call.
    pub twin: bool,
    /// Its own attempt timeout in milliseconds.
    pub timeout_ms: Option<u64>,
    /// When it has to have ended, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// What the approver says, if asked.
    pub answer: AnswerPlan,
    /// For how many milliseconds the question is not shown.
    pub held_ms: Option<u64>,
    /// What the first hook does, if there are hooks.
    pub hook: HookPlan,
    /// The key under which it is to run once.
    pub key: Option<KeyPlan>,
    /// What its handler does.
    pub script: Script,
}

/// What the first hook does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookPlan {
    /// Lets the call go after so many milliseconds.
    Go(u64),
    /// Refuses it.
    Abort,
    /// Panics.
    Panic,
}

/// What an operator does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// When, in milliseconds from the start.
    pub at_ms: u64,
    /// What.
    pub act: Act,
}

/// What an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Sets the width of a pool.
    Resize(ToolClass, usize),
    /// Lets a pool grant nothing for so many milliseconds.
    Pause(ToolClass, u64),
    /// Cancels a session.
    CancelSession(usize),
    /// Cancels one call, wherever it is, of that root session.
    CancelCall(usize, u32),
    /// Cancels all that is in the air of a session; the session goes on.
    CancelCalls(usize),
    /// Puts a policy in force.
    SetPolicy(usize),
    /// Forgets all answers of a session.
    Forget(usize),
    /// Forces a breaker open.
    ForceOpen(Of),
    /// Forces a breaker closed.
    ForceClosed(Of),
    /// Closes a breaker and has it forget.
    ResetBreaker(Of),
    /// Shuts the engine down, with so many milliseconds to finish and to stop.
    Shutdown(u64, u64),
}

impl BatchPlan {
    /// Every call, those of nested batches included, parents first.
    pub fn walk<'a>(&'a self, see: &mut impl FnMut(&'a CallPlan)) {
        for call in &self.calls {
            see(call);
            call.script.batches().for_each(|batch| batch.walk(see));
        }
    }
}

impl Program {
    /// The batches that no handler makes.
    pub fn batches(&self) -> impl Iterator<Item = &BatchPlan> {
        self.sessions.iter().flat_map(SessionPlan::batches)
    }

    /// How many calls there are.
    pub fn calls(&self) -> usize {
        let mut count = 0;
        self.batches().for_each(|batch| batch.walk(&mut |_| count += 1));
        count
    }

    /// The name of a tool by its place, also of one that is not there.
    pub fn tool_name(tool: usize) -> String {
        format!("tool{tool}")
    }

    /// The policy of every back-end's breaker: that of the first tool that names one.
    pub fn backend_breaker(&self) -> BreakerPolicy {
        let of = self.tools.iter().find(|tool| tool.care.backend.is_some());
        of.map_or(BreakerPolicy::DISABLED, |tool| tool.care.breaker)
    }

    /// The name of a back-end.
    pub fn backend_name(backend: usize) -> String {
        format!("backend{backend}")
    }

    /// The name of a serial scope; they rank by their numbers.
    pub fn scope_name(scope: usize) -> String {
        format!("scope{scope}")
    }
}
