//! The scripts of handlers.

use super::{BatchPlan, ForkPlan};

/// The steps of a handler and how it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Its steps.
    pub steps: Vec<Step>,
    /// How its first attempts end; further attempts end as `end` says.
    pub first_ends: Vec<End>,
    /// How it ends.
    pub end: End,
    /// How it reacts to a cancel.
    pub on_cancel: OnCancel,
    /// How many bytes it adds to its output.
    pub bytes: usize,
}

/// One step of a handler.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Sleeps so many milliseconds.
    Sleep(u64),
    /// Streams some output.
    Emit,
    /// Dispatches batches through its context, concurrently.
    Nest(Vec<Nested>),
    /// Forks an agent and runs its turns.
    Fork(ForkPlan),
}

/// A batch that a handler dispatches.
#[derive(Debug, Clone, PartialEq)]
pub struct Nested {
    /// Its calls.
    pub batch: BatchPlan,
    /// Drops the future after so many milliseconds.
    pub dropped_ms: Option<u64>,
}

/// How an attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With an output.
    Ok,
    /// With an error.
    Fail,
    /// With an unsuccessful output.
    No,
    /// With a transient error.
    Transient,
    /// With a transient error that declares that nothing was changed.
    Harmless,
    /// The remote limits the rate, perhaps with a time in milliseconds after which to retry.
    Limited(Option<u64>),
    /// By a panic.
    Panic,
    /// Its sandbox fails before the handler starts.
    NoSandbox,
    /// Its sandbox fails when the handler is done.
    SandboxGone,
    /// Never.
    Hang,
}

impl End {
    /// Whether the sandbox fails, not the handler.
    pub fn is_of_sandbox(self) -> bool {
        matches!(self, Self::NoSandbox | Self::SandboxGone)
    }
}

/// How a handler reacts to a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCancel {
    /// It stops with an error.
    Polite,
    /// It returns an output at once.
    Finish,
    /// It ignores the cancel.
    Deaf,
}

impl Script {
    /// How the attempt with this number ends; the first is 1.
    pub fn end_of(&self, attempt: u32) -> End {
        self.first_ends.get(attempt.saturating_sub(1) as usize).copied().unwrap_or(self.end)
    }

    /// All ways in which its attempts may end.
    pub fn ends(&self) -> impl Iterator<Item = End> {
        self.first_ends.iter().copied().chain([self.end])
    }

    /// The least and the most time in milliseconds that its own steps count for its timeout. How long it is parked
    /// during its agents' pauses depends on what else is in flight; and after a dropped dispatch it counts as parked,
    /// whatever it does, until the calls of that have settled and it has its permits back (CC-6b).
    pub fn own_ms(&self) -> (u64, u64) {
        let (mut least, mut most, mut has_dropped) = (0, 0, false);
        for step in &self.steps {
            match step {
                Step::Sleep(ms) => {
                    most += ms;
                    least += if has_dropped { 0 } else { *ms };
                }
                Step::Fork(fork) if fork.outlives => {}
                Step::Fork(fork) => {
                    most += fork.pauses_ms();
                    has_dropped |= fork.is_cut();
                }
                Step::Nest(nested) => has_dropped |= nested.iter().any(|one| one.dropped_ms.is_some()),
                Step::Emit => {}
            }
        }
        (least, most)
    }

    /// Whether it makes nested calls.
    pub fn is_nested(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Fork(fork) => !fork.outlives,
            step => matches!(step, Step::Nest(_)),
        })
    }

    /// Whether it makes agents.
    pub fn forks(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Fork(_)))
    }

    /// The batches of its steps.
    pub fn batches(&self) -> impl Iterator<Item = &BatchPlan> {
        self.steps.iter().flat_map(Step::batches)
    }
}

impl Step {
    /// The batches of this step.
    pub fn batches(&self) -> Vec<&BatchPlan> {
        match self {
            Self::Sleep(_) | Self::Emit => Vec::new(),
            Self::Nest(nested) => nested.iter().map(|nested| &nested.batch).collect(),
            Self::Fork(fork) => fork.batches(),
        }
    }
}
