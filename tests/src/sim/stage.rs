//! The stage on which a program is played: an engine with scripted tools and the state that they share.

mod calls_back;
mod embedder;
mod handler;
mod late;
mod life;
mod operator;
mod policy;
mod recorder;
mod returning;
mod sandbox;
mod secret;
mod stream;
mod turns;

pub(super) use life::{Callers, Life, effect};
pub(super) use operator::{play_order, shut_down};
pub(super) use policy::{capabilities, identity};
pub use returning::ResultAgain;
pub(super) use turns::Agent;

use super::{
    journal::{Fact, HandlerStep, Journal},
    program::{BatchPlan, CallPlan, Consent, Placement, Program, ToolPlan, node_of_id},
    shake::{Shaker, Tasks, Threads},
};
use calls_back::{OnDrop, Reachable};
use embedder::{ScriptedApprover, ScriptedHooks};
use handler::Scripted;
use parking_lot::{Mutex, MutexGuard};
use sandbox::{Portable, ShakenBackend};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};
use toolyard::{
    Budgets, Call, CallId, CallTimeout, Clock, ConfirmationMode, Confirmations, Engine, HiddenFrom,
    HostBackend, KeyConflict, Limits, OnInterrupted, OnSerialFailure, PoolWidths, RetryPolicy, SideEffects,
    ToolContext, ToolSpec, from_fn,
};

/// The state that the parts of one run share.
pub(super) struct Stage {
    pub(super) program: Program,
    calls: BTreeMap<u32, Arc<CallPlan>>,
    pub(super) journal: Journal,
    pub(super) shaker: Shaker,
    /// The life of the engine, if the run has several.
    pub(super) life: Option<Life>,
    /// The number of running blocking handlers.
    pub(super) busy: Arc<AtomicU64>,
    /// The running handlers by call number.
    running: Mutex<BTreeMap<u32, RunningHandler>>,
    /// The forks that outlive their handler's call and are played.
    left_behind: Mutex<BTreeSet<u32>>,
    /// What destructors reach.
    reachable: Mutex<Option<Arc<Reachable>>>,
    /// How often a destructor has used the engine.
    call_backs: AtomicU64,
    /// How often the approver has given each call what may not run.
    misfits: Mutex<BTreeMap<u32, u32>>,
}

/// A running handler.
struct RunningHandler {
    cx: ToolContext,
    is_blocking: bool,
    is_given_up: bool,
}

impl Stage {
    pub(super) fn new(program: &Program, life: Option<Life>) -> Arc<Self> {
        let mut calls = BTreeMap::new();
        for batch in program.batches() {
            batch.walk(&mut |call| drop(calls.insert(call.node, Arc::new(call.clone()))));
        }
        Arc::new(Self {
            program: program.clone(),
            calls,
            journal: Journal::of(life.clone()),
            shaker: Shaker::new(program.chaos),
            life,
            busy: Arc::default(),
            running: Mutex::default(),
            left_behind: Mutex::default(),
            reachable: Mutex::default(),
            call_backs: AtomicU64::new(0),
            misfits: Mutex::default(),
        })
    }

    /// How often the approver has given this call what may not run, this time not included.
    fn misfits_so_far(&self, node: u32) -> u32 {
        let mut misfits = self.misfits.lock();
        let given = misfits.entry(node).or_default();
        *given += 1;
        *given - 1
    }

    fn left_behind(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.left_behind.lock()
    }

    /// Whether a call that has run has ended, and its handler too.
    fn is_over(&self, node: u32) -> bool {
        self.journal.has_ended(&super::program::call_id(node)) && !self.running.lock().contains_key(&node)
    }

    /// The calls whose handlers run now, for a dump.
    pub(super) fn running_now(&self) -> Vec<u32> {
        self.running.lock().keys().copied().collect()
    }

    /// The plan of the call with this id. A call that reuses another's id never gets here.
    fn plan(&self, id: &CallId) -> Arc<CallPlan> {
        node_of_id(id).and_then(|node| self.calls.get(&node)).expect("unknown call id").clone()
    }

    /// Records that a handler has started.
    fn begin(&self, node: u32, cx: &ToolContext) {
        let is_blocking = self
            .program
            .tools
            .get(self.calls[&node].tool)
            .is_some_and(|tool| tool.placement == Placement::Blocking);
        // A handler given up before this one started no longer counts towards everything it held.
        self.note_given_up();
        self.running.lock().insert(node, RunningHandler { cx: cx.clone(), is_blocking, is_given_up: false });
        self.journal.note(Fact::Handler(node, HandlerStep::Started));
    }

    /// Records the handlers given up since the last time this was called.
    fn note_given_up(&self) {
        let mut running = self.running.lock();
        let given_up =
            running.iter_mut().filter(|(_, it)| it.is_blocking && !it.is_given_up && it.cx.is_cancelled());
        for (node, presence) in given_up {
            presence.is_given_up = true;
            self.journal.note(Fact::Handler(*node, HandlerStep::GivenUp));
        }
    }

    /// Records that a handler has ended.
    fn end(&self, node: u32) {
        // The handler's context is dropped outside the lock.
        let handler = self.running.lock().remove(&node);
        self.journal.note(Fact::Handler(node, HandlerStep::Ended));
        drop(handler);
    }

    /// The calls of a batch as the engine takes them.
    pub(super) fn calls(&self, batch: &BatchPlan) -> Vec<Call> {
        let first = batch.key();
        batch.calls.iter().map(|call| engine_call(&self.program, call, first)).collect()
    }

    /// The number of running blocking handlers.
    pub(super) fn busy(&self) -> u64 {
        self.busy.load(Ordering::Relaxed)
    }
}

fn engine_call(program: &Program, call: &CallPlan, first: Option<u32>) -> Call {
    let id = super::program::call_id(first.filter(|_| call.twin).unwrap_or(call.node));
    let name = Program::tool_name(call.tool);
    let mut made = match call.key {
        _ if call.broken => Call::new(id, name, program.with_secret("{\"node\": ")),
        _ => Call::new(id, name, arguments(program, call)),
    };
    made.idempotency_key = call.key.map(|key| format!("key{}", key.key).into());
    made.deadline = call.deadline_ms.map(Duration::from_millis);
    made.timeout = call.timeout_ms.map(|ms| CallTimeout::of_attempt(Duration::from_millis(ms)));
    made
}

/// The arguments of a call whose arguments are not broken.
pub(in crate::sim) fn arguments(program: &Program, call: &CallPlan) -> Value {
    let mut args = call.key.map_or_else(|| json!({"node": call.node}), |key| json!({"args": key.args}));
    if let Some(secret) = &program.secret {
        args["pass"] = secret.whole.clone().into();
    }
    args
}

/// The arguments that its approver gives a call.
pub(in crate::sim) fn edited(program: &Program, call: &CallPlan) -> Value {
    let mut args = arguments(program, call);
    args["edited"] = call.node.into();
    args
}

/// Builds the engine of a program.
pub(super) async fn engine(program: &Program, stage: &Arc<Stage>) -> Engine {
    let mut limits = Limits::default();
    limits.queue_session_max = program.queue_max.unwrap_or(limits.queue_session_max);
    limits.blocking_threads_max = program.threads.unwrap_or(limits.blocking_threads_max);
    if let Some(room) = program.room {
        limits.results_batch_bytes_max = room.batch;
        limits.results_session_bytes_max = room.session;
        limits.results_engine_bytes_max = room.engine;
    }
    let threads = Threads { shaker: stage.shaker.clone(), busy: stage.busy.clone() };
    let host = HostBackend::new(Arc::new(threads));
    let mut builder = Engine::builder()
        .pools(PoolWidths::new(program.read, program.concurrent))
        .limits(limits)
        .grace(Duration::from_millis(program.grace_ms))
        .clock(Clock::starting_at(SystemTime::UNIX_EPOCH))
        .retry(RetryPolicy::NONE)
        .breaker(program.shared_breaker())
        .seed(program.chaos.seed)
        .budgets(
            Budgets::default().turn(program.budgets[0]).session(program.budgets[1]).tree(program.budgets[2]),
        )
        .confirmations(confirmations(program))
        .policy(policy::Planned::new(stage, &program.policies[0]))
        .approver(ScriptedApprover { stage: stage.clone() })
        .backend(Arc::new(ShakenBackend { host, stage: stage.clone() }))
        .spawner(Arc::new(Tasks { shaker: stage.shaker.clone() }))
        .events(stage.journal.clone());
    if let Some(redactor) = secret::redactor(program) {
        builder = builder.redact(redactor).trace_content(true);
    }
    builder = match (&stage.life, program.recorder) {
        (Some(life), _) => {
            let then = if life.plan().goes_on { OnInterrupted::Continue } else { OnInterrupted::default() };
            builder.recorder(recorder::Both::new(stage, life)).on_interrupted(then)
        }
        (None, Some(plan)) => builder.recorder(recorder::scripted(stage, plan)),
        (None, None) => builder,
    };
    if program.skip_rest {
        builder = builder.on_serial_failure(OnSerialFailure::SkipRest);
    }
    if let Some(cap) = program.cap {
        builder = builder.max_in_flight(cap);
    }
    if let Some(ms) = program.queue_timeout_ms {
        builder = builder.queue_timeout(Duration::from_millis(ms));
    }
    if let Some(ms) = program.deadline_ms {
        builder = builder.call_deadline(Duration::from_millis(ms));
    }
    if program.hooks {
        builder = builder.hooks(ScriptedHooks { stage: stage.clone() });
    }
    for (at, tool) in program.tools.iter().enumerate() {
        let (stage, does) = (stage.clone(), tool.on_drop);
        let scripted = from_fn(spec(at, tool), move || {
            let on_drop = does.map(|does| OnDrop::new(&stage, does));
            Scripted { stage: stage.clone(), _on_drop: on_drop }
        });
        builder = match tool.sandboxed {
            true => builder.tool(Portable(scripted)),
            false => builder.tool(scripted),
        };
    }
    builder.build().await.expect("invalid engine configuration")
}

/// The names of all tools but one.
pub(super) fn tools_except(program: &Program, hidden: usize) -> Vec<String> {
    (0..program.tools.len()).filter(|tool| *tool != hidden).map(Program::tool_name).collect()
}

/// The spec of a tool as the engine gets it.
pub(in crate::sim) fn spec(at: usize, tool: &ToolPlan) -> ToolSpec {
    let name = Program::tool_name(at);
    let spec = match tool.class {
        toolyard::ToolClass::Read => ToolSpec::read(name),
        toolyard::ToolClass::Serial => ToolSpec::write(name),
        toolyard::ToolClass::Concurrent => ToolSpec::write(name).concurrent(),
    };
    // Calls that differ only in their numbers have the same approval pattern.
    let spec = spec.approval_ignores("node");
    let mut spec = match tool.placement {
        Placement::Task => spec,
        Placement::Inline => spec.inline(),
        Placement::Blocking => spec.blocking(),
    };
    spec.settings.hidden_from =
        Some(HiddenFrom { sub_agents: tool.hidden_from_forks, ..HiddenFrom::default() });
    spec.settings.requires_capability = Some(!tool.needs_no_capability);
    spec.settings.max_concurrency = tool.limit.and_then(NonZeroUsize::new);
    spec.settings.limit_scope = Some(tool.limit_scope);
    spec.settings.serial_scope = tool.scope.map(|scope| Program::scope_name(scope).into());
    spec.recursive = tool.recursive;
    spec.settings.idempotent = Some(tool.guards.idempotent);
    spec.settings.retry = Some(tool.guards.retry);
    spec.settings.breaker = Some(tool.guards.breaker);
    spec.settings.backend = tool.guards.backend.map(|backend| Program::backend_name(backend).into());
    spec.settings.rate = tool.guards.rate;
    spec.settings.cost = Some(tool.guards.cost);
    spec.settings.budget = Some(tool.guards.budget);
    spec.settings.key_conflict =
        Some(if tool.guards.key_fails { KeyConflict::Fail } else { KeyConflict::Join });
    if !tool.recursive {
        spec = spec.timeout(Duration::from_millis(tool.timeout_ms));
    }
    spec
}

/// Which of the program's tools are asked about.
pub(in crate::sim) fn confirmations(program: &Program) -> Confirmations {
    let mut confirmations = Confirmations::auto().timeout(Duration::from_millis(program.answer_within_ms));
    for (at, tool) in program.tools.iter().enumerate() {
        let mode = match tool.consent {
            Consent::Free => ConfirmationMode::Auto,
            Consent::Asked => ConfirmationMode::Prompt,
            Consent::AskedOnce => ConfirmationMode::PromptOnce,
            Consent::Forbidden => ConfirmationMode::Deny,
        };
        confirmations = confirmations.tool(Program::tool_name(at), mode);
    }
    confirmations.side_effects(SideEffects::Write, ConfirmationMode::Auto)
}
