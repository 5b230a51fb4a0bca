//! What a handler does.

use super::{BatchPlan, ForkPlan};

/// What a handler does, step by step, and how it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// What it does.
    pub steps: Vec<Step>,
    /// How its first attempts end; an attempt that is not here ends as `end` says.
    pub tries: Vec<End>,
    /// How it ends.
    pub end: End,
    /// What it does when told to stop.
    pub on_cancel: OnCancel,
}

/// One step of a handler.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Sleeps so many milliseconds.
    Sleep(u64),
    /// Streams some output.
    Emit,
    /// Runs batches through its context, side by side.
    Nest(Vec<Nested>),
    /// Runs turns in a session of an agent of its own.
    Fork(ForkPlan),
}

/// A batch that a handler runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Nested {
    /// Its calls.
    pub batch: BatchPlan,
    /// After so many milliseconds its future is dropped.
    pub dropped_ms: Option<u64>,
}

/// How a handler ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With an output.
    Ok,
    /// With an error.
    Fail,
    /// With an output that says no.
    No,
    /// With an error that may pass.
    Transient,
    /// The same, and it says that it has changed nothing.
    Harmless,
    /// The remote says that it is asked too often, and perhaps after how many milliseconds to come again.
    Limited(Option<u64>),
    /// By a panic.
    Panic,
    /// Not at all.
    Hang,
}

/// What a handler does when told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCancel {
    /// It stops with an error.
    Polite,
    /// It ends with its output at once.
    Finish,
    /// Nothing.
    Deaf,
}

impl Script {
    /// How the attempt of this number ends, the first being 1.
    pub fn end_of(&self, attempt: u32) -> End {
        self.tries.get(attempt.saturating_sub(1) as usize).copied().unwrap_or(self.end)
    }

    /// All the ways in which its attempts may end.
    pub fn ends(&self) -> impl Iterator<Item = End> {
        self.tries.iter().copied().chain([self.end])
    }

    /// The least and the most that it does by itself, in milliseconds. How much of the pauses of its agents it is
    /// parked for goes by what else is in the air.
    pub fn own_ms(&self) -> (u64, u64) {
        let own = |step: &Step| match step {
            Step::Sleep(ms) => (*ms, *ms),
            Step::Fork(fork) => (0, fork.pauses_ms()),
            Step::Emit | Step::Nest(_) => (0, 0),
        };
        let add = |(least, most), (at_least, at_most)| (least + at_least, most + at_most);
        self.steps.iter().map(own).fold((0, 0), add)
    }

    /// Whether it runs calls of its own.
    pub fn is_nested(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Nest(_) | Step::Fork(_)))
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
