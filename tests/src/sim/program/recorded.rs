//! Gives some generated programs a recorder, which takes its time and fails now and then (SM-4). Those with one are
//! drained more often (SM-10).

use super::{Act, Order, Program};
use crate::sim::Dice;

/// A recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderPlan {
    /// Decides what becomes of each record.
    pub seed: u64,
    /// How long a record takes at most, in milliseconds.
    pub most_ms: u64,
    /// Whether reads without a key wait too.
    pub reads_wait: bool,
    /// How many records in a thousand fail.
    pub fails: u64,
    /// How many are later than anybody waits.
    pub late: u64,
    /// Whether it outlives the engine, so that a drain suspends calls (SM-10).
    pub durable: bool,
}

impl Program {
    /// Gives the program a recorder, as the dice say.
    pub(super) fn record(&mut self, dice: &mut Dice) {
        self.recorder = dice.maybe(250, |dice| RecorderPlan {
            seed: dice.range(0..=u64::from(u32::MAX)),
            most_ms: dice.pick(&[0, 1, 10, 30]),
            reads_wait: dice.chance(300),
            fails: dice.pick(&[0, 0, 20, 150]),
            late: dice.pick(&[0, 0, 0, 20]),
            durable: dice.chance(500),
        });
        let is_drained = self.orders.iter().any(|order| matches!(order.act, Act::Shutdown(..)));
        if self.recorder.is_some() && !is_drained && dice.chance(350) {
            let act = Act::Shutdown(dice.pick(&[0, 50, 30_000]), dice.pick(&[0, 50, 30_000]));
            self.orders.push(Order { at_ms: dice.pick(&[0, 1, 10, 40, 150, 600]), act });
            self.orders.sort_by_key(|order| order.at_ms);
        }
    }
}
