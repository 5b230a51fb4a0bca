//! Those who use the engine: sessions with their turns, and an operator.

use super::{Stage, handler::Awaited};
use crate::sim::{
    journal::{Fact, Shape},
    nest,
    program::{Act, Cut, CutBy, How, Order, TurnPlan},
};
use futures::future::join_all;
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::sleep;
use toolyard::{Drain, Engine, Outcome, Session};

/// Plays the turns of a session, one after another but for those that are begun beside each other.
pub(in crate::sim) async fn play_turns(stage: &Arc<Stage>, session: &Session, turns: &[TurnPlan]) {
    let mut turns = turns;
    while !turns.is_empty() {
        let last = turns.iter().position(|turn| !turn.beside).unwrap_or(turns.len() - 1);
        let (together, rest) = turns.split_at(last + 1);
        join_all(together.iter().map(|plan| play_turn(stage, session, plan))).await;
        turns = rest;
    }
}

async fn play_turn(stage: &Arc<Stage>, session: &Session, plan: &TurnPlan) {
    sleep(Duration::from_millis(plan.gap_ms)).await;
    stage.shaker.nudge().await;
    let turn = session.turn();
    let calls = stage.calls(&plan.batch);
    let awaited = Awaited::new(stage, plan.batch.key());
    let dispatch = async {
        match plan.how {
            How::Plain => session.dispatch(calls).await,
            How::Runs => turn.dispatch(calls).await,
            How::OneByOne => turn.dispatch_sequential(calls).await,
            How::Streamed(gap_ms) => nest::stream(session, calls, gap_ms).await,
        }
    };
    let mut dispatch = stage.shaker.shake(Box::pin(dispatch));
    tokio::select! {
        biased;
        outcomes = &mut dispatch => return awaited.are(shapes(&outcomes)),
        () = cut(plan.cut) => {}
    }
    let by_drop = matches!(plan.cut, Some(Cut { by: CutBy::Drop, .. }));
    if by_drop || matches!(plan.how, How::Plain | How::Streamed(_)) {
        // Told of before it happens: what is dropped ends calls there and then.
        drop(awaited);
        drop(dispatch);
        return;
    }
    if let Some(batch) = plan.batch.key() {
        stage.journal.note(Fact::CancelTurn(batch));
    }
    turn.cancel();
    awaited.are(shapes(&dispatch.await));
}

fn shapes(outcomes: &[Outcome]) -> Vec<Shape> {
    outcomes.iter().map(Shape::of).collect()
}

async fn cut(cut: Option<Cut>) {
    match cut {
        Some(cut) => sleep(Duration::from_millis(cut.after_ms)).await,
        None => pending().await,
    }
}

/// Does what an operator does. An engine that is being shut down answers that its pools are away.
pub(in crate::sim) async fn play_order(
    stage: &Arc<Stage>,
    engine: &Engine,
    sessions: &[Session],
    order: Order,
) {
    sleep(Duration::from_millis(order.at_ms)).await;
    stage.shaker.nudge().await;
    let note = |fact| stage.journal.note(fact);
    match order.act {
        Act::Resize(class, width) => {
            note(Fact::Resizing(class, width));
            let _ = engine.resize(class, width).await;
            note(Fact::Resized(class, width));
        }
        Act::Pause(class, ms) => {
            note(Fact::Pausing(class, true));
            let _ = engine.pause(class).await;
            sleep(Duration::from_millis(ms)).await;
            note(Fact::Pausing(class, false));
            let _ = engine.resume(class).await;
        }
        Act::CancelSession(at) => {
            if let Some(session) = sessions.get(at) {
                note(Fact::CancelSession(at));
                session.cancel();
            }
        }
        Act::Shutdown(finish, grace) => shut_down(stage, engine, finish, grace).await,
    }
}

/// Shuts the engine down.
pub(in crate::sim) async fn shut_down(stage: &Arc<Stage>, engine: &Engine, finish: u64, grace: u64) {
    stage.journal.note(Fact::ShuttingDown(finish, grace));
    let drain = Drain::default().finish(Duration::from_millis(finish)).grace(Duration::from_millis(grace));
    engine.shutdown(drain).await;
    stage.journal.note(Fact::ShutDown);
}
