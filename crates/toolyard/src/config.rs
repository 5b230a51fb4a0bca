//! The engine's settings, as valid values.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use toolyard_core::{AgentPath, Batch, Budget, SideEffects, ToolSettings, ToolSpec};

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

/// How deep the data of an output may nest: what is recorded or sent can be read again, by readers that take 128 levels.
pub(crate) const OUTPUT_DEPTH_MAX: usize = 100;

/// How long a call waits for its record: before it starts, with its permits, and before its result is given (SM-4).
pub(crate) const RECORD_WAIT: Duration = Duration::from_secs(30);

/// How long records of results are waited for once a drain gives up, all together.
pub(crate) const RECORD_WAIT_AT_LAST: Duration = Duration::from_secs(5);

/// How long a recorder may take to make everything durable at last.
pub(crate) const RECORD_FLUSH_WAIT: Duration = Duration::from_secs(10);

/// How deep forks can nest (CL-7).
pub const FORK_DEPTH_MAX: u8 = AgentPath::DEPTH_MAX;

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
    /// Reads at once in the whole engine, at least 1.
    pub read: usize,
    /// Concurrent mutating calls at once in one agent, at least 1.
    pub concurrent: usize,
}

impl PoolWidths {
    /// Sets both widths. An engine is not [built](crate::EngineBuilder::build) with one of zero.
    pub fn new(read: usize, concurrent: usize) -> Self {
        Self { read, concurrent }
    }
}

impl Default for PoolWidths {
    fn default() -> Self {
        Self::new(20, 10)
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

/// What happens, when a turn is [resumed](crate::Session::resume), to the calls that would have waited for one of which
/// nobody knows what it has done (JR-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnInterrupted {
    /// They are not started: `cancelled`, reason `predecessor_unknown`.
    #[default]
    CancelRest,
    /// They run.
    Continue,
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
/// let text = r#"{"turn":{"calls":20},"session":{},"tree":{"calls":500,"cost":10000}}"#;
/// assert_eq!(serde_json::to_string(&budgets)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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

    /// What both allow: the least of each (SM-8). For budgets that somebody asks for within those that he was given.
    ///
    /// # Examples
    /// ```
    /// use toolyard::{Budget, Budgets};
    /// let given = Budgets::default().turn(Budget::calls(20)).tree(Budget::calls(500));
    /// let asked = Budgets::default().turn(Budget::calls(50)).session(Budget::cost(9));
    /// let both = Budgets::default().turn(Budget::calls(20)).session(Budget::cost(9)).tree(Budget::calls(500));
    /// assert_eq!(given.min(asked), both);
    /// ```
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            turn: self.turn.min(other.turn),
            session: self.session.min(other.session),
            tree: self.tree.min(other.tree),
        }
    }
}

/// What an operator chooses for one tool. It wins over what the author chose in the tool's [`ToolSpec`]; the rest
/// stays.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard::{Engine, SideEffects, ToolConfig, ToolSettings};
/// let settings = ToolSettings { timeout: Some(Duration::from_secs(5)), ..ToolSettings::default() };
/// let builder = Engine::builder()
///     .tool_config("search", settings)
///     .tool_config("query", ToolConfig { side_effects: Some(SideEffects::Read), ..ToolConfig::default() });
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolConfig {
    /// The worst that the tool can do. Approval is decided by these, too: [`ToolSpec::asked_as`] no longer counts.
    pub side_effects: Option<SideEffects>,
    /// All else that an operator may choose.
    pub settings: ToolSettings,
}

impl From<ToolSettings> for ToolConfig {
    fn from(settings: ToolSettings) -> Self {
        Self { side_effects: None, settings }
    }
}

impl ToolConfig {
    /// Merges both; where both choose, `over` wins.
    #[must_use]
    pub(crate) fn overlaid(self, over: Self) -> Self {
        let side_effects = over.side_effects.or(self.side_effects);
        Self { side_effects, settings: self.settings.overlaid(over.settings) }
    }

    pub(crate) fn apply(&self, spec: &mut ToolSpec) {
        if let Some(side_effects) = self.side_effects {
            (spec.side_effects, spec.asked_as) = (side_effects, None);
        }
        spec.settings = std::mem::take(&mut spec.settings).overlaid(self.settings.clone());
    }
}
