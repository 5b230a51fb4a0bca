//! The side effects of a tool, the pool they put it in, and how a call is routed.
//!
//! ```text
//!   SideEffects          promoted?     ToolClass      recursive / refused      Routing
//!   none, read      ───────────────►   read        ┐
//!   write, execute, ──── no ───────►   serial      ├──────────────────────►    read, serial, concurrent
//!   network         ──── yes ──────►   concurrent  ┘                           short_circuit
//! ```

use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// The worst a tool can do to the world, by capability and not by typical use (CL-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffects {
    /// Touches nothing outside its arguments.
    None,
    /// Looks at the world and leaves it as it was.
    Read,
    /// Changes files or other state.
    Write,
    /// Runs code that this program does not know.
    Execute,
    /// Talks to other machines.
    Network,
}

impl SideEffects {
    /// Every value, from harmless to far-reaching.
    pub const ALL: [Self; 5] = [Self::None, Self::Read, Self::Write, Self::Execute, Self::Network];

    /// The class of a tool with these side effects (CL-1).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{SideEffects, ToolClass};
    /// assert_eq!(SideEffects::Read.class(false), ToolClass::Read);
    /// assert_eq!(SideEffects::Write.class(false), ToolClass::Serial);
    /// assert_eq!(SideEffects::Write.class(true), ToolClass::Concurrent);
    /// ```
    pub const fn class(self, promoted: bool) -> ToolClass {
        match (self, promoted) {
            (Self::None | Self::Read, _) => ToolClass::Read,
            (Self::Write | Self::Execute | Self::Network, true) => ToolClass::Concurrent,
            (Self::Write | Self::Execute | Self::Network, false) => ToolClass::Serial,
        }
    }

    /// Whether a call changes nothing, so that running it twice is harmless.
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::None | Self::Read)
    }

    /// The default attempt timeout of a tool: 60 s, or 600 s for execute and network (V3).
    pub const fn default_timeout(self) -> Duration {
        match self {
            Self::None | Self::Read | Self::Write => Duration::from_secs(60),
            Self::Execute | Self::Network => Duration::from_secs(600),
        }
    }

    /// The word used in events and configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Network => "network",
        }
    }
}

impl fmt::Display for SideEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The pool a call runs in (CL-1, CL-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// Reads: one pool for the whole engine, width 20 by default.
    Read,
    /// Mutating tools: one call at a time in a session tree.
    Serial,
    /// Mutating tools declared safe to run beside each other: a pool per agent, width 10 by default.
    Concurrent,
}

impl ToolClass {
    /// Every class, in the order of [`ToolClass::index`].
    pub const ALL: [Self; 3] = [Self::Read, Self::Serial, Self::Concurrent];

    /// A small index for tables by class.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The word used in events and configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Serial => "serial",
            Self::Concurrent => "concurrent",
        }
    }
}

impl fmt::Display for ToolClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a call is sent (CL-2). Neighbouring calls with equal routing form a run (CL-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// Refused before admission: denied, unknown or invalid.
    ShortCircuit,
    /// To the read pool.
    Read,
    /// To the serial lease; such a run has length 1.
    Serial,
    /// To the concurrent pool.
    Concurrent,
}

impl Routing {
    /// The pool, or `None` for a call that was refused before admission.
    pub const fn class(self) -> Option<ToolClass> {
        match self {
            Self::ShortCircuit => None,
            Self::Read => Some(ToolClass::Read),
            Self::Serial => Some(ToolClass::Serial),
            Self::Concurrent => Some(ToolClass::Concurrent),
        }
    }

    /// The word used in events and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ShortCircuit => "short_circuit",
            Self::Read => "read",
            Self::Serial => "serial",
            Self::Concurrent => "concurrent",
        }
    }
}

impl From<ToolClass> for Routing {
    fn from(class: ToolClass) -> Self {
        match class {
            ToolClass::Read => Self::Read,
            ToolClass::Serial => Self::Serial,
            ToolClass::Concurrent => Self::Concurrent,
        }
    }
}

impl fmt::Display for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
