//! The engine's settings, as valid values.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};
use toolyard_core::{
    Batch, BreakerPolicy, Budget, HiddenFrom, KeyConflict, LimitScope, Rate, RetryPolicy, SideEffects,
    ToolSpec,
};

/// The limits of calls that do not bring their own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waits {
    /// From ready to the permits.
    pub(crate) queue_timeout: Option<Duration>,
    /// From ready to the result.
    pub(crate) call_deadline: Option<Duration>,
}

/// How long calls wait for zombies: handlers that were given up and still run (V3, CL-3).
pub(crate) const ZOMBIE_WAIT: Duration = Duration::from_secs(30);

/// How deep forks can nest (CL-7).
pub const FORK_DEPTH_MAX: u8 = 8;

/// The engine's bounds (CC-4). A call that exceeds one is answered at once; nothing grows without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Calls of one batch that run; further ones are `overloaded`.
    pub batch_calls_max: usize,
    /// Calls that wait in one session; further ones are `overloaded`.
    pub queue_session_max: usize,
    /// Calls that wait in the whole engine; further ones are `overloaded`.
    pub queue_engine_max: usize,
    /// Bytes of a call's arguments; more are `invalid_input`.
    pub arguments_bytes_max: usize,
    /// Nesting levels of a call's arguments; more are `invalid_input`.
    pub arguments_depth_max: usize,
    /// How long the arguments of one batch may take to validate, beyond what is done at once; then their calls are
    /// `invalid_input`. Only schemas that somebody else wrote can take long.
    pub validation_timeout: Duration,
    /// How deep calls that handlers make may nest, 1 being those of a call made by no handler; deeper ones are
    /// `depth_exceeded` (CL-7).
    pub nested_depth_max: u32,
    /// Handlers that may be parked at once, awaiting calls of their own, and at most a quarter of that in one session
    /// tree; the waiting calls of further ones are `overloaded`.
    pub parked_max: usize,
    /// Blocking handlers that run at once in the whole engine, each on a thread of its own; the calls of further ones
    /// wait in line (CC-1).
    pub blocking_threads_max: usize,
    /// Blocking handlers that may be parked at once, awaiting calls of their own. They keep their threads, so up to
    /// this many threads are added to [`blocking_threads_max`](Self::blocking_threads_max). The waiting calls of
    /// further ones are `overloaded`.
    pub parked_blocking_max: usize,
    /// Bytes of a tool's output; more are `output_too_large`.
    pub output_bytes_max: usize,
    /// Bytes of results that one batch holds until its caller has them. A result that does not fit is
    /// `output_too_large`, reason `result_budget`, and calls that have not started by then are `overloaded`. A
    /// [`Turn`](crate::session::Turn) that keeps results holds them until it is dropped. Results of up to 1 KiB always fit.
    pub results_batch_bytes_max: usize,
    /// The same for all batches of a session and its forks, counted in steps of 64 KiB; the first 16 KiB of a batch are
    /// not counted. Results that are kept for their idempotency key have a bound of their own (ID-8).
    pub results_session_bytes_max: usize,
    /// The same for all sessions of the engine.
    pub results_engine_bytes_max: usize,
    /// Events queued for an [`EventWriter`](crate::record::EventWriter); once the queue is full, new calls wait (OB-3).
    pub events_queue_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_calls_max: Batch::CALLS_MAX,
            queue_session_max: 16_384,
            queue_engine_max: 131_072,
            arguments_bytes_max: 256 * 1024,
            arguments_depth_max: 64,
            validation_timeout: Duration::from_secs(5),
            nested_depth_max: 64,
            parked_max: 100_000,
            blocking_threads_max: 512,
            parked_blocking_max: 1_000,
            output_bytes_max: 16 * 1024 * 1024,
            results_batch_bytes_max: 64 * 1024 * 1024,
            results_session_bytes_max: 128 * 1024 * 1024,
            results_engine_bytes_max: 512 * 1024 * 1024,
            events_queue_max: 65_536,
        }
    }
}

/// The widths of the configurable pools (CL-6). The serial lease always has width 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolWidths {
    /// Reads at once in the whole engine.
    pub read: NonZeroUsize,
    /// Concurrent mutating calls at once in one agent.
    pub concurrent: NonZeroUsize,
}

impl PoolWidths {
    /// Sets both widths.
    pub fn new(read: NonZeroUsize, concurrent: NonZeroUsize) -> Self {
        Self { read, concurrent }
    }
}

impl Default for PoolWidths {
    fn default() -> Self {
        const READ: NonZeroUsize = NonZeroUsize::new(20).expect("20 is not zero");
        const CONCURRENT: NonZeroUsize = NonZeroUsize::new(10).expect("10 is not zero");
        Self::new(READ, CONCURRENT)
    }
}

/// What happens to the rest of a batch when a serial call of it fails (CL-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnSerialFailure {
    /// The batch continues.
    #[default]
    Continue,
    /// The batch ends: every later call is `cancelled`, reason `predecessor`.
    SkipRest,
}

/// How an engine is stopped (SC-8).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard::Drain;
/// let quick = Drain::default().finish(Duration::ZERO).grace(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    pub(crate) finish: Duration,
    pub(crate) grace: Duration,
}

impl Drain {
    /// How long running calls may go on before they are cancelled.
    #[must_use]
    pub fn finish(mut self, within: Duration) -> Self {
        self.finish = within;
        self
    }

    /// How long cancelled calls have to stop before they are abandoned.
    #[must_use]
    pub fn grace(mut self, within: Duration) -> Self {
        self.grace = within;
        self
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self { finish: Duration::from_secs(30), grace: Duration::from_secs(30) }
    }
}

/// Budgets, by what they cover (RT-11). They are independent of each other, and a call draws on all that cover it.
///
/// # Examples
/// ```
/// use toolyard::{Budget, Budgets};
/// let budgets = Budgets::default().turn(Budget::calls(20)).tree(Budget::calls(500).with_cost(10_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budgets {
    pub(crate) turn: Budget,
    pub(crate) session: Budget,
    pub(crate) tree: Budget,
}

impl Budgets {
    /// Bounds each turn.
    #[must_use]
    pub fn turn(mut self, budget: Budget) -> Self {
        self.turn = budget;
        self
    }

    /// Bounds each agent: a session, or one of its forks. The calls of a fork also draw on the budget of its parent.
    #[must_use]
    pub fn session(mut self, budget: Budget) -> Self {
        self.session = budget;
        self
    }

    /// Bounds a session and all its forks together.
    #[must_use]
    pub fn tree(mut self, budget: Budget) -> Self {
        self.tree = budget;
        self
    }
}

/// An operator's settings for one tool; they override what its author chose. Unset ones leave the author's choice.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard::ToolConfig;
/// let config = ToolConfig::default().concurrent(true).timeout(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolConfig {
    concurrent: Option<bool>,
    max_concurrency: Option<NonZeroUsize>,
    limit_scope: Option<LimitScope>,
    serial_scope: Option<Arc<str>>,
    idempotent: Option<bool>,
    timeout: Option<Duration>,
    timeout_grace: Option<Duration>,
    retry: Option<RetryPolicy>,
    breaker: Option<BreakerPolicy>,
    backend: Option<Arc<str>>,
    rate: Option<Rate>,
    cost: Option<u64>,
    budget: Option<Budget>,
    key_conflict: Option<KeyConflict>,
    side_effects: Option<SideEffects>,
    hidden_from: Option<HiddenFrom>,
    requires_capability: Option<bool>,
    approval_ignores: Option<Vec<String>>,
}

impl ToolConfig {
    /// Promotes a mutating tool to the concurrent pool, or takes that back (CL-1).
    #[must_use]
    pub fn concurrent(mut self, concurrent: bool) -> Self {
        self.concurrent = Some(concurrent);
        self
    }

    /// Bounds how many calls of it run at once in one agent, or in what [`limit_scope`](Self::limit_scope) sets.
    #[must_use]
    pub fn max_concurrency(mut self, max: NonZeroUsize) -> Self {
        self.max_concurrency = Some(max);
        self
    }

    /// Sets where the bound on its concurrency counts: per agent, tree or engine (CL-6).
    #[must_use]
    pub fn limit_scope(mut self, scope: LimitScope) -> Self {
        self.limit_scope = Some(scope);
        self
    }

    /// Names the serial scope of its calls, which they share with other tools and sessions (CC-8).
    #[must_use]
    pub fn serial_scope(mut self, name: impl Into<Arc<str>>) -> Self {
        self.serial_scope = Some(name.into());
        self
    }

    /// Declares whether it is idempotent.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = Some(idempotent);
        self
    }

    /// Sets its attempt timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how long its handler may go on after an attempt timeout (SC-5).
    #[must_use]
    pub fn timeout_grace(mut self, grace: Duration) -> Self {
        self.timeout_grace = Some(grace);
        self
    }

    /// Sets how its failed attempts are retried (RT-1).
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Sets when its breaker opens (CB-2).
    #[must_use]
    pub fn breaker(mut self, policy: BreakerPolicy) -> Self {
        self.breaker = Some(policy);
        self
    }

    /// Names the back-end that it works through (CB-9).
    #[must_use]
    pub fn backend(mut self, name: impl Into<Arc<str>>) -> Self {
        self.backend = Some(name.into());
        self
    }

    /// Sets how often its attempts may start (RT-10).
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets what a call of it costs (RT-11).
    #[must_use]
    pub fn cost(mut self, units: u64) -> Self {
        self.cost = Some(units);
        self
    }

    /// Bounds how many calls of it one session tree may make, and at what cost (RT-11).
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets what its calls do when their key belongs to a call in flight (ID-3).
    #[must_use]
    pub fn key_conflict(mut self, conflict: KeyConflict) -> Self {
        self.key_conflict = Some(conflict);
        self
    }

    /// Declares the worst side effects it can have.
    #[must_use]
    pub fn side_effects(mut self, side_effects: SideEffects) -> Self {
        self.side_effects = Some(side_effects);
        self
    }

    /// Sets which agents cannot see it (PO-1b).
    #[must_use]
    pub fn hidden_from(mut self, hidden: HiddenFrom) -> Self {
        self.hidden_from = Some(hidden);
        self
    }

    /// Sets whether agents whose tools are bounded need it on their list to call it (PO-1b).
    #[must_use]
    pub fn requires_capability(mut self, requires: bool) -> Self {
        self.requires_capability = Some(requires);
        self
    }

    /// Sets which arguments do not matter for approval: an "always" covers any value of them (PO-3).
    #[must_use]
    pub fn approval_ignores(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.approval_ignores = Some(arguments.into_iter().map(Into::into).collect());
        self
    }

    /// Merges both; where both set a value, `over` wins.
    #[must_use]
    pub(crate) fn overlaid(self, over: Self) -> Self {
        Self {
            concurrent: over.concurrent.or(self.concurrent),
            max_concurrency: over.max_concurrency.or(self.max_concurrency),
            limit_scope: over.limit_scope.or(self.limit_scope),
            serial_scope: over.serial_scope.or(self.serial_scope),
            idempotent: over.idempotent.or(self.idempotent),
            timeout: over.timeout.or(self.timeout),
            timeout_grace: over.timeout_grace.or(self.timeout_grace),
            retry: over.retry.or(self.retry),
            breaker: over.breaker.or(self.breaker),
            backend: over.backend.or(self.backend),
            rate: over.rate.or(self.rate),
            cost: over.cost.or(self.cost),
            budget: over.budget.or(self.budget),
            key_conflict: over.key_conflict.or(self.key_conflict),
            side_effects: over.side_effects.or(self.side_effects),
            hidden_from: over.hidden_from.or(self.hidden_from),
            requires_capability: over.requires_capability.or(self.requires_capability),
            approval_ignores: over.approval_ignores.or(self.approval_ignores),
        }
    }

    pub(crate) fn apply(&self, spec: &mut ToolSpec) {
        spec.promoted = self.concurrent.unwrap_or(spec.promoted);
        spec.max_concurrency = self.max_concurrency.or(spec.max_concurrency);
        spec.limit_scope = self.limit_scope.unwrap_or(spec.limit_scope);
        spec.serial_scope = self.serial_scope.clone().or_else(|| spec.serial_scope.take());
        spec.idempotent = self.idempotent.unwrap_or(spec.idempotent);
        spec.timeout = self.timeout.or(spec.timeout);
        spec.timeout_grace = self.timeout_grace.or(spec.timeout_grace);
        spec.retry = self.retry.or(spec.retry);
        spec.breaker = self.breaker.or(spec.breaker);
        spec.backend = self.backend.clone().or_else(|| spec.backend.take());
        spec.rate = self.rate.or(spec.rate);
        spec.cost = self.cost.unwrap_or(spec.cost);
        spec.budget = self.budget.unwrap_or(spec.budget);
        spec.key_conflict = self.key_conflict.unwrap_or(spec.key_conflict);
        if let Some(side_effects) = self.side_effects {
            (spec.side_effects, spec.asked_as) = (side_effects, None);
        }
        if let Some(hidden) = &self.hidden_from {
            spec.hidden_from = hidden.clone();
        }
        spec.requires_capability = self.requires_capability.unwrap_or(spec.requires_capability);
        if let Some(ignored) = &self.approval_ignores {
            spec.approval_ignores.clone_from(ignored);
        }
    }
}
