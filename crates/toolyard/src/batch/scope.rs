//! A batch as the handlers of its calls see it.

use super::ledger::Phase;
use super::state::BatchState;
use tokio_util::sync::CancellationToken;
use toolyard_core::{AgentPath, Call, CallScope, EventKind, Resources, SessionId};

impl CallScope for BatchState {
    fn session(&self) -> &SessionId {
        &self.session.id
    }

    fn agent(&self) -> &AgentPath {
        &self.session.agent
    }

    fn turn(&self) -> u64 {
        self.turn
    }

    fn batch(&self) -> u64 {
        self.number
    }

    fn call(&self, index: u32) -> &Call {
        self.call(index)
    }

    fn resources(&self) -> &Resources {
        &self.session.resources
    }

    fn cancel_token(&self) -> &CancellationToken {
        self.token()
    }

    /// Streamed output counts as long as its call has not ended.
    fn output_delta(&self, index: u32, attempt: u32, text: &str) {
        let phase = self.slots[index as usize].phase();
        if matches!(*phase, Phase::Started) {
            self.emit(index, Some(attempt), || EventKind::OutputDelta { text: text.to_owned() });
        }
    }
}
