//! Gives some generated programs what the other dice never draw: a few threads, agents that outlive the call that made
//! them, destructors that use the engine, crowds of waiting calls, and little room for results.

use super::{
    Act, CallBack, CallPlan, Consent, DispatchMode, End, ForkPlan, HookPlan, OnCancel, Order, Placement,
    Program, Room, Script, Step, ToolPlan, TurnPlan,
};
use crate::sim::Dice;
use toolyard::ToolClass;

/// More waiting calls than the engine grants at a time.
const CROWD: usize = 44;

impl Program {
    /// Gives the program some of these, as the dice say.
    pub(super) fn rare(&mut self, dice: &mut Dice) {
        if !dice.chance(250) {
            return;
        }
        for _ in 0..dice.few(1..=2) {
            match dice.range(0..=4) {
                0 => self.few_threads(dice),
                1 => self.late_agents(dice),
                2 => self.call_backs(dice),
                3 => self.crowd(dice),
                _ => self.little_room(dice),
            }
        }
        self.orders.sort_by_key(|order| order.at_ms);
    }

    /// Blocking handlers that make calls of their own, with fewer threads than handlers.
    fn few_threads(&mut self, dice: &mut Dice) {
        self.threads = Some(dice.few(1..=3));
        for tool in self.tools.iter_mut().filter(|tool| !tool.recursive) {
            if dice.chance(600) {
                tool.placement = Placement::Blocking;
            }
        }
        let tools = self.tools.clone();
        self.every_call(&mut |call| {
            if tools.get(call.tool).is_some_and(|tool| tool.placement == Placement::Blocking) {
                // A handler that never ends would never be quiescent.
                call.script.first_ends.retain(|end| *end != End::Hang);
                call.script.end = if call.script.end == End::Hang { End::Ok } else { call.script.end };
                if dice.chance(100) {
                    call.timeout_ms = Some(500);
                    call.script.steps.push(Step::Sleep(dice.pick(&[4_000, 40_000])));
                }
            }
        });
    }

    /// Handlers that leave agents behind, which are used when their call has ended.
    fn late_agents(&mut self, dice: &mut Dice) {
        let mut next = self.next_numbers();
        let tools = self.tools.clone();
        let mut left = dice.few(1..=4);
        self.every_call(&mut |call| {
            for step in &mut call.script.steps {
                if let Step::Fork(fork) = step
                    && dice.chance(300)
                {
                    fork.leave_behind();
                }
            }
            let able = !call.twin && !call.broken && call.tool < tools.len();
            if left > 0 && able && dice.chance(200) {
                left -= 1;
                let at = dice.range(0..=call.script.steps.len() as u64) as usize;
                call.script.steps.insert(at, Step::Fork(late_agent(dice, &mut next, &tools)));
            }
        });
    }

    /// Destructors of tools and policies that use the engine which drops them.
    fn call_backs(&mut self, dice: &mut Dice) {
        let calls = self.calls_by_root();
        let (sessions, policies) = (self.sessions.len() - 1, self.policies.len() - 1);
        let call_back = |dice: &mut Dice| match dice.range(0..=4) {
            0 if !calls.is_empty() => {
                let (root, node) = dice.pick(&calls);
                CallBack::CancelCall(root, node)
            }
            1 => CallBack::CancelCalls(dice.few(0..=sessions)),
            2 => CallBack::SetPolicy(dice.few(0..=policies)),
            3 => CallBack::Fork(dice.few(0..=sessions)),
            _ => CallBack::Look,
        };
        for tool in &mut self.tools {
            tool.on_drop = dice.maybe(400, call_back);
        }
        for policy in &mut self.policies {
            policy.on_drop = dice.maybe(700, call_back);
        }
        for _ in 0..dice.few(1..=3) {
            let at_ms = dice.pick(&[0, 5, 40, 200, 1_000]);
            self.orders.push(Order { at_ms, act: Act::SetPolicy(dice.few(0..=policies)) });
        }
    }

    /// More calls behind a pause or a narrow pool than are granted at a time (CC-3).
    fn crowd(&mut self, dice: &mut Dice) {
        let class = dice.pick(&[ToolClass::Read, ToolClass::Concurrent]);
        let able = |tool: &ToolPlan| {
            let is_plain = tool.consent == Consent::Free && tool.limit.is_none() && !tool.recursive;
            tool.class == class && is_plain && tool.placement != Placement::Blocking
        };
        let Some(tool) = dice.one_of(&self.tools, able) else { return };
        let (mut next, wide) = (self.next_numbers(), dice.pick(&[CROWD, 3 * CROWD]));
        for session in self.sessions.iter_mut().take(dice.few(1..=2)) {
            session.turns.last_mut().into_iter().for_each(|turn| turn.overlaps_next = true);
            let calls = (0..CROWD).map(|_| next.call(dice, tool)).collect();
            session.turns.push(plain_turn(calls));
        }
        let mut order = |at_ms, act| self.orders.push(Order { at_ms, act });
        if dice.chance(600) {
            order(0, Act::Pause(class, dice.pick(&[100, 1_000, 3_000])));
            order(40, Act::Resize(class, wide));
        } else {
            order(0, Act::Resize(class, 1));
            order(dice.pick(&[40, 2_500]), Act::Resize(class, wide));
        }
        if dice.chance(300) {
            order(dice.pick(&[150, 3_010]), Act::Resize(class, dice.few(1..=6)));
        }
    }

    /// Results that do not all find room.
    fn little_room(&mut self, dice: &mut Dice) {
        let kib = |count: usize| count << 10;
        self.room = Some(Room {
            batch: dice.pick(&[kib(2), kib(20), kib(100), kib(1_000)]),
            session: dice.pick(&[kib(64), kib(128), kib(1_000)]),
            engine: dice.pick(&[kib(64), kib(192), kib(1_000)]),
        });
        let often = dice.pick(&[200, 600]);
        self.every_call(&mut |call| {
            if dice.chance(often) {
                call.script.bytes = dice.pick(&[300, 1_500, 5_000, 18_000, 70_000]);
            }
        });
    }

    /// The first numbers that no call and no fork has.
    pub(super) fn next_numbers(&mut self) -> Numbers {
        let mut next = Numbers { node: 0, fork: 0 };
        for session in &mut self.sessions {
            session.forks.iter_mut().for_each(|fork| fork.numbers(&mut next));
        }
        self.every_call(&mut |call| {
            next.node = next.node.max(call.node + 1);
            for step in &mut call.script.steps {
                if let Step::Fork(fork) = step {
                    fork.numbers(&mut next);
                }
            }
        });
        next
    }
}

/// The numbers of the next call and the next fork.
pub(super) struct Numbers {
    node: u32,
    fork: u32,
}

impl Numbers {
    /// A short call of this tool.
    pub(super) fn call(&mut self, dice: &mut Dice, tool: usize) -> CallPlan {
        self.node += 1;
        CallPlan {
            node: self.node - 1,
            tool,
            broken: false,
            twin: false,
            timeout_ms: None,
            deadline_ms: None,
            answer: super::AnswerPlan::Yes(0),
            edit: super::EditPlan::Nothing,
            held_ms: None,
            hook: HookPlan::Go(0),
            key: None,
            script: Script {
                steps: vec![Step::Sleep(dice.pick(&[0, 1, 10]))],
                first_ends: Vec::new(),
                end: End::Ok,
                on_cancel: OnCancel::Polite,
                bytes: 0,
            },
        }
    }

    /// An agent that does nothing.
    pub(super) fn fork(&mut self) -> ForkPlan {
        self.fork += 1;
        ForkPlan {
            number: self.fork - 1,
            shares_concurrent: false,
            cap: None,
            hidden: None,
            barred: Vec::new(),
            cancel_ms: None,
            outlives: false,
            turns: Vec::new(),
            forks: Vec::new(),
        }
    }
}

pub(super) fn plain_turn(calls: Vec<CallPlan>) -> TurnPlan {
    let batch = super::BatchPlan { calls };
    let mode = DispatchMode::Plain;
    TurnPlan { gap_ms: 0, overlaps_next: false, mode, resend: false, cut: None, cancel_at: None, batch }
}

/// An agent with a turn or two, and perhaps one with an agent of its own.
fn late_agent(dice: &mut Dice, next: &mut Numbers, tools: &[ToolPlan]) -> ForkPlan {
    let turn = |dice: &mut Dice, next: &mut Numbers| {
        let calls = (0..dice.few(1..=4)).map(|_| {
            let tool = dice.few(0..=tools.len() - 1);
            next.call(dice, tool)
        });
        let mut turn = plain_turn(calls.collect());
        turn.mode = dice.pick(&[
            DispatchMode::Plain,
            DispatchMode::Runs,
            DispatchMode::OneByOne,
            DispatchMode::Streamed(3),
            DispatchMode::Opened(3),
        ]);
        turn.gap_ms = dice.pick(&[0, 0, 30]);
        turn
    };
    let fork = |next: &mut Numbers, turns| ForkPlan { outlives: true, turns, ..next.fork() };
    let turns = (0..dice.few(1..=2)).map(|_| turn(dice, next)).collect();
    let mut agent = fork(next, turns);
    if dice.chance(400) {
        let turns = vec![turn(dice, next)];
        agent.forks.push(fork(next, turns));
        agent.leave_behind();
    }
    agent
}

impl ForkPlan {
    /// Has all of it played when the handler's call has ended.
    fn leave_behind(&mut self) {
        self.outlives = true;
        // A kept result would be an answer without a run.
        self.calls(&mut |call| call.key = None);
    }

    /// Raises the next numbers above all forks of it that no handler makes.
    fn numbers(&self, next: &mut Numbers) {
        next.fork = next.fork.max(self.number + 1);
        self.forks.iter().for_each(|fork| fork.numbers(next));
    }
}
