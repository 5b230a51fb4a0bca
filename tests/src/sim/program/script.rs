//! What a handler does.

use super::{BatchPlan, TurnPlan};

/// What a handler does, step by step, and how it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// What it does.
    pub steps: Vec<Step>,
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

/// A sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkPlan {
    /// Whether it shares its parent's concurrent pool.
    pub shares_concurrent: bool,
    /// What it does.
    pub turns: Vec<TurnPlan>,
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
    /// What it does by itself, in milliseconds.
    pub fn own_ms(&self) -> u64 {
        let own = |step: &Step| if let Step::Sleep(ms) = step { *ms } else { 0 };
        self.steps.iter().map(own).sum()
    }

    /// Whether it runs calls of its own.
    pub fn is_nested(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Nest(_) | Step::Fork(_)))
    }

    /// Whether it has agents of its own.
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
            Self::Fork(fork) => fork.turns.iter().map(|turn| &turn.batch).collect(),
        }
    }
}
