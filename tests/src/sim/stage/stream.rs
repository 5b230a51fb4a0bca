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
use toolyard::OpenBatch;

/// Plays a turn whose calls arrive `gap_ms` apart.
pub(super) async fn play(agent: Agent<'_>, plan: &TurnPlan, gap_ms: u64) {
    let shaker = &agent.stage.shaker;
    agent.note(plan, HandlerStep::StreamStarted);
    let awaited = Awaited::new(agent.stage, plan.batch.key());
    let mut open = agent.session.open_batch();
    let cut = cut(plan.cut);
    tokio::pin!(cut);
    let is_cut = tokio::select! {
        biased;
        () = shaker.shake(Box::pin(feed(agent, &open, plan, gap_ms))) => false,
        () = &mut cut => true,
    };
    if is_cut && matches!(plan.cut, Some(Cut { by: CutBy::Cancel, .. })) {
        if let Some(batch) = plan.batch.key() {
            agent.stage.journal.note(Fact::CancelTurn(batch));
        }
        open = cancelled(agent, open, plan);
    } else if is_cut {
        // Recorded before it happens.
        drop(awaited);
        agent.note(plan, HandlerStep::NestedDropped);
        agent.note(plan, HandlerStep::StreamEnded);
        return;
    }
    let mut finished = shaker.shake(Box::pin(open.finish()));
    tokio::select! {
        biased;
        outcomes = &mut finished => {
            agent.note(plan, HandlerStep::StreamEnded);
            agent.resumed(plan);
            awaited.record(agent.stage.views(&outcomes));
        }
        () = &mut cut, if !is_cut => {
            drop(awaited);
            agent.note(plan, HandlerStep::NestedDropped);
            agent.note(plan, HandlerStep::StreamEnded);
            drop(finished);
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
fn cancelled(agent: Agent<'_>, open: OpenBatch, plan: &TurnPlan) -> OpenBatch {
    open.cancel();
    agent.stage.calls(&plan.batch).into_iter().skip(open.len()).for_each(|call| open.push(call));
    open
}
