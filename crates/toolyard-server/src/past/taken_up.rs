//! A turn of an earlier life, as it is served in this one.

use super::format_of;
use crate::{
    book::{Phase, Served, ServedTurn},
    routes::turns::{GoesOn, finish_or_suspend},
};
use std::sync::Arc;
use toolyard::{ResumeError, Session};
use toolyard_wire::{Format, Message};

/// A turn that is taken up.
pub(super) struct TakenUp {
    pub(super) turn: Arc<ServedTurn>,
    running: GoesOn,
}

impl TakenUp {
    /// Takes up a turn of this agent, and shows it among those of its session.
    ///
    /// One whose response was streamed, and was not sent whole since, may lack calls: what has come runs, and the rest when the
    /// response is sent whole (CL-8).
    pub(super) async fn of(served: &Arc<Served>, agent: &Session, turn: u64) -> Result<Self, ResumeError> {
        let resumed = agent.resume(turn).await?;
        let request = resumed.requests().last().flatten().map(str::to_owned);
        let calls = resumed.batches().last().unwrap_or_default().to_vec();
        let (phase, format) = match &request {
            Some(request) => (Phase::Running, format_of(request)),
            None => (Phase::Broken, Format::Neutral),
        };
        let shown =
            ServedTurn::new(resumed.turn().clone(), agent.agent().clone(), phase, format, calls.len());
        let turn = Arc::new(shown);
        served.turns.add_past(turn.clone());
        let (served, ended) = (served.clone(), turn.clone());
        let running = GoesOn::new(async move {
            let outcomes = resumed.finish().await.pop().unwrap_or_default();
            match phase {
                Phase::Broken => ended.settle(),
                _ => finish_or_suspend(&served, &ended, Message::new(format, calls), outcomes),
            }
        });
        Ok(Self { turn, running })
    }

    /// It goes on, whether or not anybody waits for it.
    pub(super) fn goes_on(self) {
        drop(self.running);
    }

    /// The same, once it has ended or this has passed.
    pub(super) async fn goes_on_after(self, within: std::time::Duration) -> Arc<ServedTurn> {
        let _ = tokio::time::timeout(within, self.running).await;
        self.turn
    }
}
