//! Agents that outlive the call whose handler made them.

use super::{Agent, Stage};
use crate::sim::{journal::Fact, program::ForkPlan};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;
use toolyard::Session;

/// How often is checked whether the call has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Plays an agent as soon as the call of its handler has ended, unless an earlier attempt of the handler has left it
/// behind too.
pub(super) fn leave_behind(stage: &Arc<Stage>, handler: u32, session: Session, plan: &ForkPlan) {
    if !stage.left_behind().insert(plan.number) {
        return;
    }
    let (plan, playing) = (plan.clone(), Playing::new(&stage.busy));
    let stage = stage.clone();
    let shaker = stage.shaker.clone();
    let played = Box::pin(async move {
        let _playing = playing;
        while !stage.is_over(handler) {
            sleep(POLL_INTERVAL).await;
        }
        // A handler that went on for other calls may have stopped a moment before the engine learns of it.
        sleep(POLL_INTERVAL).await;
        stage.journal.note(Fact::PlayedLate(plan.number));
        let agent = Agent { stage: &stage, session: &session, handler: None, fork: Some(plan.number) };
        agent.play(&plan.turns, &plan.forks).await;
    });
    tokio::spawn(shaker.shake(played));
}

/// Keeps the run from ending while an agent is still to be played.
struct Playing(Arc<AtomicU64>);

impl Playing {
    fn new(busy: &Arc<AtomicU64>) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self(busy.clone())
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
