//! Adds random protection to a generated program: keys, retries, breakers, rates and budgets.
//!
//! Each part is in some of the programs only, and a quarter of them have none, so that every part is tested both
//! alone and together with others.

use super::{
    Act, BatchPlan, BreakerOwner, CallPlan, Consent, Cut, CutBy, End, ForkPlan, KeyPlan, OnCancel, Order,
    Placement, Program, Step, ToolPlan, TurnPlan,
};
use crate::sim::Dice;
use std::time::Duration;
use toolyard::{BreakerPolicy, Budget, Jitter, RetryPolicy};

/// How likely each part is, in thousandths.
struct Odds {
    retries: u64,
    flaky: u64,
    keys: u64,
    rates: u64,
    breakers: u64,
    budgets: u64,
    cancels: u64,
}

impl Odds {
    fn of(dice: &mut Dice) -> Self {
        Self {
            retries: dice.pick(&[0, 0, 600, 900]),
            flaky: dice.pick(&[100, 300, 500]),
            keys: dice.pick(&[0, 0, 400, 800]),
            rates: dice.pick(&[0, 0, 0, 400]),
            breakers: dice.pick(&[0, 0, 700]),
            budgets: dice.pick(&[0, 0, 500]),
            cancels: dice.pick(&[0, 0, 500]),
        }
    }

    /// Whether attempts should fail more often than generated.
    fn fails(&self) -> bool {
        self.retries + self.breakers > 0
    }
}

impl Program {
    /// Adds protection, as the dice say.
    pub(super) fn enrich(&mut self, dice: &mut Dice) {
        if dice.chance(250) {
            return;
        }
        let odds = Odds::of(dice);
        self.guards(dice, &odds);
        self.budget(dice, &odds);
        let tools = self.tools.clone();
        let mut each = |call: &mut CallPlan| {
            let Some(tool) = tools.get(call.tool) else { return };
            if odds.fails() {
                fail_first_attempts(
                    dice,
                    &odds,
                    call,
                    tool.placement == Placement::Blocking || tool.recursive,
                );
            }
            if !call.twin && !call.broken {
                let key = |dice: &mut Dice| KeyPlan {
                    key: dice.few(0..=2) as u32,
                    args: u32::from(dice.chance(60)),
                };
                call.key = dice.maybe(odds.keys, key);
            }
        };
        self.every_call(&mut each);
        if odds.breakers > 0 {
            self.spread(dice);
            if dice.chance(400) {
                self.probe(dice);
            }
        }
        self.operate(dice, &odds);
    }

    fn guards(&mut self, dice: &mut Dice, odds: &Odds) {
        for tool in &mut self.tools {
            let guards = &mut tool.guards;
            guards.idempotent = dice.chance(if odds.retries + odds.keys > 0 { 300 } else { 0 });
            if dice.chance(odds.retries) {
                guards.retry = retry(dice);
            }
            if dice.chance(odds.breakers) {
                guards.breaker = breaker(dice);
                guards.backend = dice.maybe(300, |dice| dice.few(0..=1));
            }
            let rates = ["5/s burst 2", "20/s burst 3", "2/s burst 1", "1/s burst 4", "100/s burst 1"];
            guards.rate = dice.maybe(odds.rates, |dice| dice.pick(&rates).parse().expect("valid rate"));
            if dice.chance(odds.budgets) {
                guards.cost = dice.range(0..=4);
            }
            if dice.chance(odds.budgets / 3) {
                guards.budget = spend(dice, 6);
            }
            guards.key_fails = dice.chance(odds.keys / 8);
        }
    }

    fn budget(&mut self, dice: &mut Dice, odds: &Odds) {
        for (at, most) in [5, 10, 16].into_iter().enumerate() {
            if dice.chance(odds.budgets) {
                self.budgets[at] = spend(dice, most);
            }
        }
    }

    /// Delays turns so that breakers have opened by then and are due for a probe.
    fn spread(&mut self, dice: &mut Dice) {
        for turn in self.sessions.iter_mut().flat_map(|session| &mut session.turns) {
            turn.gap_ms = dice.pick(&[0, 0, 60, 250, 1_200]);
        }
    }

    /// Lets the first turn of a session open a breaker the next send a probe that hangs and is cancelled, and so on.
    fn probe(&mut self, dice: &mut Dice) {
        let guarded =
            |tool: &&ToolPlan| tool.guards.breaker.is_enabled() && tool.placement != Placement::Blocking;
        let able = |tool: &ToolPlan| !tool.recursive && tool.consent == Consent::Free;
        let Some(at) = self.tools.iter().position(|tool| guarded(&tool) && able(tool)) else { return };
        let tool = &mut self.tools[at];
        let open = Duration::from_millis(100);
        let policy = tool.guards.breaker.with_failures_min(1).with_open(open, open);
        (tool.guards.breaker, tool.timeout_ms) = (policy.checked().expect("valid breaker settings"), 60_000);
        for session in &mut self.sessions {
            for (turn, plan) in session.turns.iter_mut().enumerate() {
                (plan.overlaps_next, plan.gap_ms) = (false, dice.pick(&[150, 600]));
                let Some(call) = plan.batch.calls.first_mut() else { continue };
                (call.tool, call.timeout_ms) = (at, None);
                call.script.first_ends.clear();
                (call.script.end, call.script.on_cancel) = match turn % 2 {
                    0 => (End::Transient, call.script.on_cancel),
                    _ => (End::Hang, OnCancel::Polite),
                };
                if turn % 2 == 1 {
                    plan.cut = Some(Cut { after_ms: dice.pick(&[200, 700, 700]), by: CutBy::Cancel });
                }
            }
        }
    }

    /// Adds operator actions on calls and breakers.
    fn operate(&mut self, dice: &mut Dice, odds: &Odds) {
        let calls = self.calls_by_root();
        if odds.cancels > 0 && !calls.is_empty() {
            for _ in 0..dice.few(1..=8) {
                let (root, node) = dice.pick(&calls);
                let act = if dice.chance(80) { Act::CancelCalls(root) } else { Act::CancelCall(root, node) };
                let at_ms = dice.pick(&[0, 2, 15, 40, 110, 300, 800, 2_000, 5_000]);
                self.orders.push(Order { at_ms, act });
            }
        }
        if odds.breakers > 0 && dice.chance(250) {
            for _ in 0..dice.few(1..=3) {
                let owner = match dice.chance(200) {
                    true => BreakerOwner::Backend(dice.few(0..=1)),
                    false => BreakerOwner::Tool(dice.few(0..=self.tools.len() - 1)),
                };
                let act =
                    dice.pick(&[Act::ForceOpen(owner), Act::ForceClosed(owner), Act::ResetBreaker(owner)]);
                self.orders.push(Order { at_ms: dice.pick(&[0, 30, 150, 700, 2_000]), act });
            }
        }
        self.orders.sort_by_key(|order| order.at_ms);
    }
}

/// Makes the first attempts of a call fail.
fn fail_first_attempts(dice: &mut Dice, odds: &Odds, call: &mut CallPlan, never_ends: bool) {
    let fails = |dice: &mut Dice| match dice.range(0..=9) {
        0..=3 => End::Transient,
        4 | 5 => End::Harmless,
        6 | 7 => End::Limited(dice.maybe(600, |dice| dice.pick(&[1, 50, 700, 4_000, 45_000]))),
        8 if !never_ends => End::Hang,
        _ => End::Fail,
    };
    if !dice.chance(odds.flaky) {
        return;
    }
    for _ in 0..dice.few(1..=4) {
        call.script.first_ends.push(fails(dice));
    }
}

fn retry(dice: &mut Dice) -> RetryPolicy {
    let ms = Duration::from_millis;
    let (base, factor, cap) = dice.pick(&[(100, 4.0, 10_000), (20, 2.0, 1_000), (3_000, 1.0, 6_000)]);
    let attempts = dice.range(2..=4) as u32;
    let policy = RetryPolicy::default().with_max_attempts(attempts);
    let policy = policy.with_jitter(if dice.chance(150) { Jitter::Full } else { Jitter::Half });
    policy.with_delays(ms(base), factor, ms(cap)).checked().expect("valid delays")
}

fn breaker(dice: &mut Dice) -> BreakerPolicy {
    let open = Duration::from_millis(dice.pick(&[100, 400, 1_500, 30_000]));
    let policy = BreakerPolicy::default()
        .with_failures_min(dice.range(1..=4) as u32)
        .with_consecutive(dice.maybe(300, |dice| dice.range(1..=3) as u32));
    let policy = policy.with_window(Duration::from_secs(dice.pick(&[1, 60])));
    let policy = policy.with_open(open, open * 4).with_jitter(dice.pick(&[0.0, 0.2]));
    policy.checked().expect("valid breaker settings")
}

fn spend(dice: &mut Dice, most: u64) -> Budget {
    let mut budget = Budget::UNLIMITED;
    let what = dice.range(0..=3);
    if what != 0 {
        budget = budget.with_calls(dice.range(0..=most));
    }
    if what != 1 {
        budget = budget.with_cost(dice.range(0..=most * 2));
    }
    budget
}

impl TurnPlan {
    /// Visits every call, including those of nested batches.
    pub(super) fn calls(&mut self, see: &mut impl FnMut(&mut CallPlan)) {
        self.batch.calls(see);
    }
}

impl ForkPlan {
    /// Visits every call, including those of nested batches.
    pub(super) fn calls(&mut self, see: &mut impl FnMut(&mut CallPlan)) {
        self.turns.iter_mut().for_each(|turn| turn.calls(see));
        self.forks.iter_mut().for_each(|fork| fork.calls(see));
    }
}

impl BatchPlan {
    fn calls(&mut self, see: &mut impl FnMut(&mut CallPlan)) {
        for call in &mut self.calls {
            see(call);
            for step in &mut call.script.steps {
                match step {
                    Step::Nest(nested) => nested.iter_mut().for_each(|one| one.batch.calls(see)),
                    Step::Fork(fork) => fork.calls(see),
                    Step::Sleep(_) | Step::Emit => {}
                }
            }
        }
    }
}
