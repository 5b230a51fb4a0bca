//! A batch that arrives call by call.

use super::{
    handler::Awaited,
    turns::{Agent, cut},
};
use crate::sim::{
    journal::{Fact, HandlerStep},
    program::{Cut, CutBy, TurnPlan},
};
use std::time::Duration;
use tokio::time::sleep;
use toolyard::{OpenBatch, Turn};

/// Plays a turn whose calls arrive `gap_ms` apart, through an open batch of its own or of a turn.
pub(super) async fn play(agent: Agent<'_>, plan: &TurnPlan, gap_ms: u64) {
    let shaker = &agent.stage.shaker;
    agent.note(plan, HandlerStep::StreamStarted);
    let awaited = Awaited::new(agent.stage, plan.batch.key());
    let turn = agent.session.turn();
    let mut open = match plan.mode.has_turn() {
        true => turn.open_batch(),
        false => agent.session.open_batch(),
    };
    let (cut, cancel_at) = (cut(plan.cut), agent.cancel_at(&turn, plan));
    tokio::pin!(cut, cancel_at);
    let is_cut = tokio::select! {
        biased;
        () = shaker.shake(Box::pin(feed(agent, &open, plan, gap_ms))) => false,
        () = &mut cut => true,
        never = &mut cancel_at => match never {},
    };
    if is_cut && matches!(plan.cut, Some(Cut { by: CutBy::Cancel, .. })) {
        if let Some(batch) = plan.batch.key() {
            agent.stage.journal.note(Fact::CancelTurn(batch));
        }
        open = cancelled(agent, &turn, open, plan);
        agent.hold(plan.batch.key().filter(|_| plan.mode.has_turn()).map(Fact::CancelTurn));
    } else if is_cut {
        // Recorded before it happens.
        drop(awaited);
        agent.note(plan, HandlerStep::NestedDropped);
        agent.note(plan, HandlerStep::StreamEnded);
        drop(open);
        return taken_up(agent, &turn, plan).await;
    }
    let mut finished = shaker.shake(Box::pin(open.finish()));
    tokio::select! {
        biased;
        outcomes = &mut finished => {
            agent.note(plan, HandlerStep::StreamEnded);
            agent.resumed(plan);
            awaited.record(agent.stage.views(&outcomes));
            if !is_cut {
                agent.resend(&turn, plan, &outcomes).await;
            }
        }
        () = &mut cut, if !is_cut => {
            drop(awaited);
            agent.note(plan, HandlerStep::NestedDropped);
            agent.note(plan, HandlerStep::StreamEnded);
            drop(finished);
            taken_up(agent, &turn, plan).await;
        }
        never = &mut cancel_at => match never {},
    }
}

/// Sends again what ran of a batch that was dropped, once all of it has ended (CL-8).
async fn taken_up(agent: Agent<'_>, turn: &Turn, plan: &TurnPlan) {
    // A handler holds no results of calls that it has left behind.
    if plan.resend && plan.mode.has_turn() && agent.handler.is_none() {
        sleep(Duration::from_millis(agent.stage.program.grace_ms)).await;
        let finished = turn.finished();
        let outcomes: Vec<_> = finished.iter().flatten().cloned().collect();
        if outcomes.len() == finished.len() {
            agent.resend(turn, plan, &outcomes).await;
        }
    }
}

async fn feed(agent: Agent<'_>, open: &OpenBatch, plan: &TurnPlan, gap_ms: u64) {
    for call in agent.stage.calls(&plan.batch) {
        open.push(call);
        agent.stage.shaker.nudge().await;
        if gap_ms > 0 {
            sleep(Duration::from_millis(gap_ms)).await;
        }
    }
}

/// Cancels a batch and pushes the remaining calls: a cancelled batch still takes calls and answers them.
fn cancelled(agent: Agent<'_>, turn: &Turn, open: OpenBatch, plan: &TurnPlan) -> OpenBatch {
    match plan.mode.has_turn() {
        true => turn.cancel(),
        false => open.cancel(),
    }
    agent.stage.calls(&plan.batch).into_iter().skip(open.len()).for_each(|call| open.push(call));
    open
}
