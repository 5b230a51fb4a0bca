//! The operator, who reconfigures the engine while agents use it.

use super::Stage;
use crate::sim::{
    journal::Fact,
    program::{Act, Order, call_id},
};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use toolyard::{Drain, Engine, Session};

/// Carries out an order. Errors are ignored: the pools of an engine that is shutting down may already be gone.
pub(in crate::sim) async fn play_order(
    stage: &Arc<Stage>,
    engine: &Engine,
    sessions: &[Session],
    order: Order,
) {
    sleep(Duration::from_millis(order.at_ms)).await;
    stage.shaker.nudge().await;
    if let Some(life) = &stage.life {
        life.does(order);
    }
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
                stage.hold(session, Fact::CancelSession(at));
            }
        }
        Act::CancelCall(root, node) => {
            if let Some(session) = sessions.get(root) {
                note(Fact::CancelCall(node));
                let found = session.cancel_call(&call_id(node));
                note(Fact::CallCancelled(node, found));
                if found {
                    stage.hold(session, Fact::CancelCall(node));
                }
            }
        }
        Act::CancelCalls(at) => {
            if let Some(session) = sessions.get(at) {
                note(Fact::CancelCalls(at));
                session.cancel_calls();
                stage.hold(session, Fact::CancelCalls(at));
            }
        }
        Act::SetPolicy(at) => {
            if let Some(plan) = stage.program.policies.get(at) {
                note(Fact::SetPolicy(at));
                engine.set_policy(super::policy::Planned::new(stage, plan));
            }
        }
        Act::Forget(at) => {
            if let Some(session) = sessions.get(at) {
                note(Fact::Forget(at));
                session.forget_approvals();
            }
        }
        Act::ForceOpen(owner) => {
            note(Fact::Operated(owner));
            engine.force_open(&owner.breaker());
        }
        Act::ForceClosed(owner) => {
            note(Fact::Operated(owner));
            engine.force_closed(&owner.breaker());
        }
        Act::ResetBreaker(owner) => {
            note(Fact::Operated(owner));
            engine.reset_breaker(&owner.breaker());
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
