//! Gives some generated programs a shape in which faults were found and that the other dice rarely draw.

use super::{
    Act, CallBack, CallPlan, Consent, Cut, CutBy, DispatchMode, End, ForkPlan, KeyPlan, OnCancel, Order,
    Placement, Program, Step, TurnPlan,
};
use crate::sim::Dice;
use std::collections::BTreeSet;
use toolyard::RetryPolicy;

impl Program {
    /// Gives the program one of the shapes, as the dice say.
    pub(super) fn shape(&mut self, dice: &mut Dice) {
        if !dice.chance(200) {
            return;
        }
        match dice.range(0..=3) {
            0 => self.zombies(dice),
            1 => self.early_drops(dice),
            2 => self.handovers(dice),
            _ => self.late_sleepers(dice),
        }
    }

    /// Handlers that are given up and run on, beside refused calls, with keys that others use again, in turns and in
    /// streams of agents, perhaps until a drain: what waits for them must not wait longer than for their result.
    fn zombies(&mut self, dice: &mut Dice) {
        let able = |tool: &super::ToolPlan| !tool.recursive && tool.consent != Consent::Forbidden;
        let Some(at) = dice.one_of(&self.tools, able) else { return };
        self.tools[at].placement = Placement::Blocking;
        let (lasts, keyed) = (dice.pick(&[4_000, 20_000, 70_000]), dice.chance(400));
        self.every_call(&mut |call| {
            if call.tool != at {
                return;
            }
            // A handler that never ends would never be quiescent.
            call.script.first_ends.retain(|end| *end != End::Hang);
            if call.script.end == End::Hang {
                call.script.end = End::Ok;
            }
            call.script.steps.retain(|step| matches!(step, Step::Sleep(_) | Step::Emit));
            if dice.chance(500) {
                call.timeout_ms = Some(500);
                call.script.steps.push(Step::Sleep(lasts));
                call.script.on_cancel = OnCancel::Deaf;
            }
            if keyed && !call.twin && !call.broken {
                call.key = Some(KeyPlan { key: dice.few(0..=1) as u32, args: u32::from(dice.chance(60)) });
            }
        });
        self.every_turn_of_a_handler(&mut |turn| {
            if dice.chance(300) {
                let gap_ms = dice.pick(&[0, 3, 50]);
                turn.mode = dice.pick(&[DispatchMode::Streamed(gap_ms), DispatchMode::Opened(gap_ms)]);
            }
        });
        if dice.chance(300) {
            let at_ms = dice.pick(&[600, 2_500, 10_000]);
            let (finish, grace) = (dice.pick(&[50, 30_000]), dice.pick(&[0, 50, 30_000]));
            self.orders.push(Order { at_ms, act: Act::Shutdown(finish, grace) });
            self.orders.sort_by_key(|order| order.at_ms);
        }
    }

    /// Handlers that drop what they have dispatched or streamed before anything of it has begun, and fail.
    fn early_drops(&mut self, dice: &mut Dice) {
        for tool in &mut self.tools {
            tool.guards.retry = RetryPolicy::default().with_max_attempts(3);
        }
        self.every_turn_of_a_handler(&mut |turn| {
            if dice.chance(600) {
                let gap_ms = dice.pick(&[0, 0, 3]);
                turn.mode = dice.pick(&[DispatchMode::Streamed(gap_ms), DispatchMode::Opened(gap_ms)]);
            }
            if dice.chance(600) {
                turn.cut = Some(Cut { after_ms: dice.pick(&[0, 0, 1, 4]), by: CutBy::Drop });
            }
        });
        self.every_call(&mut |call| {
            for step in &mut call.script.steps {
                if let Step::Nest(nested) = step {
                    let drops = |dice: &mut Dice| dice.pick(&[0, 0, 1, 4]);
                    nested.iter_mut().for_each(|one| one.dropped_ms = dice.maybe(500, drops));
                }
            }
            if call.script.is_nested() && dice.chance(700) {
                call.script.first_ends =
                    vec![dice.pick(&[End::Transient, End::Harmless, End::Limited(None)])];
            }
        });
    }

    /// Calls that share keys, of which the first ones leave: by their deadline or by a cancel, between attempts and
    /// within them.
    fn handovers(&mut self, dice: &mut Dice) {
        for tool in &mut self.tools {
            tool.guards.retry = RetryPolicy::default().with_max_attempts(4);
            tool.guards.idempotent |= dice.chance(500);
        }
        let tools = self.tools.clone();
        self.every_call(&mut |call| {
            let Some(tool) = tools.get(call.tool) else { return };
            if call.twin || call.broken {
                return;
            }
            call.key = Some(KeyPlan { key: dice.few(0..=1) as u32, args: 0 });
            call.deadline_ms = dice.maybe(300, |dice| dice.pick(&[30, 600, 2_000]));
            if call.script.is_nested() || tool.placement == Placement::Blocking || tool.recursive {
                return;
            }
            for _ in 0..dice.few(0..=3) {
                call.script.first_ends.push(dice.pick(&[
                    End::Transient,
                    End::Harmless,
                    End::Hang,
                    End::Fail,
                ]));
            }
        });
        let calls = self.calls_by_root();
        for _ in 0..dice.few(1..=5).min(calls.len()) {
            let (root, node) = dice.pick(&calls);
            let at_ms = dice.pick(&[2, 40, 300, 1_600, 5_010]);
            self.orders.push(Order { at_ms, act: Act::CancelCall(root, node) });
        }
        self.orders.sort_by_key(|order| order.at_ms);
    }

    /// Handlers that drop a dispatch and go on for longer than their timeout while its calls have their grace.
    fn late_sleepers(&mut self, dice: &mut Dice) {
        self.grace_ms = 30_000;
        self.every_call(&mut |call| {
            let mut has_dropped = false;
            for step in &mut call.script.steps {
                if let Step::Nest(nested) = step {
                    nested.iter_mut().for_each(|one| one.dropped_ms = Some(dice.pick(&[0, 5, 40, 400])));
                    has_dropped = true;
                }
            }
            if has_dropped && dice.chance(600) {
                call.script.steps.push(Step::Sleep(dice.pick(&[300, 4_000, 20_000, 70_000])));
            }
            if dice.chance(300) {
                call.script.on_cancel = OnCancel::Deaf;
                call.script.steps.push(Step::Sleep(dice.pick(&[2_000, 12_000])));
            }
        });
    }

    /// Every call with its root session.
    pub(super) fn calls_by_root(&self) -> Vec<(usize, u32)> {
        let mut calls = Vec::new();
        for (root, session) in self.sessions.iter().enumerate() {
            let batches = session.batches();
            batches.into_iter().for_each(|batch| batch.walk(&mut |call| calls.push((root, call.node))));
        }
        calls
    }

    /// Forgets cancels of calls that a later shape has replaced.
    pub(super) fn forget_stale_cancels(&mut self) {
        let calls: BTreeSet<(usize, u32)> = self.calls_by_root().into_iter().collect();
        self.orders.retain(|order| match order.act {
            Act::CancelCall(root, node) => calls.contains(&(root, node)),
            _ => true,
        });
        let is_stale = |does: &CallBack| match *does {
            CallBack::CancelCall(root, node) => !calls.contains(&(root, node)),
            _ => false,
        };
        let of_tools = self.tools.iter_mut().map(|tool| &mut tool.on_drop);
        let of_policies = self.policies.iter_mut().map(|policy| &mut policy.on_drop);
        for on_drop in of_tools.chain(of_policies).filter(|on_drop| on_drop.as_ref().is_some_and(is_stale)) {
            *on_drop = None;
        }
    }

    /// Visits every call.
    pub(super) fn every_call(&mut self, see: &mut impl FnMut(&mut CallPlan)) {
        for session in &mut self.sessions {
            session.turns.iter_mut().for_each(|turn| turn.calls(see));
            session.forks.iter_mut().for_each(|fork| fork.calls(see));
        }
    }

    /// Visits every turn of an agent that a handler forks.
    pub(super) fn every_turn_of_a_handler(&mut self, see: &mut impl FnMut(&mut TurnPlan)) {
        self.every_call(&mut |call| {
            for step in &mut call.script.steps {
                if let Step::Fork(fork) = step {
                    fork.every_turn(see);
                }
            }
        });
    }
}

impl ForkPlan {
    pub(super) fn every_turn(&mut self, see: &mut impl FnMut(&mut TurnPlan)) {
        self.turns.iter_mut().for_each(&mut *see);
        self.forks.iter_mut().for_each(|fork| fork.every_turn(see));
    }
}
