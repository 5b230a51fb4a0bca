//! Adds random policies, capabilities and questions to a generated program.

use super::{Act, AnswerPlan, Consent, EditPlan, ForkPlan, Order, PolicyPlan, Program, Step};
use crate::sim::Dice;
use toolyard::ToolClass;

/// How likely each part is, in thousandths.
struct Odds {
    policies: u64,
    denials: u64,
    questions: u64,
    bounds: u64,
}

impl Odds {
    fn of(dice: &mut Dice) -> Self {
        Self {
            policies: dice.pick(&[0, 0, 800]),
            denials: dice.pick(&[0, 100, 300]),
            questions: dice.pick(&[0, 0, 300, 700]),
            bounds: dice.pick(&[0, 0, 300]),
        }
    }
}

impl Program {
    /// Adds policies, bounds of agents and questions, as the dice say.
    pub(super) fn govern(&mut self, dice: &mut Dice) {
        if dice.chance(300) {
            return;
        }
        let odds = Odds::of(dice);
        self.questions(dice, &odds);
        self.bounds(dice, &odds);
        self.policies(dice, &odds);
        self.orders.sort_by_key(|order| order.at_ms);
    }

    fn questions(&mut self, dice: &mut Dice, odds: &Odds) {
        // Tools with a breaker are left unchanged, because their programs are built around the breaker.
        let plain = self.tools.iter_mut().filter(|tool| !tool.guards.breaker.is_enabled());
        for tool in plain {
            if tool.consent != Consent::Forbidden && dice.chance(odds.questions) {
                tool.consent = dice.pick(&[Consent::Asked, Consent::AskedOnce]);
            }
        }
        if odds.questions == 0 {
            return;
        }
        self.every_call(&mut |call| {
            if let AnswerPlan::Yes(within) = call.answer {
                let within = if dice.chance(100) { 2_700 } else { within };
                call.answer = match dice.chance(200) {
                    true => AnswerPlan::Always(within),
                    false => AnswerPlan::Yes(within),
                };
            }
            call.held_ms = dice.maybe(150, |dice| dice.pick(&[30, 900, 5_000, 400_000]));
        });
        let sessions = self.sessions.len() - 1;
        for _ in 0..dice.range(0..=2) {
            let at_ms = dice.pick(&[5, 60, 300, 1_000]);
            self.orders.push(Order { at_ms, act: Act::Forget(dice.few(0..=sessions)) });
        }
    }

    fn bounds(&mut self, dice: &mut Dice, odds: &Odds) {
        let tools = self.tools.len() - 1;
        for tool in &mut self.tools {
            tool.hidden_from_forks = dice.chance(odds.bounds / 3);
            tool.needs_no_capability = dice.chance(odds.bounds / 2);
        }
        let mut bar = |barred: &mut Vec<usize>| {
            if dice.chance(odds.bounds) {
                *barred = (0..dice.few(1..=2)).map(|_| dice.few(0..=tools)).collect();
            }
        };
        for session in &mut self.sessions {
            bar(&mut session.barred);
            session.forks.iter_mut().for_each(|fork| fork.each_fork(&mut bar));
        }
        self.every_call(&mut |call| {
            for step in &mut call.script.steps {
                if let Step::Fork(fork) = step {
                    fork.each_fork(&mut bar);
                }
            }
        });
    }

    /// Approvers that change the arguments of calls (SM-5).
    pub(super) fn edit(&mut self, dice: &mut Dice) {
        let often = dice.pick(&[0, 0, 200, 600]);
        let asks: Vec<_> = self.tools.iter().map(|tool| tool.consent.asks()).collect();
        self.every_call(&mut |call| {
            let is_edited = dice.chance(often) && asks.get(call.tool) == Some(&true);
            if is_edited && matches!(call.answer, AnswerPlan::Yes(_)) {
                call.edit = match dice.range(0..=3) {
                    0 => EditPlan::Misfits(1),
                    1 => EditPlan::Misfits(2),
                    _ => EditPlan::Fits,
                };
            }
        });
    }

    /// Gives policies a fingerprint of their content, and puts some in force again: equal content is no change.
    pub(super) fn fingerprint(&mut self, dice: &mut Dice) {
        let often = dice.pick(&[0, 500, 1_000]);
        for policy in &mut self.policies {
            policy.has_fingerprint = dice.chance(often);
        }
        if self.policies.len() > 1 && dice.chance(300) {
            let at_ms = dice.pick(&[0, 2, 25, 200, 1_100]);
            let twice = Act::SetPolicy(dice.few(0..=self.policies.len() - 1));
            self.orders.extend([Order { at_ms, act: twice }, Order { at_ms: at_ms + 1, act: twice }]);
            self.orders.sort_by_key(|order| order.at_ms);
        }
    }

    fn policies(&mut self, dice: &mut Dice, odds: &Odds) {
        if dice.chance(200) {
            self.policies[0] = policy(dice, odds, self.tools.len());
        }
        if !dice.chance(odds.policies) {
            return;
        }
        for _ in 0..dice.few(1..=3) {
            self.policies.push(policy(dice, odds, self.tools.len()));
        }
        for _ in 0..dice.range(1..=5) {
            let at_ms = dice.pick(&[0, 2, 8, 25, 70, 200, 500, 1_100, 2_600, 6_000]);
            let which = dice.range(0..=self.policies.len() as u64 - 1) as usize;
            self.orders.push(Order { at_ms, act: Act::SetPolicy(which) });
        }
        // The pause makes calls wait while the policy changes, which is the interesting case.
        if dice.chance(300) {
            let class = dice.pick(&ToolClass::ALL);
            self.orders.push(Order { at_ms: 0, act: Act::Pause(class, dice.pick(&[40, 400, 3_000])) });
        }
    }
}

impl ForkPlan {
    /// Visits the barred tools of this fork and of the forks below it that no handler creates.
    fn each_fork(&mut self, see: &mut impl FnMut(&mut Vec<usize>)) {
        see(&mut self.barred);
        self.forks.iter_mut().for_each(|fork| fork.each_fork(see));
    }
}

fn policy(dice: &mut Dice, odds: &Odds, tools: usize) -> PolicyPlan {
    PolicyPlan {
        denied: (0..tools).filter(|_| dice.chance(odds.denials)).collect(),
        wall_ms: dice.maybe(250, |dice| dice.pick(&[800, 3_000, 20_000])),
        has_fingerprint: false,
        on_drop: None,
    }
}
