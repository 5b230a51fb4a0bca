//! The agents that run batches turn by turn: sessions and their forks.

use super::BatchPlan;
use toolyard::Priority;

/// A root session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlan {
    /// Its session cap.
    pub cap: Option<usize>,
    /// The cap of its whole tree.
    pub tree_cap: Option<usize>,
    /// The tools it has no capability for.
    pub barred: Vec<usize>,
    /// Its weight in the round robin of root sessions.
    pub priority: Priority,
    /// Its turns.
    pub turns: Vec<TurnPlan>,
    /// Its forks, which run beside its turns.
    pub forks: Vec<ForkPlan>,
}

/// A sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkPlan {
    /// Its number in the program.
    pub number: u32,
    /// Whether it shares its parent's concurrent pool.
    pub shares_concurrent: bool,
    /// Its cap, if it sets its own.
    pub cap: Option<usize>,
    /// A tool hidden from it and its forks.
    pub hidden: Option<usize>,
    /// The tools for which it and its forks lack a capability, in addition to those of its parent.
    pub barred: Vec<usize>,
    /// Cancels it after so many milliseconds.
    pub cancel_ms: Option<u64>,
    /// Whether the handler that makes it keeps it until its call has ended: only then are its turns and forks played,
    /// and all of them must be refused.
    pub outlives: bool,
    /// Its turns.
    pub turns: Vec<TurnPlan>,
    /// Its forks, which run beside its turns.
    pub forks: Vec<Self>,
}

/// A turn of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnPlan {
    /// How long it waits before it starts, in milliseconds.
    pub gap_ms: u64,
    /// Whether the next turn runs beside it.
    pub overlaps_next: bool,
    /// How its batch is dispatched.
    pub mode: DispatchMode,
    /// Whether the calls that ran are sent again once all are answered.
    pub resend: bool,
    /// Whether, when and how it is cut off.
    pub cut: Option<Cut>,
    /// After how many milliseconds which of its calls is cancelled by its place, if one is and the mode has a turn.
    pub cancel_at: Option<(u64, usize)>,
    /// The batch it runs.
    pub batch: BatchPlan,
}

/// How a batch is dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchMode {
    /// In runs, through `Session::dispatch`, without a turn.
    Plain,
    /// In runs, through a turn.
    Runs,
    /// One call after another.
    OneByOne,
    /// Streamed call by call, with so many milliseconds in between.
    Streamed(u64),
    /// Like that, through an open batch of a turn.
    Opened(u64),
}

impl DispatchMode {
    /// The milliseconds between its calls, if they come one by one.
    pub fn gap_ms(self) -> Option<u64> {
        match self {
            Self::Streamed(gap_ms) | Self::Opened(gap_ms) => Some(gap_ms),
            Self::Plain | Self::Runs | Self::OneByOne => None,
        }
    }

    /// Whether it goes through a turn.
    pub fn has_turn(self) -> bool {
        matches!(self, Self::Runs | Self::OneByOne | Self::Opened(_))
    }
}

/// A turn that is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// When, in milliseconds from its start.
    pub after_ms: u64,
    /// How.
    pub by: CutBy,
}

/// How a turn is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutBy {
    /// The turn is cancelled and awaited.
    Cancel,
    /// The future is dropped.
    Drop,
}

impl SessionPlan {
    /// The batches of its turns and of its forks' turns.
    pub fn batches(&self) -> Vec<&BatchPlan> {
        batches(&self.turns, &self.forks)
    }
}

impl ForkPlan {
    /// The batches of its turns and of its forks' turns.
    pub fn batches(&self) -> Vec<&BatchPlan> {
        batches(&self.turns, &self.forks)
    }

    /// Whether one of its turns or of its forks' turns is cut off.
    pub(super) fn is_cut(&self) -> bool {
        self.turns.iter().any(|turn| turn.cut.is_some()) || self.forks.iter().any(Self::is_cut)
    }

    /// The total of the pauses in its turns and its forks' turns.
    pub(super) fn pauses_ms(&self) -> u64 {
        let below: u64 = self.forks.iter().map(Self::pauses_ms).sum();
        self.turns.iter().map(TurnPlan::pauses_ms).sum::<u64>() + below
    }
}

impl TurnPlan {
    fn pauses_ms(&self) -> u64 {
        self.gap_ms + self.mode.gap_ms().map_or(0, |gap_ms| gap_ms * self.batch.calls.len() as u64)
    }
}

fn batches<'p>(turns: &'p [TurnPlan], forks: &'p [ForkPlan]) -> Vec<&'p BatchPlan> {
    let own = turns.iter().map(|turn| &turn.batch);
    own.chain(forks.iter().flat_map(ForkPlan::batches)).collect()
}
