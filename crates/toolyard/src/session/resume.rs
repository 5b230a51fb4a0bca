//! Taking up turns that an earlier life of the engine has left open (JR-5, JR-8).
//!
//! ```text
//!   Engine::open_turns ─► Session::resume ─► ResumedTurn::finish
//!                           │ asks tools what became of calls, records it      │ runs what is left, in order
//!                           └ records that the turn is taken up                └ results: of all its calls
//! ```

mod sort;

use super::{Session, Turn};
use crate::{
    batch::TakenUp,
    call::{SessionCore, Stop},
    config::RECORD_WAIT,
    record::{Foundation, PastRequest, PastTurn, RecordError, Recording, ResumeRecord},
};
use futures::future::join_all;
use sort::Sorted;
use std::{fmt, sync::Arc, time::SystemTime};
use toolyard_core::{AgentPath, Batch, Call, Outcome};

/// Why a turn is not resumed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The engine has no recorder that outlives it.
    #[error("nothing outlives this engine: build it with a journal as its recorder")]
    NoRecorder,
    /// The session has no turn of this number.
    #[error("this session has no turn {turn}: look at what is open with Engine::open_turns")]
    Unknown {
        /// The number.
        turn: u64,
    },
    /// The turn is that of another agent of the session.
    #[error("turn {turn} is one of the agent {agent}: resume it there")]
    OtherAgent {
        /// The number.
        turn: u64,
        /// The agent.
        agent: AgentPath,
    },
    /// The turn was begun, or is already resumed, in this life of the engine.
    #[error("turn {turn} was not left open by an earlier life of the engine, or has been resumed already")]
    InThisLife {
        /// The number.
        turn: u64,
    },
    /// A handler asks. What it dispatches belongs to its own call.
    #[error("a handler cannot resume a turn: it would belong to its own call")]
    InsideCall,
    /// What the recorder has cannot be read.
    #[error("what was recorded of turn {turn} cannot be read")]
    Unreadable {
        /// The number.
        turn: u64,
        /// Why.
        source: RecordError,
    },
    /// It could not be recorded that the turn is taken up: nothing of it has started.
    #[error("that turn {turn} is taken up could not be recorded, so nothing of it was started")]
    Unrecorded {
        /// The number.
        turn: u64,
        /// Why.
        source: RecordError,
    },
}

/// A turn that is taken up from an earlier life of the engine. Nothing of it runs before [`finish`](Self::finish).
pub struct ResumedTurn {
    turn: Arc<Turn>,
    began: Option<SystemTime>,
    ended: Option<SystemTime>,
    batches: Vec<ResumedBatch>,
}

/// A batch of such a turn.
struct ResumedBatch {
    request: Option<Arc<str>>,
    is_sequential: bool,
    batch: Batch,
    taken_up: TakenUp,
}

impl ResumedTurn {
    /// The turn, by which it can be cancelled.
    pub fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    /// When it began, in the life of the engine in which it came; `None` if the recorder does not know.
    pub fn began(&self) -> Option<SystemTime> {
        self.began
    }

    /// When it ended, if that was before it was taken up, and the recorder knows.
    pub fn ended(&self) -> Option<SystemTime> {
        self.ended
    }

    /// For each of its batches the key of the request that has brought it, if it had one.
    pub fn requests(&self) -> impl Iterator<Item = Option<&str>> {
        self.batches.iter().map(|batch| batch.request.as_deref())
    }

    /// The calls of each of its batches, in the order in which they came.
    pub fn batches(&self) -> impl Iterator<Item = &[Call]> {
        self.batches.iter().map(|batch| batch.batch.calls())
    }

    /// The calls of all its batches, in the order in which they came.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.batches.iter().flat_map(|batch| batch.batch.calls())
    }

    /// Goes on with the turn. Returns the results of each batch, in the order in which the batches came; each has one result
    /// per call, in call order. Batches run side by side, as they did.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the batches, like [`Turn::dispatch`].
    pub async fn finish(self) -> Vec<Vec<Outcome>> {
        let Self { turn, batches, .. } = self;
        join_all(batches.into_iter().map(|ResumedBatch { is_sequential, batch, taken_up, .. }| {
            turn.take_up(batch, is_sequential, taken_up)
        }))
        .await
    }
}

impl fmt::Debug for ResumedTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests: Vec<_> = self.requests().collect();
        f.debug_struct("ResumedTurn").field("turn", &self.turn).field("requests", &requests).finish()
    }
}

impl Session {
    /// What a request with this key ([`Batch::of_request`]) has brought to this session, in this life of the engine or an
    /// earlier one: of several the last. `None` if there is none, and without a recorder that outlives the engine. It may read
    /// a file.
    ///
    /// # Errors
    /// [`RecordError`], if it cannot be read.
    pub fn past_request(&self, request: &str) -> Result<Option<PastRequest>, RecordError> {
        match &self.core.engine.recorder {
            Some(recording) => recording.read(|recorder| recorder.past_request(&self.core.id, request)),
            None => Ok(None),
        }
    }

    /// Takes up a turn that an earlier life of the engine has left open, by a crash or a drain (JR-8). What had ended has
    /// its result as it was; what had not started goes through the gate as it is now, and runs, in order; of a call that was
    /// running, its tool is [asked](toolyard_core::Tool::reconcile) what became of it, unless it may run again. A turn that
    /// has ended has its results again.
    ///
    /// Resume it under the name, and with the settings, that its session had. Nothing of it runs before
    /// [`ResumedTurn::finish`].
    ///
    /// # Errors
    /// [`ResumeError`]: nothing of the turn has started.
    ///
    /// # Cancel safety
    /// If the future is dropped, the turn can be resumed again, unless it is recorded by then that it is taken up: then, and
    /// if a [`ResumedTurn`] is dropped, the next life of the engine can resume it.
    pub async fn resume(&self, turn: u64) -> Result<ResumedTurn, ResumeError> {
        let core = &self.core;
        let recording = core.engine.recorder.as_ref().filter(|recording| recording.outlives_engine());
        let recording = recording.ok_or(ResumeError::NoRecorder)?;
        if !matches!(core.caller_call(), Ok(None)) {
            return Err(ResumeError::InsideCall);
        }
        let past = recording.read(|recorder| recorder.turn(&core.id, turn));
        let past = past.map_err(|source| ResumeError::Unreadable { turn, source })?;
        let past = past.ok_or(ResumeError::Unknown { turn })?;
        check(core, &past)?;
        let (began, ended) = (past.began, past.ended);
        let (is_cancelled, latest) = (past.is_cancelled, past.batches.last().map(|batch| batch.batch));
        let claim = Claim::of(core, turn).ok_or(ResumeError::InThisLife { turn })?;
        let sorted = sort::sort(core, past).await;
        let sorted = sorted.map_err(|source| ResumeError::Unrecorded { turn, source })?;
        let foundation = record(core, recording, turn, &sorted).await?;
        claim.keep();
        let batches = sorted.into_batches(&foundation, core.engine.on_interrupted);
        let turn = Arc::new(Turn::taken_up(core.clone(), turn, is_cancelled, latest));
        Ok(ResumedTurn { turn, began, ended, batches })
    }
}

/// A turn that is being taken up: nobody else does so meanwhile. If it comes to nothing, somebody may try again.
struct Claim<'a> {
    session: &'a SessionCore,
    turn: Option<u64>,
}

impl<'a> Claim<'a> {
    fn of(session: &'a SessionCore, turn: u64) -> Option<Self> {
        session.takes_up(turn).then_some(Self { session, turn: Some(turn) })
    }

    fn keep(mut self) {
        self.turn = None;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.turn {
            self.session.gives_up(turn);
        }
    }
}

/// Checks that the turn is one that this agent may take up.
fn check(core: &SessionCore, past: &PastTurn) -> Result<(), ResumeError> {
    let turn = past.turn;
    if core.stopped() == Some(Stop::Unread) {
        let source = RecordError::new("what its session has done before could not be read");
        return Err(ResumeError::Unreadable { turn, source });
    }
    if past.agent != core.path {
        return Err(ResumeError::OtherAgent { turn, agent: past.agent.clone() });
    }
    match past.epoch == Some(core.engine.epoch) {
        true => Err(ResumeError::InThisLife { turn }),
        false => Ok(()),
    }
}

/// Records that the turn is taken up, and what has ended with that. Returns what its calls build on.
async fn record(
    core: &SessionCore,
    recording: &Recording,
    turn: u64,
    sorted: &Sorted,
) -> Result<Foundation, ResumeError> {
    if !sorted.is_open() {
        return Ok(core.foundation());
    }
    let record =
        ResumeRecord { session: &core.id, agent: &core.path, turn, ended: sorted.ended(core).collect() };
    let foundation = core.foundation().and(recording.give(|recorder| recorder.resumed(&record)));
    drop(record);
    let durable = core.engine.tasks.timeout(RECORD_WAIT, foundation.clone().durable()).await;
    let durable = durable.unwrap_or_else(|| Err(RecordError::late()));
    durable.map_err(|source| ResumeError::Unrecorded { turn, source })?;
    sorted.settle_keys(core);
    Ok(foundation)
}
