//! The protection of a tool and its calls: keys, retries, breaker, rate and budget.

use toolyard::{BreakerOf, BreakerPolicy, Budget, Rate, RetryPolicy, Sandbox, ToolClass};

use super::{Program, ToolPlan};

/// The protection of a tool and its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// Whether running it twice is harmless.
    pub idempotent: bool,
    /// How often and when failed attempts are repeated.
    pub retry: RetryPolicy,
    /// When its breaker opens.
    pub breaker: BreakerPolicy,
    /// The number of its back-end, if it uses one.
    pub backend: Option<usize>,
    /// How often its attempts may start.
    pub rate: Option<Rate>,
    /// What a call of it costs.
    pub cost: u64,
    /// What each tree may spend on it.
    pub budget: Budget,
    /// Whether a call ends at once if its key is in flight.
    pub key_fails: bool,
}

impl Guards {
    /// No protection at all.
    pub const NONE: Self = Self {
        idempotent: false,
        retry: RetryPolicy::NONE,
        breaker: BreakerPolicy::DISABLED,
        backend: None,
        rate: None,
        cost: 0,
        budget: Budget::UNLIMITED,
        key_fails: false,
    };
}

impl ToolPlan {
    /// Whether its calls may run twice.
    pub fn is_repeatable(&self) -> bool {
        self.class == ToolClass::Read || self.guards.idempotent
    }
}

/// The idempotency key of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPlan {
    /// Its number.
    pub key: u32,
    /// The number of the arguments sent with it.
    pub args: u32,
}

/// The owner of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerOwner {
    /// A tool.
    Tool(usize),
    /// A back-end.
    Backend(usize),
    /// The sandbox.
    Sandbox,
}

impl BreakerOwner {
    /// The name of the tool, back-end or sandbox.
    pub fn name(self) -> String {
        match self {
            Self::Tool(tool) => Program::tool_name(tool),
            Self::Backend(backend) => Program::backend_name(backend),
            Self::Sandbox => Sandbox::Process.as_str().to_owned(),
        }
    }

    /// The breaker as the engine knows it.
    pub fn breaker(self) -> BreakerOf {
        match self {
            Self::Tool(_) => BreakerOf::tool(self.name()),
            Self::Backend(_) => BreakerOf::backend(self.name()),
            Self::Sandbox => BreakerOf::sandbox(Sandbox::Process),
        }
    }

    /// Whether attempts of this tool pass it.
    pub fn covers(self, at: usize, tool: &ToolPlan) -> bool {
        match self {
            Self::Tool(own) => own == at,
            Self::Backend(backend) => tool.guards.backend == Some(backend),
            Self::Sandbox => tool.sandboxed,
        }
    }
}
