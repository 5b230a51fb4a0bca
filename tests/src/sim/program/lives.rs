//! Cuts a further run of some generated programs into several lives of the engine, which has a journal then (JR-5 to
//! JR-10).

use super::{Act, ForkPlan, Order, Program, RecorderPlan, Step, TurnPlan};
use crate::sim::Dice;

/// The lives of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivesPlan {
    /// Decides how long records take and which are lost.
    pub seed: u64,
    /// How long a record takes at most, in milliseconds.
    pub most_ms: u64,
    /// Whether calls run behind one of which nobody knows what it has done.
    pub goes_on: bool,
    /// Whether tools can say what became of their calls (JR-6).
    pub reconciles: bool,
    /// How long nothing runs between two lives, in milliseconds.
    pub away_ms: u64,
    /// How its lives end but for the last one, which ends when all work is done.
    pub ends: Vec<LifeEnd>,
}

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifeEnd {
    /// When.
    pub at: LifeEndAt,
    /// How.
    pub how: LifeEnding,
}

/// When a life ends, if its work is not done before. All numbers are from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeEndAt {
    /// After so many milliseconds.
    Ms(u64),
    /// With this record.
    Record(usize),
    /// When so many batches were answered.
    Answer(usize),
    /// When so many cancels were acknowledged.
    Cancel(usize),
    /// When so many turns of earlier lives are being taken up.
    TakingUp(usize),
}

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeEnding {
    /// By a kill or a loss of power: nothing of it runs on.
    Crash,
    /// By a drain, which lasts these milliseconds to finish and to stop (SM-10). It begins at a time.
    Drain(u64, u64),
}

impl Program {
    /// Has some programs run through several lives too, as the dice say.
    pub(super) fn live_on(&mut self, dice: &mut Dice) {
        let has_cancels = self.has_cancels();
        self.lives = dice.maybe(400, |dice| LivesPlan {
            seed: dice.range(0..=u64::from(u32::MAX)),
            most_ms: dice.pick(&[0, 0, 1, 10, 30]),
            goes_on: dice.chance(300),
            reconciles: dice.chance(300),
            away_ms: dice.pick(&[0, 100, 70_000]),
            ends: (0..dice.pick(&[0, 1, 1, 1, 2, 2, 3])).map(|_| end(dice, has_cancels)).collect(),
        });
    }

    /// Whether somebody cancels a turn or calls.
    fn has_cancels(&self) -> bool {
        let by_turn = |turn: &TurnPlan| turn.cancel_at.is_some() || turn.cut.is_some();
        let by_order = |order: &Order| {
            matches!(order.act, Act::CancelSession(_) | Act::CancelCall(..) | Act::CancelCalls(_))
        };
        self.sessions.iter().flat_map(|session| &session.turns).any(by_turn)
            || self.orders.iter().any(by_order)
    }

    /// The same program with one life less, or with plainer lives.
    pub(super) fn with_fewer_lives(&self) -> Vec<Self> {
        let Some(plan) = &self.lives else { return Vec::new() };
        let with = |lives: Option<LivesPlan>| Self { lives, ..self.clone() };
        let shorter = (0..plan.ends.len()).map(|at| {
            let mut less = plan.clone();
            less.ends.remove(at);
            Some(less)
        });
        let plainer = [
            LivesPlan { most_ms: 0, ..plan.clone() },
            LivesPlan { away_ms: 0, ..plan.clone() },
            LivesPlan { goes_on: false, ..plan.clone() },
            LivesPlan { reconciles: false, ..plan.clone() },
        ];
        let plainer = plainer.into_iter().filter(|less| less != plan).map(Some);
        std::iter::once(None).chain(shorter).chain(plainer).map(with).collect()
    }

    /// The program whose run has several lives: without what the next life does not have either, or what makes results differ
    /// that are asked for again.
    pub(in crate::sim) fn of_lives(&self, plan: &LivesPlan) -> Self {
        let mut program = self.clone();
        program.room = None;
        program.recorder = Some(RecorderPlan {
            seed: plan.seed,
            most_ms: plan.most_ms,
            reads_wait: false,
            fails: 0,
            late: 0,
            durable: true,
        });
        program.orders.retain(|order| !matches!(order.act, Act::Shutdown(..)));
        program.tools.iter_mut().for_each(|tool| tool.on_drop = None);
        program.policies.iter_mut().for_each(|policy| policy.on_drop = None);
        let no_resend = &mut |turn: &mut TurnPlan| turn.resend = false;
        for session in &mut program.sessions {
            session.turns.iter_mut().for_each(&mut *no_resend);
            session.forks.iter_mut().for_each(|fork| fork.every_turn(no_resend));
        }
        program.every_turn_of_a_handler(no_resend);
        program.every_call(&mut |call| {
            call.script.steps.iter_mut().for_each(|step| {
                if let Step::Fork(fork) = step {
                    stays(fork);
                }
            });
        });
        program
    }
}

fn end(dice: &mut Dice, has_cancels: bool) -> LifeEnd {
    let at_ms =
        |dice: &mut Dice| LifeEndAt::Ms(dice.pick(&[0, 1, 5, 10, 30, 60, 100, 300, 1_000, 3_000, 20_000]));
    if dice.chance(200) {
        let how = LifeEnding::Drain(dice.pick(&[0, 50, 30_000]), dice.pick(&[0, 50, 30_000]));
        return LifeEnd { at: at_ms(dice), how };
    }
    let at = match dice.range(0..=9) {
        // What was acknowledged last is what is forgotten most easily.
        0..=3 if has_cancels => LifeEndAt::Cancel(dice.few(1..=3)),
        0..=4 => LifeEndAt::Record(dice.few(1..=60)),
        5 => LifeEndAt::Answer(dice.few(1..=4)),
        6 => LifeEndAt::Cancel(dice.few(1..=3)),
        7 => LifeEndAt::TakingUp(dice.few(1..=3)),
        _ => at_ms(dice),
    };
    LifeEnd { at, how: LifeEnding::Crash }
}

/// An agent ends with the call whose handler has made it.
fn stays(fork: &mut ForkPlan) {
    fork.outlives = false;
    fork.forks.iter_mut().for_each(stays);
}
