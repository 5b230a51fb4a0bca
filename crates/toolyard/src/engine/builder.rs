//! Building an engine.

use super::{BuildError, Engine};
use crate::{
    agent::{RequestIds, ResultCapacity, Scopes, Services, ToolUnits},
    call::{Backend, EngineCore, HostBackend, Runners, Stop},
    chance::Chance,
    clock::Clock,
    config::{Budgets, Limits, OnInterrupted, OnSerialFailure, PoolWidths, ToolConfig, Waits},
    pool::{PoolLeases, Pools},
    record::{Content, EventBus, EventSink, EventWriter, Queue, Reconciler, Recorder, Recording, Sequence},
    tasks::{Blocking, BlockingThreads, Contained, Spawner, Tasks, caught, unwind},
    tool::{Guards, IntoTool, Lengthy, Policies, Registry, RulesInForce},
};
use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{Arc, OnceLock, Weak, atomic::AtomicUsize},
    time::Duration,
};
use tokio::{runtime::Handle, time::sleep};
use tokio_util::sync::CancellationToken;
use toolyard_admission::{Admission, Reach, UnitKind};
use toolyard_core::{
    AllowAll, Approver, BreakerPolicy, Capabilities, Confirmations, Hooks, PathScope, Resources, RetryPolicy,
    RuntimePolicy, SettingError, ToolClass, ToolFactory, ToolLayer, Toolset, event::Epoch,
};
use toolyard_redact::Redactor;

/// Collects an engine's tools and settings, and [builds](Self::build) it.
///
/// Without a policy, everything is allowed on the host, and writes, execution and network use require approval.
/// Without an [`Approver`], calls that require approval end `user_denied` (PO-1, PO-3).
#[must_use = "the engine is only built by `build`"]
#[derive(Default)]
pub struct EngineBuilder {
    tools: Vec<Arc<dyn ToolFactory>>,
    tool_configs: BTreeMap<String, ToolConfig>,
    policy: Option<Arc<dyn RuntimePolicy>>,
    capabilities: Option<Arc<Capabilities>>,
    confirmations: Confirmations,
    approver: Option<Arc<dyn Approver>>,
    hooks: Option<Arc<dyn Hooks>>,
    layers: Vec<Arc<dyn ToolLayer>>,
    sinks: Vec<Arc<dyn EventSink>>,
    trace_content: bool,
    writers: Vec<Box<dyn EventWriter>>,
    recorder: Option<Arc<dyn Recorder>>,
    redactor: Option<Redactor>,
    resources: Resources,
    scope: Option<Arc<dyn PathScope>>,
    widths: PoolWidths,
    limits: Limits,
    max_in_flight: Option<usize>,
    tree_max_in_flight: Option<usize>,
    waits: Waits,
    on_serial_failure: OnSerialFailure,
    on_interrupted: OnInterrupted,
    reconciler: Option<Arc<dyn Reconciler>>,
    policies: Policies,
    budgets: Budgets,
    seed: Option<u64>,
    grace: Option<Duration>,
    clock: Option<Clock>,
    blocking: Option<Arc<dyn Blocking>>,
    spawner: Option<Arc<dyn Spawner>>,
    backend: Option<MakeBackend>,
}

/// Makes what executes calls, of what executes them in this process.
type MakeBackend = Box<dyn FnOnce(HostBackend) -> Arc<dyn Backend> + Send>;

impl EngineBuilder {
    /// How long a handler has to stop after a cancel by default (SC-5).
    pub const GRACE: Duration = Duration::from_secs(30);

    /// Adds a tool: a [factory](ToolFactory), such as [`tool_fn`](crate::tool_fn) makes, or a function with the attribute
    /// [`tool`](macro@crate::tool), by its name.
    pub fn tool<M>(mut self, tool: impl IntoTool<M>) -> Self {
        self.tools.push(tool.into_tool());
        self
    }

    /// Adds a set of tools together with the resources and the workspace they need.
    pub fn tools(mut self, tools: impl Into<Toolset>) -> Self {
        let Toolset { tools, resources, scope, .. } = tools.into();
        self.tools.extend(tools);
        self.resources = self.resources.overlaid(&resources);
        self.scope = scope.or(self.scope);
        self
    }

    /// Overrides what a tool's author chose, such as its class, bounds or timeout. This also applies to any tool that
    /// takes over the name at run time. Further settings for the same tool add to the earlier ones and win where both
    /// are set. A name that no tool has is an error at [`build`](Self::build).
    pub fn tool_config(mut self, name: impl Into<String>, config: impl Into<ToolConfig>) -> Self {
        let known = self.tool_configs.entry(name.into()).or_default();
        *known = std::mem::take(known).overlaid(config.into());
        self
    }

    /// Sets the policy. The default allows everything, on the host (PO-1).
    pub fn policy(mut self, policy: impl RuntimePolicy + 'static) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Bounds what the agents of every session may touch; sessions can only narrow it (PO-1b). By default nothing is
    /// bounded.
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = Some(Arc::new(capabilities));
        self
    }

    /// Sets which calls require approval (PO-3).
    pub fn confirmations(mut self, confirmations: Confirmations) -> Self {
        self.confirmations = confirmations;
        self
    }

    /// Sets who is asked for approval. An [`Answer`](crate::Answer) is an approver that always gives that answer.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets the hooks that run before and after each call.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// Puts a [layer](ToolLayer) around every tool, those registered later included, inside of the layers that were added
    /// before and outside of each tool's own (KT-7).
    pub fn layer(mut self, layer: impl ToolLayer + 'static) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Adds a sink that takes every event synchronously (OB-3). For sinks that are fast and in memory.
    pub fn events(mut self, sink: impl EventSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// Sets whether the span of a call carries its arguments and its result; by default it carries neither (OB-4).
    /// They contain what the model and the tools say, and go wherever the traces go. See
    /// [`telemetry`](crate::record::telemetry).
    pub fn trace_content(mut self, wanted: bool) -> Self {
        self.trace_content = wanted;
        self
    }

    /// Adds a writer that takes every event off the calls' path (OB-3). For writers to a disk or a network. New calls
    /// wait for a writer that falls far behind, and calls with side effects do not run once it has failed; see
    /// [`EventWriter`].
    pub fn event_writer(mut self, writer: impl EventWriter + 'static) -> Self {
        self.writers.push(Box::new(writer));
        self
    }

    /// Sets who is asked for what must be durable: a call that changes something waits for its record before it starts,
    /// and its result for another one before anybody is given it; see [`Recorder`] (SM-4). By default nobody is asked, and
    /// nothing waits.
    pub fn recorder(mut self, recorder: impl Recorder + 'static) -> Self {
        self.recorder = Some(Arc::new(recorder));
        self
    }

    /// Keeps secrets out of what calls show (V5, PO-7): registered secrets out of results, errors, events, spans and
    /// the engine's own logs; what only looks like a secret out of all these but the results, unless
    /// [`Redactor::patterns_in_results`] is set. Handlers still get their arguments unchanged. A call whose arguments
    /// contain a mark that its session was given in place of a secret is refused as `invalid_input`. Tool names and
    /// ids are not redacted, and neither is what a tool logs itself. By default nothing is redacted.
    pub fn redact(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor.finds_something().then_some(redactor);
        self
    }

    /// Makes a value available to the tools; see [`Resources`].
    pub fn resource<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.resources = self.resources.with(value);
        self
    }

    /// Sets the engine's workspace: tools reach it as a resource, and paths in arguments are checked against it.
    pub fn workspace<W: PathScope + 'static>(mut self, workspace: Arc<W>) -> Self {
        self.resources = self.resources.with_shared(workspace.clone());
        self.scope = Some(workspace);
        self
    }

    /// Sets the widths of the pools (CL-6).
    pub fn pools(mut self, widths: PoolWidths) -> Self {
        self.widths = widths;
        self
    }

    /// Bounds how many calls of a session run at once, over all classes: at least 1. By default only the pools bound them.
    pub fn max_in_flight(mut self, max: usize) -> Self {
        self.max_in_flight = Some(max);
        self
    }

    /// Bounds the calls that run at once in a session and all its forks together, at least 1 (CL-6).
    pub fn tree_max_in_flight(mut self, max: usize) -> Self {
        self.tree_max_in_flight = Some(max);
        self
    }

    /// Bounds how long a ready call waits for its permits; after that it ends `queue_timeout`, not started (V3).
    /// By default only the calls ahead of it bound its wait.
    pub fn queue_timeout(mut self, limit: Duration) -> Self {
        self.waits.queue_timeout = Some(limit);
        self
    }

    /// Bounds the time from ready to result for calls without a [deadline](toolyard_core::Call::deadline) of their
    /// own; after that a call ends `deadline_exceeded` (V3). The bound also covers the calls that its handler makes.
    pub fn call_deadline(mut self, within: Duration) -> Self {
        self.waits.call_deadline = Some(within);
        self
    }

    /// Sets the bounds on what the engine holds (CC-4).
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what happens to the rest of a batch when a serial call of it fails (CL-4).
    pub fn on_serial_failure(mut self, then: OnSerialFailure) -> Self {
        self.on_serial_failure = then;
        self
    }

    /// Sets what happens to the calls of a turn that is [resumed](crate::Session::resume) which would have waited for one of
    /// which nobody knows what it has done (JR-8).
    pub fn on_interrupted(mut self, then: OnInterrupted) -> Self {
        self.on_interrupted = then;
        self
    }

    /// Sets who is asked what became of a call that was cut off, when its own tool does not know (JR-6).
    pub fn reconciler(mut self, reconciler: impl Reconciler + 'static) -> Self {
        self.reconciler = Some(Arc::new(reconciler));
        self
    }

    /// Sets how long a handler has to stop after a cancel (SC-5). The default is [`GRACE`](Self::GRACE).
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Sets how failed attempts are retried, for tools that set no policy of their own (RT-1). The default is up to
    /// three attempts, 0.1 and 0.4 s apart.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.policies.retry = policy;
        self
    }

    /// Sets when breakers open, for tools that set no policy of their own (CB-2). By default a breaker opens after
    /// five failures within a minute if they are at least half of all attempts.
    pub fn breaker(mut self, policy: BreakerPolicy) -> Self {
        self.policies.breaker = policy;
        self
    }

    /// Sets the budgets of sessions that set none of their own (RT-11). By default there are none.
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// Seeds the engine's randomness, which is used for jitter and for the ids of questions, so that a run can be
    /// repeated. By default every engine has another seed; who knows the seed can guess those ids.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the clock, which decides the wall time of events.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets where blocking handlers run. By default they run on threads of the engine ([`BlockingThreads`]).
    pub fn blocking(mut self, blocking: Arc<dyn Blocking>) -> Self {
        self.blocking = Some(blocking);
        self
    }

    /// Sets where the tasks of calls run, for simulations. By default they run on the runtime.
    pub fn spawner(mut self, spawner: Arc<dyn Spawner>) -> Self {
        self.spawner = Some(spawner);
        self
    }

    /// Sets where calls execute. By default they execute in this process.
    pub fn backend(self, backend: Arc<dyn Backend>) -> Self {
        self.backend_around(|_| backend)
    }

    /// Sets where calls execute, around what executes them in this process: a back-end that has places of its own, and
    /// leaves what runs on the host to that.
    ///
    /// # Examples
    /// ```
    /// # use std::sync::Arc;
    /// use toolyard::{Backend, Engine, Execution, HostBackend, Running, Sandbox, SandboxError};
    /// struct Own(HostBackend);
    /// impl Backend for Own {
    ///     fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
    ///         match execution.confinement.sandbox {
    ///             Sandbox::Host => self.0.execute(execution),
    ///             other => Err(SandboxError::Unavailable(other)),
    ///         }
    ///     }
    /// }
    /// let builder = Engine::builder().backend_around(|host| Arc::new(Own(host)));
    /// # let _ = builder;
    /// ```
    pub fn backend_around(
        mut self,
        make: impl FnOnce(HostBackend) -> Arc<dyn Backend> + Send + 'static,
    ) -> Self {
        self.backend = Some(Box::new(make));
        self
    }

    /// Builds the engine and starts its actors in the current tokio runtime.
    ///
    /// The first engine of a process installs a panic hook in front of the present one, so that the log line of a
    /// handler's panic has the place and the backtrace of it. The hook does nothing unless a subscriber wants errors;
    /// with `RUST_BACKTRACE=0` or `RUST_LIB_BACKTRACE=0` it captures no backtrace.
    ///
    /// # Errors
    /// [`BuildError`] if a tool or a setting is invalid, or if the engine cannot be started: outside of a tokio runtime,
    /// or in one without timers.
    pub async fn build(mut self) -> Result<Engine, BuildError> {
        let runtime = Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        // A runtime does not say whether it has timers; one without panics when a timer is made.
        caught(|| drop(sleep(Duration::ZERO))).map_err(|_panic| BuildError::NoTimers)?;
        self.check()?;
        unwind::prepare();
        let clock = *self.clock.get_or_insert_default();
        let guards = Guards::new(self.policies, clock.now());
        let policy = self.policy.take().unwrap_or_else(|| Arc::new(AllowAll));
        let rules = Arc::new(RulesInForce::new(policy, self.redactor.as_ref()));
        let registry = Registry::new(rules.clone(), std::mem::take(&mut self.tool_configs), guards)
            .within(std::mem::take(&mut self.layers));
        fill(&registry, std::mem::take(&mut self.tools))?;
        let widths = [self.widths.read, 1, self.widths.concurrent];
        let (admission, leases) = (
            Admission::new(widths, self.limits.queue_engine_max, self.limits.queue_session_max),
            PoolLeases::new(widths),
        );
        let core = Arc::new(self.into_core(runtime, rules, registry, admission.clone(), leases.clone()));
        let failing: Weak<EngineCore> = Arc::downgrade(&core);
        let on_failure = move || {
            if let Some(engine) = failing.upgrade() {
                engine.stop(Stop::Failed);
            }
        };
        let pools = Pools::start(admission, leases, on_failure).await;
        let pools = pools.map_err(|error| BuildError::Pools(Box::new(error)))?;
        core.begin_log();
        if let Some(recorder) = &core.recorder {
            recorder.begin(core.epoch);
        }
        Ok(Engine { core, pools: Arc::new(pools) })
    }

    /// Looks for a setting that makes no sense.
    fn check(&self) -> Result<(), BuildError> {
        check(&self.limits, self.widths, self.waits)?;
        let most = [("max_in_flight", self.max_in_flight), ("tree_max_in_flight", self.tree_max_in_flight)];
        if let Some((field, _)) = most.iter().find(|(_, most)| *most == Some(0)) {
            return Err(BuildError::Zero { field });
        }
        self.policies.retry.checked().map_err(SettingError::Retry)?;
        self.policies.breaker.checked().map_err(SettingError::Breaker)?;
        Ok(())
    }

    fn into_core(
        self,
        runtime: Handle,
        rules: Arc<RulesInForce>,
        registry: Registry,
        admission: Arc<Admission>,
        leases: Arc<PoolLeases>,
    ) -> EngineCore {
        let threads_max = self.limits.blocking_threads_max.saturating_add(self.limits.parked_blocking_max);
        let threads = || Arc::new(BlockingThreads::with_at_most(runtime.clone(), threads_max));
        let blocking: Arc<dyn Blocking> = self.blocking.unwrap_or_else(|| threads());
        let tasks = Tasks::new(runtime, self.spawner);
        let chance = Chance::new(self.seed);
        let services = Services {
            registry,
            rules,
            capabilities: self.capabilities,
            confirmations: self.confirmations,
            approver: self.approver.map(Contained::new),
            requests: RequestIds::new(&chance),
            hooks: self.hooks.map(Contained::new),
            limits: self.limits,
            lengthy: Lengthy::default(),
            content: Content::new(self.trace_content, self.redactor.clone()),
            read: admission.open_class(ToolClass::Read),
            results: ResultCapacity::new(self.limits.results_engine_bytes_max),
            threads: admission.open(UnitKind::Threads, self.limits.blocking_threads_max),
            waits: self.waits,
            budgets: self.budgets,
            scopes: Scopes::new(admission.clone()),
            tools: ToolUnits::new(admission.clone(), Reach::Engine),
            admission,
            leases,
            bus: EventBus::new(self.sinks, self.writers, self.redactor.clone(), |writer, hold| {
                let capacity = self.limits.events_queue_max;
                Queue::new(writer, capacity, hold.clone(), blocking.clone(), self.redactor.clone())
            }),
            recorder: self.recorder.map(|recorder| Box::new(Recording::new(recorder, self.redactor.clone()))),
            results_redactor: self.redactor.as_ref().and_then(Redactor::for_results),
            redactor: self.redactor,
            sequence: Sequence::default(),
            clock: self.clock.unwrap_or_default(),
            epoch: Epoch::new(chance.epoch()),
            chance,
            blocking: blocking.clone(),
            tasks: tasks.clone(),
            grace: self.grace.unwrap_or(Self::GRACE),
            abandon: CancellationToken::new(),
            gave_up_at: OnceLock::new(),
            abandoned: AtomicUsize::new(0),
            max_in_flight: self.max_in_flight.and_then(NonZeroUsize::new),
            tree_max_in_flight: self.tree_max_in_flight.and_then(NonZeroUsize::new),
            on_serial_failure: self.on_serial_failure,
            on_interrupted: self.on_interrupted,
            reconciler: self.reconciler,
            resources: Arc::new(self.resources),
            scope: self.scope.map(Contained::new),
        };
        let host = HostBackend::new(blocking);
        let backend = match self.backend {
            Some(make) => make(host),
            None => Arc::new(host),
        };
        EngineCore::new(services, backend, Runners::new(tasks))
    }
}

fn check(limits: &Limits, widths: PoolWidths, waits: Waits) -> Result<(), BuildError> {
    let waits = [("queue_timeout", waits.queue_timeout), ("call_deadline", waits.call_deadline)];
    if let Some((field, _)) = waits.iter().find(|(_, limit)| limit.is_some_and(|limit| limit.is_zero())) {
        return Err(BuildError::Zero { field });
    }
    let fields = [
        ("limits.batch_calls_max", limits.batch_calls_max),
        ("limits.queue_session_max", limits.queue_session_max),
        ("limits.queue_engine_max", limits.queue_engine_max),
        ("limits.arguments_bytes_max", limits.arguments_bytes_max),
        ("limits.arguments_depth_max", limits.arguments_depth_max),
        ("limits.parked_max", limits.parked_max),
        ("limits.output_bytes_max", limits.output_bytes_max),
        ("limits.results_batch_bytes_max", limits.results_batch_bytes_max),
        ("limits.results_session_bytes_max", limits.results_session_bytes_max),
        ("limits.results_engine_bytes_max", limits.results_engine_bytes_max),
        ("limits.blocking_threads_max", limits.blocking_threads_max),
        ("limits.parked_blocking_max", limits.parked_blocking_max),
        ("limits.events_queue_max", limits.events_queue_max),
        ("pools.read", widths.read),
        ("pools.concurrent", widths.concurrent),
    ];
    match fields.iter().find(|(_, value)| *value == 0) {
        Some((field, _)) => Err(BuildError::Zero { field }),
        None => Ok(()),
    }
}

fn fill(registry: &Registry, tools: Vec<Arc<dyn ToolFactory>>) -> Result<(), BuildError> {
    tools.into_iter().try_for_each(|factory| registry.add(factory))?;
    match registry.configured().find(|name| !registry.has(name)).map(str::to_owned) {
        Some(name) => {
            let known = registry.list().iter().map(|entry| entry.name().to_owned()).collect();
            Err(BuildError::UnknownTool { name, known })
        }
        None => Ok(()),
    }
}
