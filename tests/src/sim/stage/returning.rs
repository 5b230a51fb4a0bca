//! Callers that come back after the end of the engine they had sent a batch to (JR-8).

use super::{Agent, Stage, life::Life, turns::cut};
use crate::sim::{
    journal::{Fact, ResultView},
    program::{Cut, CutBy, TurnPlan, call_id},
};
use std::sync::Arc;
use toolyard::{Call, Outcome, Reason, ResumedTurn, Session};

/// A result that was asked for again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultAgain {
    /// The result.
    pub view: ResultView,
    /// The reason of its error.
    pub reason: Option<Reason>,
}

/// Asks for the results of a batch that was sent to an earlier life. Returns whether there is nothing more to do: a batch
/// that no record tells of is sent as ever.
pub(super) async fn ask_again(agent: Agent<'_>, life: &Life, plan: &TurnPlan, batch: u32) -> bool {
    let Agent { stage, session, .. } = agent;
    let note = |fact| stage.journal.note(fact);
    let Some((path, turn)) = life.ledger().turn_of(session.id(), &call_id(batch)) else {
        note(Fact::Unknown(batch));
        return false;
    };
    if *path != *session.agent().as_str() {
        // It was that of an agent that nobody has named, and ends with a turn of an agent above it (JR-10).
        note(Fact::GivenUp(batch));
        return true;
    }
    match session.resume(turn).await {
        Ok(resumed) => finish(agent, plan, batch, resumed).await,
        Err(error) => note(Fact::NotResumed(batch, format!("{error:?}"))),
    }
    true
}

async fn finish(agent: Agent<'_>, plan: &TurnPlan, batch: u32, resumed: ResumedTurn) {
    let Agent { stage, session, .. } = agent;
    let note = |fact| stage.journal.note(fact);
    let sent: Vec<_> = stage.calls(&plan.batch);
    let is_prefix = |calls: &[&Call]| sent.iter().zip(calls).all(|(sent, known)| sent == *known);
    if !is_prefix(&resumed.calls().collect::<Vec<_>>()) {
        note(Fact::NotResumed(batch, "it has other calls than were sent".to_owned()));
    }
    stage.shaker.nudge().await;
    // What cancels it needs it while it goes on.
    let cancel = Cancel::of(plan.cut);
    if let Cancel::Before = cancel {
        note(Fact::CancelTurn(batch));
        resumed.turn().cancel();
        stage.hold(session, Fact::CancelTurn(batch));
    }
    let mut finished = stage.shaker.shake(Box::pin(resumed.finish()));
    tokio::select! {
        biased;
        outcomes = &mut finished => note(Fact::TakenUp(batch, views(stage, &outcomes.concat()))),
        () = cut(plan.cut.filter(|_| matches!(cancel, Cancel::ByDrop))) => {
            note(Fact::Drop(batch));
            drop(finished);
        }
    }
}

enum Cancel {
    Never,
    Before,
    ByDrop,
}

impl Cancel {
    fn of(plan: Option<Cut>) -> Self {
        match plan {
            Some(Cut { by: CutBy::Cancel, after_ms: 0..=10 }) => Self::Before,
            Some(Cut { by: CutBy::Drop, .. }) => Self::ByDrop,
            _ => Self::Never,
        }
    }
}

fn views(stage: &Stage, outcomes: &[Outcome]) -> Vec<ResultAgain> {
    let reasons = outcomes.iter().map(|outcome| outcome.error().and_then(|error| error.reason));
    stage
        .views(outcomes)
        .into_iter()
        .zip(reasons)
        .map(|(view, reason)| ResultAgain { view, reason })
        .collect()
}

impl Stage {
    /// Waits until a cancel is acknowledged, in a run of several lives.
    pub(super) fn hold(self: &Arc<Self>, session: &Session, cancel: Fact) {
        if self.life.is_none() {
            return;
        }
        let (stage, session) = (self.clone(), session.clone());
        tokio::spawn(async move {
            if session.recorded().await.is_ok() {
                stage.journal.note(Fact::Held(Box::new(cancel)));
            }
        });
    }
}
