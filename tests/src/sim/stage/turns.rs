//! The users of the engine: agents with their turns and forks.

use super::{Stage, handler::Awaited, late, returning, stream};
use crate::sim::{
    journal::{Fact, HandlerStep, ResultView},
    nest::{self, Parent},
    program::{Cut, CutBy, DispatchMode, ForkPlan, TurnPlan},
};
use futures::future::{BoxFuture, join, join_all};
use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};
use tokio::time::sleep;
use toolyard::{Outcome, Session, Turn};

/// A session whose plan is being played.
#[derive(Clone, Copy)]
pub(in crate::sim) struct Agent<'a> {
    pub(in crate::sim) stage: &'a Arc<Stage>,
    pub(in crate::sim) session: &'a Session,
    /// The call whose handler drives this agent, if any.
    pub(in crate::sim) handler: Option<u32>,
    /// Its number, if it is a fork.
    pub(in crate::sim) fork: Option<u32>,
}

/// Creates a fork and plays all of it.
pub(super) fn play_fork<'a>(
    stage: &'a Arc<Stage>,
    parent: Parent<'a>,
    handler: Option<u32>,
    plan: &'a ForkPlan,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        stage.shaker.nudge().await;
        let above = match parent {
            Parent::Agent(agent) => agent.fork,
            Parent::Handler(_) => None,
        };
        let Some(session) = nest::fork(&stage.program, parent, plan) else {
            return stage.journal.note(Fact::ForkRefused(plan.number, above));
        };
        stage.journal.note(Fact::Forked(plan.number, above));
        if let Some(node) = handler.filter(|_| plan.outlives) {
            return late::leave_behind(stage, node, session, plan);
        }
        let cancelled = async {
            if let Some(after) = plan.cancel_ms {
                sleep(Duration::from_millis(after)).await;
                stage.journal.note(Fact::CancelFork(plan.number));
                session.cancel();
                stage.hold(&session, Fact::CancelFork(plan.number));
            }
        };
        let played = async {
            let fork = Some(plan.number);
            Agent { stage, session: &session, handler, fork }.play(&plan.turns, &plan.forks).await;
            stage.shaker.nudge().await;
        };
        tokio::select! {
            biased;
            () = played => {}
            () = async { cancelled.await; pending().await } => {}
        }
    })
}

impl Agent<'_> {
    /// Plays the agent's turns and, concurrently, its forks.
    pub(in crate::sim) async fn play(self, turns: &[TurnPlan], forks: &[ForkPlan]) {
        let Self { stage, handler, .. } = self;
        let forks = forks.iter().map(|plan| play_fork(stage, Parent::Agent(self), handler, plan));
        join(self.play_turns(turns), join_all(forks)).await;
    }

    /// Plays one turn after another, except for turns marked to run beside the next.
    async fn play_turns(self, mut turns: &[TurnPlan]) {
        while !turns.is_empty() {
            let last = turns.iter().position(|turn| !turn.overlaps_next).unwrap_or(turns.len() - 1);
            let (together, rest) = turns.split_at(last + 1);
            join_all(together.iter().map(|plan| self.play_turn(plan))).await;
            turns = rest;
        }
    }

    async fn play_turn(self, plan: &TurnPlan) {
        sleep(Duration::from_millis(plan.gap_ms)).await;
        self.stage.shaker.nudge().await;
        if let (Some(life), Some(batch), None) = (&self.stage.life, plan.batch.key(), self.handler)
            && life.sends(batch)
            && returning::ask_again(self, life, plan, batch).await
        {
            return;
        }
        if let Some(gap_ms) = plan.mode.gap_ms() {
            return stream::play(self, plan, gap_ms).await;
        }
        let turn = self.session.turn();
        let awaited = Awaited::new(self.stage, plan.batch.key());
        let mut dispatch = self.stage.shaker.shake(Box::pin(self.dispatch(&turn, plan)));
        tokio::select! {
            biased;
            outcomes = &mut dispatch => {
                self.resumed(plan);
                awaited.record(self.stage.views(&outcomes));
                return self.resend(&turn, plan, &outcomes).await;
            }
            () = cut(plan.cut) => {}
            never = self.cancel_at(&turn, plan) => match never {},
        }
        let by_drop = matches!(plan.cut, Some(Cut { by: CutBy::Drop, .. }));
        if by_drop || plan.mode == DispatchMode::Plain {
            // Recorded before it happens: dropping the future ends calls at once.
            drop(awaited);
            self.note(plan, HandlerStep::NestedDropped);
            drop(dispatch);
            return;
        }
        if let Some(batch) = plan.batch.key() {
            self.stage.journal.note(Fact::CancelTurn(batch));
        }
        turn.cancel();
        self.hold(plan.batch.key().map(Fact::CancelTurn));
        let outcomes = dispatch.await;
        self.resumed(plan);
        awaited.record(self.stage.views(&outcomes));
    }

    async fn dispatch(self, turn: &Turn, plan: &TurnPlan) -> Vec<Outcome> {
        let calls = self.stage.calls(&plan.batch);
        self.note(plan, HandlerStep::Parked);
        match plan.mode {
            DispatchMode::Plain | DispatchMode::Streamed(_) | DispatchMode::Opened(_) => {
                self.session.dispatch(calls).await
            }
            DispatchMode::Runs => turn.dispatch(calls).await,
            DispatchMode::OneByOne => turn.dispatch_sequential(calls).await,
        }
    }

    /// Sends the calls that ran a second time; they must have the same results (CL-8).
    pub(super) async fn resend(self, turn: &Turn, plan: &TurnPlan, outcomes: &[Outcome]) {
        let Some(batch) = plan.batch.key().filter(|_| plan.resend && plan.mode.has_turn()) else {
            return;
        };
        let calls = self.stage.calls(&plan.batch);
        let ran = |outcome: &&Outcome| outcome.attempts > 0;
        let calls: Vec<_> =
            calls.into_iter().zip(outcomes).filter(|(_, it)| ran(it)).map(|(it, _)| it).collect();
        if calls.is_empty() {
            return;
        }
        let before = outcomes.iter().filter(ran).map(ResultView::of).collect();
        self.stage.shaker.nudge().await;
        let replay = Box::pin(async {
            self.note(plan, HandlerStep::Parked);
            turn.resend(calls).await
        });
        let now = self.stage.shaker.shake(replay).await;
        self.resumed(plan);
        self.stage.journal.note(Fact::Resent(batch, before, self.stage.views(&now)));
    }

    /// Cancels one call by its place, if that is planned (SC-4).
    pub(super) async fn cancel_at(self, turn: &Turn, plan: &TurnPlan) -> Infallible {
        if let Some((after_ms, at)) = plan.cancel_at.filter(|_| plan.mode.has_turn()) {
            sleep(Duration::from_millis(after_ms)).await;
            match plan.batch.calls.get(at) {
                Some(call) => {
                    self.stage.journal.note(Fact::CancelCall(call.node));
                    if turn.cancel_call_at(at) {
                        self.hold(Some(Fact::CancelCall(call.node)));
                    }
                }
                None => assert!(!turn.cancel_call_at(at), "the batch has no such call"),
            }
        }
        pending().await
    }

    /// Waits until a cancel is acknowledged, in a run of several lives.
    pub(super) fn hold(self, cancel: Option<Fact>) {
        if let Some(cancel) = cancel {
            self.stage.hold(self.session, cancel);
        }
    }

    /// Records a step of the handler that drives this agent. An empty batch is answered at once and parks no handler.
    pub(super) fn note(self, plan: &TurnPlan, step: HandlerStep) {
        if let Some(handler) = self.handler.filter(|_| !plan.batch.calls.is_empty()) {
            self.stage.journal.note(Fact::Handler(handler, step));
        }
    }

    /// Records that the handler holds all its permits again.
    pub(super) fn resumed(self, plan: &TurnPlan) {
        if self.handler.is_some() {
            self.stage.note_given_up();
        }
        self.note(plan, HandlerStep::Resumed);
    }
}

pub(super) async fn cut(cut: Option<Cut>) {
    match cut {
        Some(cut) => sleep(Duration::from_millis(cut.after_ms)).await,
        None => pending().await,
    }
}
