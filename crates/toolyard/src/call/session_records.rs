//! What a session has left with the recorder: that it exists, and what it was told (SM-4).

use crate::{
    call::{in_flight::CallRef, records::SessionRecords, session::SessionCore},
    config::RECORD_WAIT,
    record::{
        BatchRecord, CancelRecord, Cancelled, CloseRecord, Durable, ForkRecord, Foundation, Pending,
        RecordError, Recorder, SessionRecord,
    },
};

impl SessionCore {
    /// What its batches build on. Its own record is given here, when it is first asked for: before anything else of it.
    pub(crate) fn foundation(&self) -> Foundation {
        let Some(records) = &self.records else { return Foundation::default() };
        let foundation = records.foundation.get_or_init(|| match self.parent() {
            None => Foundation::default().and(self.give_session(records)),
            Some(parent) => parent.foundation().and(self.give_fork(records, parent)),
        });
        foundation.clone()
    }

    /// Whether a batch that arrives now can be resumed in another life of the engine: its callers can do that, and no
    /// drain has begun (SM-10).
    pub(crate) fn may_be_resumed(&self) -> bool {
        self.records.as_ref().is_some_and(|records| records.is_resumed)
            && !self.engine.is_draining()
            && self.stopped().is_none()
    }

    /// Whether its callers can resume turns in another life of the engine.
    pub(crate) fn is_resumed(&self) -> bool {
        self.records.as_ref().is_some_and(|records| records.is_resumed)
    }

    /// Makes sure that its record is given.
    pub(crate) fn record_opening(&self) {
        if self.records.is_some() {
            drop(self.foundation());
        }
    }

    /// Notes that a turn of an earlier life of the engine is taken up. `false` if it was already.
    pub(crate) fn takes_up(&self, turn: u64) -> bool {
        self.records.as_ref().is_some_and(|records| records.takes_up(turn))
    }

    /// The turn may be taken up after all.
    pub(crate) fn gives_up(&self, turn: u64) {
        if let Some(records) = &self.records {
            records.gives_up(turn);
        }
    }

    fn give_session(&self, records: &SessionRecords) -> Option<Pending> {
        let SessionRecords { terms, is_named, .. } = records;
        let record = SessionRecord { session: &self.id, is_named: *is_named, terms };
        self.give(|recorder| recorder.session(&record))
    }

    fn give_fork(&self, records: &SessionRecords, parent: &Self) -> Option<Pending> {
        let SessionRecords { terms, is_named, .. } = records;
        let made_by = self.made_by().and_then(|call| call.upgrade());
        let record = ForkRecord {
            session: &self.id,
            parent: &parent.path,
            agent: &self.path,
            is_named: *is_named,
            made_by: made_by.as_ref().map(|call| call.at().call_place()),
            terms,
        };
        self.give(|recorder| recorder.fork(&record))
    }

    /// Gives the record of an open batch. Returns what its calls build on.
    pub(crate) fn record_stream(
        &self,
        turn: u64,
        batch: u64,
        is_sequential: bool,
        caller: Option<&Option<CallRef>>,
    ) -> Foundation {
        if self.records.is_none() {
            return Foundation::default();
        }
        let foundation = self.foundation();
        let record = BatchRecord {
            session: &self.id,
            agent: &self.path,
            turn,
            batch,
            request: None,
            parent: caller.and_then(Option::as_ref).map(|call| call.at().call_place()),
            calls: Vec::new(),
            is_open: true,
            is_sequential,
            is_resend: false,
        };
        foundation.and(self.give(|recorder| recorder.batch(&record)))
    }

    /// Gives the record that an open batch has all its calls.
    pub(crate) fn record_closed(
        &self,
        turn: u64,
        batch: u64,
        calls: u32,
        request: Option<&str>,
    ) -> Option<Pending> {
        let record = CloseRecord { session: &self.id, agent: &self.path, turn, batch, calls, request };
        self.give(|recorder| recorder.closed(&record))
    }

    /// Gives the record of a cancel, before it takes effect.
    pub(crate) fn record_cancel(&self, what: Cancelled<'_>) {
        let Some(records) = &self.records else { return };
        let record = CancelRecord { session: &self.id, agent: &self.path, what };
        if let Some(pending) = self.give(|recorder| recorder.cancelled(&record)) {
            records.add_cancel(pending);
        }
    }

    fn give(&self, give: impl FnOnce(&dyn Recorder) -> Durable) -> Option<Pending> {
        self.engine.recorder.as_ref()?.give(give)
    }

    /// Waits until the session and what it was told is durable, for a bounded time.
    pub(crate) async fn recorded(&self) -> Result<(), RecordError> {
        let Some(records) = &self.records else { return Ok(()) };
        let (foundation, cancels) = (self.foundation(), records.cancels());
        let durable = async {
            foundation.durable().await?;
            cancels.durable().await
        };
        let durable = self.engine.tasks.timeout(RECORD_WAIT, durable).await;
        let durable = durable.unwrap_or_else(|| Err(RecordError::late()));
        if durable.is_err() {
            records.forget_failed_cancels();
        }
        durable
    }
}
