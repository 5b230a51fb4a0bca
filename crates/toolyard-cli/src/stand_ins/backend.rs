//! The back-end of calls that something stands in for.

use super::{
    StandIns,
    dice::Dice,
    key::{CallKey, Occurrences},
};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use toolyard::{Backend, Execution, Running, SandboxError, Stopped, ToolContext, ToolError, Work};

/// Answers calls in place of their tools, and leaves the others to the back-end that runs tools.
pub(super) struct StandInBackend {
    stand_ins: StandIns,
    inner: Arc<dyn Backend>,
    occurrences: Occurrences,
}

impl StandInBackend {
    pub(super) fn new(stand_ins: StandIns, inner: Arc<dyn Backend>) -> Self {
        Self { stand_ins, inner, occurrences: Occurrences::default() }
    }

    fn key(&self, cx: &ToolContext) -> CallKey {
        let (arguments, occurrence) = self.occurrences.of(cx);
        let (episode, turn) = self.stand_ins.episodes.get(cx.session(), cx.agent(), cx.turn());
        CallKey { episode, turn, tool: cx.tool().into(), arguments, occurrence }
    }
}

impl Backend for StandInBackend {
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        let cx = &execution.cx;
        let work = if let Some(mock) = self.stand_ins.mocks.get(cx.tool()) {
            let dice = Dice::of(self.stand_ins.seed, &self.key(cx), cx.attempt());
            let (wait, answer) = mock.answer(&dice, execution.args);
            Work::Handler(Box::pin(async move {
                pause(cx, wait).await?;
                answer
            }))
        } else if let Some(replay) = &self.stand_ins.replay {
            let key = self.key(cx);
            Work::Handler(Box::pin(replay.answer(key, cx)))
        } else {
            return self.inner.execute(execution);
        };
        Ok(Running { result: work, stopped: Stopped::WhenDropped })
    }
}

/// Waits, unless the call has to stop.
pub(super) async fn pause(cx: &ToolContext, wait: Duration) -> Result<(), ToolError> {
    if wait.is_zero() {
        return Ok(());
    }
    tokio::select! {
        biased;
        () = cx.cancelled() => Err(ToolError::cancelled("the call was cancelled").no_side_effect()),
        () = sleep(wait) => Ok(()),
    }
}
