//! Finds programs slightly smaller than a given one.

use super::{BatchPlan, CallPlan, Consent, EditPlan, ForkPlan, PolicyPlan, Program, Step, TurnPlan};
use toolyard::{BreakerPolicy, Budget, LimitScope, Priority, RetryPolicy};

/// Programs that each lack a part of this one, those with the largest missing part first.
pub fn smaller(program: &Program) -> Vec<Program> {
    let mut found = Vec::new();
    for at in 0..program.sessions.len() {
        found.extend(without(program, |it| &mut it.sessions, at));
    }
    for session in 0..program.sessions.len() {
        for at in 0..program.sessions[session].turns.len() {
            found.extend(without(program, |it| &mut it.sessions[session].turns, at));
        }
    }
    for at in 0..program.orders.len() {
        found.extend(without(program, |it| &mut it.orders, at));
    }
    for at in 0..cuts(&mut program.clone()) {
        let mut less = program.clone();
        cut(&mut less, at);
        found.push(less);
    }
    found.extend(program.with_fewer_lives());
    found.extend(settings(program));
    found
}

fn without<T>(program: &Program, list: impl Fn(&mut Program) -> &mut Vec<T>, at: usize) -> Option<Program> {
    let mut less = program.clone();
    list(&mut less).remove(at);
    (!less.sessions.is_empty()).then_some(less)
}

/// The number of possible single cuts within sessions.
fn cuts(program: &mut Program) -> usize {
    let mut scissors = Scissors { at: usize::MAX };
    scissors.program(program);
    usize::MAX - scissors.at
}

/// Makes the cut with this index.
fn cut(program: &mut Program, at: usize) {
    Scissors { at }.program(program);
}

/// Walks through a program and makes one cut, the one that follows `at` others.
struct Scissors {
    at: usize,
}

impl Scissors {
    fn is_here(&mut self) -> bool {
        let is_here = self.at == 0;
        self.at = self.at.wrapping_sub(1);
        is_here
    }

    fn program(&mut self, program: &mut Program) {
        for session in &mut program.sessions {
            session.turns.iter_mut().for_each(|turn| self.turn(turn));
            self.forks(&mut session.forks);
        }
    }

    fn forks(&mut self, forks: &mut Vec<ForkPlan>) {
        for at in 0..forks.len() {
            if self.is_here() {
                forks.remove(at);
                return;
            }
        }
        forks.iter_mut().for_each(|fork| self.fork(fork));
    }

    fn fork(&mut self, fork: &mut ForkPlan) {
        for at in 0..fork.turns.len() {
            if self.is_here() {
                fork.turns.remove(at);
                return;
            }
        }
        if fork.cancel_ms.is_some() && self.is_here() {
            fork.cancel_ms = None;
        }
        if fork.outlives && self.is_here() {
            fork.outlives = false;
        }
        fork.turns.iter_mut().for_each(|turn| self.turn(turn));
        self.forks(&mut fork.forks);
    }

    fn turn(&mut self, turn: &mut TurnPlan) {
        if turn.cut.is_some() && self.is_here() {
            turn.cut = None;
        }
        if turn.cancel_at.is_some() && self.is_here() {
            turn.cancel_at = None;
        }
        if turn.resend && self.is_here() {
            turn.resend = false;
        }
        self.batch(&mut turn.batch);
    }

    fn batch(&mut self, batch: &mut BatchPlan) {
        for at in 0..batch.calls.len() {
            if self.is_here() {
                batch.calls.remove(at);
                return;
            }
        }
        batch.calls.iter_mut().for_each(|call| self.call(call));
    }

    fn call(&mut self, call: &mut CallPlan) {
        for at in 0..call.script.steps.len() {
            if self.is_here() {
                call.script.steps.remove(at);
                return;
            }
        }
        if !call.script.first_ends.is_empty() && self.is_here() {
            call.script.first_ends.pop();
            return;
        }
        if call.held_ms.is_some() && self.is_here() {
            call.held_ms = None;
            return;
        }
        if call.script.bytes > 0 && self.is_here() {
            call.script.bytes = 0;
            return;
        }
        if call.key.is_some() && self.is_here() {
            call.key = None;
            return;
        }
        for step in &mut call.script.steps {
            match step {
                Step::Nest(nested) => nested.iter_mut().for_each(|one| self.batch(&mut one.batch)),
                Step::Fork(fork) => self.fork(fork),
                Step::Sleep(_) | Step::Emit => {}
            }
        }
    }
}

/// The same program with one simpler setting each.
fn settings(program: &Program) -> Vec<Program> {
    let plainer: [fn(&mut Program); 34] = [
        |it| (it.chaos.yields, it.chaos.naps) = (0, 0),
        |it| it.hooks = false,
        |it| it.every_call(&mut |call| call.edit = EditPlan::Nothing),
        |it| it.threads = None,
        |it| it.room = None,
        |it| it.tools.iter_mut().for_each(|tool| tool.on_drop = None),
        Program::without_sandbox,
        |it| it.policies.iter_mut().for_each(|policy| policy.on_drop = None),
        |it| it.recorder = None,
        |it| it.recorder.iter_mut().for_each(|recorder| (recorder.fails, recorder.late) = (0, 0)),
        |it| it.recorder.iter_mut().for_each(|recorder| recorder.durable = false),
        |it| it.secret = None,
        |it| it.policies.iter_mut().for_each(|policy| policy.wall_ms = None),
        |it| it.policies.iter_mut().for_each(|policy| policy.has_fingerprint = false),
        |it| it.policies[0] = PolicyPlan::default(),
        |it| it.sessions.iter_mut().for_each(|session| session.barred.clear()),
        |it| it.tools.iter_mut().for_each(|tool| tool.hidden_from_forks = false),
        |it| it.tools.iter_mut().for_each(|tool| tool.consent = once_no_more(tool.consent)),
        |it| it.cap = None,
        |it| it.queue_timeout_ms = None,
        |it| it.deadline_ms = None,
        |it| it.sessions.iter_mut().for_each(|session| session.cap = None),
        |it| it.sessions.iter_mut().for_each(|session| session.tree_cap = None),
        |it| it.sessions.iter_mut().for_each(|session| session.priority = Priority::Normal),
        |it| it.tools.iter_mut().for_each(|tool| tool.scope = None),
        |it| it.tools.iter_mut().for_each(|tool| tool.limit_scope = LimitScope::Agent),
        |it| it.tools.iter_mut().for_each(|tool| tool.limit = None),
        |it| it.budgets = [Budget::UNLIMITED; 3],
        |it| it.tools.iter_mut().for_each(|tool| tool.guards.budget = Budget::UNLIMITED),
        |it| it.tools.iter_mut().for_each(|tool| tool.guards.rate = None),
        |it| it.tools.iter_mut().for_each(|tool| tool.guards.backend = None),
        |it| it.tools.iter_mut().for_each(|tool| tool.guards.breaker = BreakerPolicy::DISABLED),
        |it| it.tools.iter_mut().for_each(|tool| tool.guards.retry = RetryPolicy::NONE),
        |it| it.tools.iter_mut().for_each(|tool| tool.guards.key_fails = false),
    ];
    let change = |plainer: fn(&mut Program)| {
        let mut less = program.clone();
        plainer(&mut less);
        (less != *program).then_some(less)
    };
    plainer.into_iter().filter_map(change).collect()
}

fn once_no_more(consent: Consent) -> Consent {
    if consent == Consent::AskedOnce { Consent::Asked } else { consent }
}
