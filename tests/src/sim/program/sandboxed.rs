//! Puts some tools of a generated program into a sandbox, which fails now and then: before their handlers start, or
//! when they are done (SM-3).

use super::{Act, BreakerOwner, End, Order, Placement, Program};
use crate::sim::Dice;
use toolyard::BreakerPolicy;

impl Program {
    /// Sandboxes some tools, as the dice say.
    pub(super) fn sandbox(&mut self, dice: &mut Dice) {
        if !dice.chance(150) {
            return;
        }
        let failures = dice.pick(&[150, 400, 800]);
        let breaks = dice.chance(600);
        for tool in self.tools.iter_mut().filter(|tool| tool.placement != Placement::Blocking) {
            tool.sandboxed = dice.chance(600);
            if tool.sandboxed && breaks && !tool.guards.breaker.is_enabled() {
                let few = dice.range(1..=4) as u32;
                tool.guards.breaker = BreakerPolicy::default().with_failures_min(few);
            }
        }
        let tools = self.tools.clone();
        self.every_call(&mut |call| {
            let sandboxed = tools.get(call.tool).is_some_and(|tool| tool.sandboxed);
            if !sandboxed || !dice.chance(failures) {
                return;
            }
            let end = dice.pick(&[End::NoSandbox, End::SandboxGone]);
            match call.script.first_ends.last_mut() {
                Some(last) => *last = end,
                None => call.script.end = end,
            }
        });
        if dice.chance(200) {
            let owner = BreakerOwner::Sandbox;
            let act = dice.pick(&[Act::ForceOpen(owner), Act::ForceClosed(owner), Act::ResetBreaker(owner)]);
            self.orders.push(Order { at_ms: dice.pick(&[0, 30, 150, 700, 2_000]), act });
            self.orders.sort_by_key(|order| order.at_ms);
        }
    }

    /// The same program without a sandbox.
    pub(super) fn without_sandbox(&mut self) {
        self.tools.iter_mut().for_each(|tool| tool.sandboxed = false);
        self.every_call(&mut |call| {
            let ends = call.script.first_ends.iter_mut().chain([&mut call.script.end]);
            ends.filter(|end| end.is_of_sandbox()).for_each(|end| *end = End::Fail);
        });
    }
}
