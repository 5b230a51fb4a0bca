//! What keeps the calls of a tool alive, and what spares the tool.

use toolyard::{BreakerOf, BreakerPolicy, Budget, Rate, RetryPolicy, ToolClass};

use super::{Program, ToolPlan};

/// What keeps the calls of a tool alive, and what spares the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Care {
    /// Whether it may run twice.
    pub idempotent: bool,
    /// How often and when its failures are tried again.
    pub retry: RetryPolicy,
    /// When it is left alone.
    pub breaker: BreakerPolicy,
    /// The number of what it works through.
    pub backend: Option<usize>,
    /// How often its attempts may start.
    pub rate: Option<Rate>,
    /// What a call of it costs.
    pub cost: u64,
    /// What each tree may spend on it.
    pub budget: Budget,
    /// Whether a call whose key is in the air ends at once.
    pub key_fails: bool,
}

impl Care {
    /// None at all.
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
        self.class == ToolClass::Read || self.care.idempotent
    }
}

/// The key of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPlan {
    /// Its number.
    pub key: u32,
    /// The number of the arguments that come with it.
    pub args: u32,
}

/// Whose breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// That of a tool.
    Tool(usize),
    /// That of a back-end.
    Backend(usize),
}

impl Of {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Tool(tool) => Program::tool_name(tool),
            Self::Backend(backend) => Program::backend_name(backend),
        }
    }

    /// The breaker as the engine knows it.
    pub fn breaker(self) -> BreakerOf {
        match self {
            Self::Tool(_) => BreakerOf::tool(self.name()),
            Self::Backend(_) => BreakerOf::backend(self.name()),
        }
    }

    /// Whether attempts of this tool pass it.
    pub fn guards(self, at: usize, tool: &ToolPlan) -> bool {
        match self {
            Self::Tool(own) => own == at,
            Self::Backend(backend) => tool.care.backend == Some(backend),
        }
    }
}
