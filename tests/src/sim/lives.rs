//! Runs a program through several lives of the engine, whose records are its only memory (JR-5 to JR-10).
//!
//! ```text
//!   life 1: runtime, engine, handlers ── crash: all of it is dropped, nothing more is observed ──► records that are left
//!   life 2: the same program, its callers come back ── crash or drain ──► records ──► life 3 ... ──► checks of all
//! ```

mod check;
#[cfg(test)]
mod tests;

use super::{
    Entry, Fact, Program,
    check::Violation,
    program::{Act, LifeEnd, LifeEndAt, LifeEnding, LivesPlan, Order},
    run::{on_a_runtime, run_program},
    stage::{Callers, Life, Stage},
};
use crate::{Ledger, Remains};
use std::{sync::Arc, time::Duration};
use toolyard::{OpenTurn, SessionId};

/// A run of several lives.
pub(super) struct Played {
    pub(super) violations: Vec<Violation>,
    pub(super) entries: Vec<Entry>,
    /// How each life has ended.
    pub(super) ends: Vec<String>,
}

/// What was observed of a life.
pub(super) struct Lived {
    program: Program,
    entries: Vec<Entry>,
    /// What it has found open, and has left.
    open: [Vec<OpenTurn>; 2],
    /// The sessions that it has known from before, by their index.
    known: Vec<usize>,
}

impl Lived {
    /// Whether it was ended before its work was done.
    fn has_crashed(&self) -> bool {
        self.entries.last().is_some_and(|entry| matches!(entry.fact, Fact::Crashed))
    }

    /// Whether it takes this turn up.
    fn takes_up(&self, turn: &OpenTurn) -> bool {
        let is_it = |fact: &Fact| {
            matches!(fact, Fact::TakingUp(session, number)
                if *session == turn.session.to_string() && *number == turn.turn)
        };
        self.entries.iter().any(|entry| is_it(&entry.fact))
    }

    /// Whether somebody drops a batch in it.
    fn drops(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.fact, Fact::Drop(_)))
    }

    fn end(&self, number: usize, plan: &LivesPlan) -> String {
        let at_us = self.entries.last().map_or(0, |entry| entry.at_us);
        let how = match (self.has_crashed(), plan.ends.get(number)) {
            (true, Some(end)) => format!("crashed at {:?}", end.at),
            (false, Some(LifeEnd { at, how: LifeEnding::Drain(..) })) => format!("was drained at {at:?}"),
            _ => "came to its end".to_owned(),
        };
        format!("life {} {how} ({}.{:03} ms)", number + 1, at_us / 1000, at_us % 1000)
    }
}

/// Plays the lives of a program and checks them.
pub(super) fn play(program: &Program, plan: &LivesPlan) -> Played {
    let (program, callers) = (program.of_lives(plan), Arc::default());
    let (mut remains, mut lives, mut panics) = (Remains::default(), Vec::new(), Vec::new());
    for number in 0..=plan.ends.len() {
        let (lived, left, panicked) = live(&program, plan, number, &remains, &callers);
        remains = left;
        lives.push(lived);
        panics.extend(panicked);
    }
    let ends: Vec<_> = lives.iter().enumerate().map(|(number, life)| life.end(number, plan)).collect();
    let violations = panics.into_iter().chain(check::check(plan, &lives)).map(|it| {
        let what = format!("{} [{}]", it.what, ends.join("; "));
        Violation { rule: it.rule, what }
    });
    Played {
        violations: violations.collect(),
        entries: lives.into_iter().flat_map(|it| it.entries).collect(),
        ends,
    }
}

/// Plays one life. Returns what was observed, what it leaves, and its panics.
fn live(
    program: &Program,
    plan: &LivesPlan,
    number: usize,
    before: &Remains,
    callers: &Arc<Callers>,
) -> (Lived, Remains, Vec<Violation>) {
    let mut program = program.clone();
    program.chaos.seed = program.chaos.seed.wrapping_add(number as u64);
    program.orders.retain(|order| !callers.has_done(*order));
    if let Some(LifeEnd { at: LifeEndAt::Ms(at_ms), how: LifeEnding::Drain(finish, grace) }) =
        plan.ends.get(number)
    {
        program.orders.push(Order { at_ms: *at_ms, act: Act::Shutdown(*finish, *grace) });
    }
    let (mut entries, mut left) = (Vec::new(), Remains::default());
    let (mut open, mut known) = ([Vec::new(), Vec::new()], Vec::new());
    let panics = on_a_runtime(async {
        // Time goes by for what was running.
        let before =
            before.later(if number > 0 { Duration::from_millis(plan.away_ms) } else { Duration::ZERO });
        let life = Life::new(number, plan, &before, callers);
        known = (0..program.sessions.len()).filter(|at| life.ledger().knows(&session_id(*at))).collect();
        open[0] = life.ledger().open_in_next_life();
        run_program(&program, Stage::new(&program, Some(life.clone())), &mut entries).await;
        life.end();
        left = life.remains();
        open[1] = Ledger::of(&left, Duration::default).open_in_next_life();
    });
    (Lived { program, entries, open, known }, left, panics)
}

fn session_id(at: usize) -> SessionId {
    format!("s{at}").into()
}
