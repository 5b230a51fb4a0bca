//! A turn of an earlier life, as it is served in this one.

use super::format_of;
use crate::{
    book::{Phase, Served, ServedTurn},
    routes::turns::{GoesOn, finish_or_suspend},
    wall,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use toolyard::{ResumeError, Session};
use toolyard_wire::{Format, Message};

/// A turn that is taken up.
pub(super) struct TakenUp {
    turn: Arc<ServedTurn>,
    running: GoesOn,
}

impl TakenUp {
    /// Takes up a turn of this agent, and shows it among those of its session.
    ///
    /// One whose response was streamed, and did not come whole, may lack calls: what has come runs, and the rest when the
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
        let shown = match resumed.began() {
            Some(began) => shown.begun_at(wall::ms_of(began)),
            None => shown,
        };
        let turn = Arc::new(shown);
        served.turns.add_past(turn.clone());
        // Looked at afterwards: a session that begins to close after this reaches it itself.
        if served.is_closing() {
            turn.cancel();
            turn.let_go();
        }
        let (served, ended) = (served.clone(), turn.clone());
        let running = GoesOn::new(async move {
            let ended_before = resumed.ended().map(wall::ms_of);
            let outcomes = resumed.finish().await.pop().unwrap_or_default();
            match (phase, ended_before) {
                (Phase::Broken, _) => ended.settle(),
                // Nothing has happened in the session now.
                (_, Some(ended_ms)) => {
                    ended.end(Message::new(format, calls), outcomes, ended_ms);
                    served.turns.ended(&ended);
                }
                _ => finish_or_suspend(&served, &ended, Message::new(format, calls), outcomes),
            }
        });
        Ok(Self { turn, running })
    }

    /// Cancels it, or one of its calls, before anything of it starts.
    pub(super) fn cancel(&self, call: Option<u32>) {
        match call {
            None => drop(self.turn.cancel()),
            Some(call) if (call as usize) < self.turn.calls() => self.turn.clone().cancel_call(call),
            Some(_) => {}
        }
    }

    /// It goes on, whether or not anybody waits for it. Returns it once it has ended, or this has passed.
    pub(super) async fn goes_on(self, within: Duration) -> Arc<ServedTurn> {
        let _ = timeout(within, self.running).await;
        self.turn
    }
}
