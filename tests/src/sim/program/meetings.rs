//! Lets things meet in some generated programs that seldom meet by chance, and whose meeting has broken a rule: keys and
//! little room for results, and the agents of a handler that is given up.

use super::{
    CallPlan, Consent, DispatchMode, End, ForkPlan, KeyPlan, OnCancel, Placement, Program, Room, Step,
    ToolPlan, TurnPlan,
    rare::{Numbers, plain_turn},
};
use crate::sim::Dice;
use toolyard::ToolClass;

impl Program {
    /// Gives the program some of these, as the dice say.
    pub(super) fn meet(&mut self, dice: &mut Dice) {
        if dice.chance(25) {
            self.keys_with_little_room(dice);
        }
        if dice.chance(20) {
            self.agents_of_the_given_up(dice);
        }
    }

    /// Calls that share keys in full batches and in others: what had no room in one is told in the next, which has room.
    fn keys_with_little_room(&mut self, dice: &mut Dice) {
        let able = |tool: &ToolPlan| tool.consent == Consent::Free && !tool.recursive;
        let Some(tool) = dice.one_of(&self.tools, able) else { return };
        let (batch, bytes) = dice.pick(&[(20 << 10, 18_000), (100 << 10, 70_000)]);
        self.room = Some(Room { batch, session: 1_000 << 10, engine: 2_000 << 10 });
        let mut next = self.next_numbers();
        for session in self.sessions.iter_mut().take(dice.few(1..=2)) {
            let mut large = |dice: &mut Dice, keyed: u64| {
                let key = dice.maybe(keyed, |dice| KeyPlan { key: dice.few(0..=1) as u32, args: 0 });
                let mut call = CallPlan { key, ..next.call(dice, tool) };
                call.script.bytes = bytes;
                call
            };
            let full = (0..dice.few(2..=4)).map(|_| large(dice, 600)).collect();
            session.turns.push(TurnPlan { overlaps_next: dice.chance(500), ..plain_turn(full) });
            for _ in 0..dice.few(1..=3) {
                let gap_ms = dice.pick(&[0, 5, 100, 2_000]);
                session.turns.push(TurnPlan { gap_ms, ..plain_turn(vec![large(dice, 900)]) });
            }
        }
    }

    /// Handlers that are given up while a serial call of one agent of theirs runs on, and another agent begins.
    fn agents_of_the_given_up(&mut self, dice: &mut Dice) {
        let able = |tool: &ToolPlan| {
            tool.class == ToolClass::Serial && tool.consent == Consent::Free && !tool.recursive
        };
        let Some(serial) = dice.one_of(&self.tools, able) else { return };
        self.tools[serial].placement = Placement::Blocking;
        self.every_call(&mut |call| {
            if call.tool == serial {
                // A handler that never ends would never be quiescent.
                call.script.first_ends.retain(|end| *end != End::Hang);
                call.script.end = if call.script.end == End::Hang { End::Ok } else { call.script.end };
            }
        });
        let (mut next, tools) = (self.next_numbers(), self.tools.len() - 1);
        for session in self.sessions.iter_mut().take(dice.few(1..=2)) {
            let lasts_ms = dice.pick(&[40, 4_000, 20_000]);
            let lasting = next.given_up(dice, serial, Step::Sleep(lasts_ms));
            let begins: Vec<_> = (0..dice.few(1..=3))
                .map(|_| {
                    let calls = (0..dice.few(1..=3)).map(|_| {
                        let tool = dice.few(0..=tools);
                        next.call(dice, tool)
                    });
                    let calls = calls.collect();
                    let gap_ms = dice.pick(&[0, 30, 100, 500, 600, 2_000]);
                    let mode = dice.pick(&[
                        DispatchMode::Plain,
                        DispatchMode::Runs,
                        DispatchMode::OneByOne,
                        DispatchMode::Streamed(3),
                        DispatchMode::Opened(3),
                    ]);
                    next.agent(TurnPlan { gap_ms, mode, ..plain_turn(calls) }, Vec::new())
                })
                .collect();
            let first = next.agent(plain_turn(vec![lasting]), begins);
            let above = next.given_up(dice, serial, Step::Fork(first));
            session.turns.last_mut().into_iter().for_each(|turn| turn.overlaps_next = dice.chance(500));
            session.turns.push(plain_turn(vec![above]));
        }
    }
}

impl Numbers {
    /// A call with a deadline, whose handler goes on after it.
    fn given_up(&mut self, dice: &mut Dice, tool: usize, step: Step) -> CallPlan {
        let mut call = self.call(dice, tool);
        call.deadline_ms = Some(dice.pick(&[100, 500]));
        (call.script.steps, call.script.on_cancel) = (vec![step], OnCancel::Deaf);
        call
    }

    fn agent(&mut self, turn: TurnPlan, forks: Vec<ForkPlan>) -> ForkPlan {
        ForkPlan { outlives: false, turns: vec![turn], forks, ..self.fork() }
    }
}
