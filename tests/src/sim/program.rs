//! The script of one simulated run as plain data, which can be printed, changed and run again.
//!
//! ```text
//!   Program ── tools, pools, bounds ──► the engine
//!     ├─ sessions ─┬─ turns ─ batch ─ calls ─ script ─┬─ sleep, emit, write
//!     │            └─ forks ─ turns ...               └─ nested batches, forks ─ turns ...
//!     └─ orders: resize, pause, cancel, shutdown, each at its time
//! ```

mod agents;
mod calls_back;
mod consent;
mod enrich;
mod generate;
mod govern;
mod guards;
mod index;
mod lives;
mod meetings;
mod policy;
mod rare;
mod recorded;
mod room;
mod sandboxed;
mod script;
mod secret;
mod shapes;
mod shrink;

pub use agents::{Cut, CutBy, DispatchMode, ForkPlan, SessionPlan, TurnPlan};
pub use calls_back::CallBack;
pub use consent::{AnswerPlan, Consent, EditPlan};
pub use generate::Bounds;
pub use guards::{BreakerOwner, Guards, KeyPlan};
pub use index::{Agent, AtGate, Group, Index, Node, Owner, Placed, Scope};
pub(crate) use index::{call_id, node_of_id};
pub use lives::{LifeEnd, LifeEndAt, LifeEnding, LivesPlan};
pub use policy::PolicyPlan;
pub use recorded::RecorderPlan;
pub use room::Room;
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
    /// The session cap of sessions that do not set their own.
    pub cap: Option<usize>,
    /// The grace after a cancel, in milliseconds.
    pub grace_ms: u64,
    /// Whether a failed serial call skips the rest of its batch.
    pub skip_rest: bool,
    /// The bound of a session's queue, if it is a small one.
    pub queue_max: Option<usize>,
    /// How long the engine waits for an answer of the approver, in milliseconds.
    pub answer_within_ms: u64,
    /// How long a call may wait for its permits, in milliseconds.
    pub queue_timeout_ms: Option<u64>,
    /// The deadline of calls that do not set their own, in milliseconds from ready.
    pub deadline_ms: Option<u64>,
    /// How many blocking handlers run at once, if only a few.
    pub threads: Option<usize>,
    /// How much memory results may take, if it is little.
    pub room: Option<Room>,
    /// Whether the engine has hooks.
    pub hooks: bool,
    /// The budgets of each turn, each agent and each tree.
    pub budgets: [Budget; 3],
    /// The recorder that is asked for what must be durable, if there is one.
    pub recorder: Option<RecorderPlan>,
    /// How a further run of it is cut into several lives of the engine, if it is (JR-5 to JR-10).
    pub lives: Option<LivesPlan>,
    /// The text that must not show up anywhere.
    pub secret: Option<Secret>,
    /// The policies that may come into force; the first is in force from the start.
    pub policies: Vec<PolicyPlan>,
    /// The tools; calls refer to them by index.
    pub tools: Vec<ToolPlan>,
    /// The sessions, all started at once.
    pub sessions: Vec<SessionPlan>,
    /// The operator's actions.
    pub orders: Vec<Order>,
}

/// How the interleaving is shaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chaos {
    /// The seed used for shaking only.
    pub seed: u64,
    /// How many polls in a thousand yield first.
    pub yields: u64,
    /// How many polls in a thousand sleep briefly first.
    pub naps: u64,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPlan {
    /// Its class.
    pub class: ToolClass,
    /// The most calls of it that run at once.
    pub limit: Option<usize>,
    /// Placement that limit counts.
    pub limit_scope: LimitScope,
    /// The number of its named serial scope; `None` for its tree's.
    pub scope: Option<usize>,
    /// Where its handlers run.
    pub placement: Placement,
    /// Its attempt timeout in milliseconds.
    pub timeout_ms: u64,
    /// What it takes for its calls to be allowed.
    pub consent: Consent,
    /// Whether it is hidden from sub-agents.
    pub hidden_from_forks: bool,
    /// Whether agents with restricted capabilities may call it without having one for it.
    pub needs_no_capability: bool,
    /// Whether it is declared to spawn agents; if so, it has no timeout.
    pub recursive: bool,
    /// Whether its calls run in a sandbox of their own.
    pub sandboxed: bool,
    /// What the destructor of its handlers' instances does.
    pub on_drop: Option<CallBack>,
    /// Its retries, keys, breaker, rate and budget.
    pub guards: Guards,
}

/// Where a tool's handlers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In a task.
    Task,
    /// Inline in the driver, up to the first wait.
    Inline,
    /// On a blocking thread, where it cannot be dropped.
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
    /// The index of its tool; the engine does not know a tool with an index out of range.
    pub tool: usize,
    /// Whether its arguments are broken JSON.
    pub broken: bool,
    /// Whether it reuses the id of the batch's first call.
    pub twin: bool,
    /// Its own attempt timeout in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Its deadline in milliseconds from ready.
    pub deadline_ms: Option<u64>,
    /// The approver's answer, if asked.
    pub answer: AnswerPlan,
    /// What the approver changes, if the answer is a yes to this call.
    pub edit: EditPlan,
    /// For how many milliseconds the question stays hidden.
    pub held_ms: Option<u64>,
    /// What the first hook does, if the engine has hooks.
    pub hook: HookPlan,
    /// Its idempotency key.
    pub key: Option<KeyPlan>,
    /// What its handler does.
    pub script: Script,
}

/// What the first hook does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookPlan {
    /// Lets the call proceed after so many milliseconds.
    Go(u64),
    /// Refuses it.
    Abort,
    /// Panics.
    Panic,
}

/// An action of the operator at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// When, in milliseconds from the start.
    pub at_ms: u64,
    /// The action.
    pub act: Act,
}

/// An action of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Sets the width of a pool.
    Resize(ToolClass, usize),
    /// Pauses a pool for so many milliseconds.
    Pause(ToolClass, u64),
    /// Cancels a session.
    CancelSession(usize),
    /// Cancels one call of that root session's tree.
    CancelCall(usize, u32),
    /// Cancels all calls in flight of a session, which stays open.
    CancelCalls(usize),
    /// Puts a policy in force.
    SetPolicy(usize),
    /// Forgets all remembered answers of a session.
    Forget(usize),
    /// Forces a breaker open.
    ForceOpen(BreakerOwner),
    /// Forces a breaker closed.
    ForceClosed(BreakerOwner),
    /// Closes a breaker and clears its history.
    ResetBreaker(BreakerOwner),
    /// Shuts the engine down, with these milliseconds to finish and to stop.
    Shutdown(u64, u64),
}

impl BatchPlan {
    /// Visits every call, including those of nested batches, parents first.
    pub fn walk<'a>(&'a self, see: &mut impl FnMut(&'a CallPlan)) {
        for call in &self.calls {
            see(call);
            call.script.batches().for_each(|batch| batch.walk(see));
        }
    }
}

impl Program {
    /// The batches that are not dispatched by a handler.
    pub fn batches(&self) -> impl Iterator<Item = &BatchPlan> {
        self.sessions.iter().flat_map(SessionPlan::batches)
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        let mut count = 0;
        self.batches().for_each(|batch| batch.walk(&mut |_| count += 1));
        count
    }

    /// The name of a tool by its index, which may be out of range.
    pub fn tool_name(tool: usize) -> String {
        format!("tool{tool}")
    }

    /// The breaker policy of all back-ends and of the sandbox: that of the first tool with one of them.
    pub fn shared_breaker(&self) -> BreakerPolicy {
        let tool = self.tools.iter().find(|tool| tool.guards.backend.is_some() || tool.sandboxed);
        tool.map_or(BreakerPolicy::DISABLED, |tool| tool.guards.breaker)
    }

    /// The name of a back-end.
    pub fn backend_name(backend: usize) -> String {
        format!("backend{backend}")
    }

    /// The name of a serial scope. Scopes rank by number.
    pub fn scope_name(scope: usize) -> String {
        format!("scope{scope}")
    }
}
