//! Who runs batches: sessions and their forks, turn by turn.

use super::BatchPlan;
use toolyard::Priority;

/// A root session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlan {
    /// Its cap.
    pub cap: Option<usize>,
    /// The cap of its whole tree.
    pub tree_cap: Option<usize>,
    /// The tools that it has no capability for.
    pub barred: Vec<usize>,
    /// How often its turn comes.
    pub priority: Priority,
    /// Its turns.
    pub turns: Vec<TurnPlan>,
    /// Its forks, which go beside its turns.
    pub forks: Vec<ForkPlan>,
}

/// A sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkPlan {
    /// Its number in the program.
    pub number: u32,
    /// Whether it shares its parent's concurrent pool.
    pub shares_concurrent: bool,
    /// Its cap, where it has one of its own.
    pub cap: Option<usize>,
    /// A tool that it and its forks do not see.
    pub hidden: Option<usize>,
    /// The tools that it and its forks have no capability for, beside those of its parent's.
    pub barred: Vec<usize>,
    /// After so many milliseconds it is cancelled.
    pub cancel_ms: Option<u64>,
    /// Its turns.
    pub turns: Vec<TurnPlan>,
    /// Its forks, which go beside its turns.
    pub forks: Vec<Self>,
}

/// A turn of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnPlan {
    /// How long it waits before it begins, in milliseconds.
    pub gap_ms: u64,
    /// Whether the next turn begins beside it.
    pub beside: bool,
    /// How its batch is handed over.
    pub how: How,
    /// Whether calls that ran are sent once more when all is answered.
    pub again: bool,
    /// Whether it is cut off.
    pub cut: Option<Cut>,
    /// What it runs.
    pub batch: BatchPlan,
}

/// How a batch is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By runs, as a batch of the session that no turn follows.
    Plain,
    /// By runs.
    Runs,
    /// One by one.
    OneByOne,
    /// Call by call, with so many milliseconds in between.
    Streamed(u64),
}

/// A turn that is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// When, in milliseconds from its begin.
    pub after_ms: u64,
    /// How.
    pub by: CutBy,
}

/// How a turn is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutBy {
    /// The turn is cancelled and waited for.
    Cancel,
    /// The future is dropped.
    Drop,
}

impl SessionPlan {
    /// The batches of its turns, and of those of its forks.
    pub fn batches(&self) -> Vec<&BatchPlan> {
        batches(&self.turns, &self.forks)
    }
}

impl ForkPlan {
    /// The batches of its turns, and of those of its forks.
    pub fn batches(&self) -> Vec<&BatchPlan> {
        batches(&self.turns, &self.forks)
    }

    /// How long its turns and those of its forks pause, all in all.
    pub(super) fn pauses_ms(&self) -> u64 {
        let below: u64 = self.forks.iter().map(Self::pauses_ms).sum();
        self.turns.iter().map(TurnPlan::pauses_ms).sum::<u64>() + below
    }
}

impl TurnPlan {
    fn pauses_ms(&self) -> u64 {
        match self.how {
            How::Streamed(gap_ms) => self.gap_ms + gap_ms * self.batch.calls.len() as u64,
            How::Plain | How::Runs | How::OneByOne => self.gap_ms,
        }
    }
}

fn batches<'p>(turns: &'p [TurnPlan], forks: &'p [ForkPlan]) -> Vec<&'p BatchPlan> {
    let own = turns.iter().map(|turn| &turn.batch);
    own.chain(forks.iter().flat_map(ForkPlan::batches)).collect()
}
