//! What must be durable, and who is asked for it (SM-4).
//!
//! ```text
//!   session, fork ─► batch, pushed, closed ─► question ─► answer ─► attempt ─► attempt_ended ─► attempt ─► ended
//!                                             │ shown after,       │ starts after                        │ given after,
//!                                             │ it counts after    │ with its permits                    │ permits are back
//! ```
//!
//! The engine hands each record over as something that it borrows, and goes on when that is durable. It calls a recorder
//! with none of its locks held; only those who open the same session wait for each other.

mod memory;
mod past;
mod past_session;
mod recording;
mod records;

pub use memory::{MemoryPlace, MemoryRecord, MemoryRecorder, Pace};
pub use past::{
    OpenTurn, Past, PastAttempt, PastBatch, PastCall, PastEnd, PastKey, PastKeyEnd, PastKeyState,
    PastQuestion, PastTurn,
};
pub use past_session::{PastAgent, PastRequest, PastSession};
pub(crate) use recording::{Foundation, Pending, Recording};
pub use records::{
    AnswerRecord, AttemptEnd, AttemptRecord, BatchRecord, CallPlace, CancelRecord, Cancelled, CloseRecord,
    EndRecord, ForkRecord, PushRecord, QuestionRecord, Recovered, ResumeRecord, SessionRecord, SessionTerms,
    VerdictRecord,
};

use futures::{FutureExt, future::BoxFuture};
use std::{error::Error, fmt, future::Future, sync::Arc};
use toolyard_core::{SessionId, event::Epoch};

/// When a record is durable.
#[must_use = "whoever gives a record has to wait for it, or to say that it need not"]
pub enum Durable {
    /// Nothing has to wait for it.
    Nothing,
    /// When this resolves with `Ok`. The record is taken whether or not the future is polled, and dropping the future
    /// withdraws nothing.
    When(BoxFuture<'static, Result<(), RecordError>>),
}

impl Durable {
    /// When this future resolves.
    pub fn when(durable: impl Future<Output = Result<(), RecordError>> + Send + 'static) -> Self {
        Self::When(durable.boxed())
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::When(_) => "When",
        })
    }
}

/// Why a record is not durable.
#[derive(Debug, Clone)]
pub struct RecordError {
    why: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl RecordError {
    /// An error with this message: a lower-case fragment, for logs.
    pub fn new(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into(), source: None }
    }

    /// The error for a record that is not durable in time.
    pub(crate) fn late() -> Self {
        Self::new("the recorder takes too long")
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for RecordError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Makes durable what must outlive a crash, and says when it is (SM-4). Every method has a default that records nothing
/// and lets nothing wait.
///
/// - **Order.** The records of one call come in the order of the picture above; what belongs to a batch comes after the
///   batch, and a batch after its session and its forks. Records of different calls may be given side by side, from
///   several threads. Of what one thread gives, a later record must not be durable before an earlier one.
/// - **Who waits.** A recorder decides by what it is given: a read that has no key need not wait for a disk.
///   [`attempt`](Self::attempt) is waited for with the permits of the call, for at most 30 s; then the call ends
///   `internal`, reason `journal`, not started. [`ended`](Self::ended) is waited for once the permits are back, for at
///   most 30 s; then the result is given with [`Outcome::recorded`](toolyard_core::Outcome::recorded) `false`. A call
///   that has not run ends where nothing can wait: the reply of its batch waits for its record, unless a handler has
///   dispatched the batch, whose own call comes after it. Nobody waits for what the drop of a task records.
/// - **Failure.** A future that resolves with an error, a panic and a record that is late are the same to a call. Calls
///   that need not wait go on.
/// - **Calls from anywhere.** The methods are called on the tasks of calls and on those of callers, with no lock of the
///   engine held, except that whoever opens a session waits while another opens it and its record is being given. They
///   should be fast: to give a record to a writer is, to write it is not. They must not call the
///   engine, a session or a turn.
///
/// # Examples
/// A recorder in memory, and what it has when a call has ended:
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Call, Engine, MemoryRecord, MemoryRecorder, ToolContext, ToolSpec, tool_fn};
/// let save = tool_fn(ToolSpec::write("save"), |(): (), _: ToolContext| async { Ok("saved") });
/// let recorder = MemoryRecorder::default();
/// let confirmations = toolyard::Confirmations::auto();
/// let engine = Engine::builder().tool(save).confirmations(confirmations).recorder(recorder.clone());
/// let engine = engine.build().await.unwrap();
/// engine.session("demo").call(Call::new("call_1", "save", "{}")).await;
/// let kinds: Vec<_> = recorder.durable().iter().map(MemoryRecord::kind).collect();
/// assert_eq!(kinds, ["session", "batch", "attempt", "ended"]);
/// # }
/// ```
pub trait Recorder: Send + Sync {
    /// Whether another life of the engine can go on from what this records. If so, a drain suspends what it would end
    /// otherwise (SM-10).
    fn outlives_engine(&self) -> bool {
        false
    }

    /// Whether [`attempt`](Self::attempt) and [`attempt_ended`](Self::attempt_ended) are to be given the attempts of calls that
    /// only read, have no key and spawn no sub-agents ([`AttemptRecord::is_of_plain_read`]). Asked ahead of each of them, and
    /// more often: a recorder that does nothing with them makes these calls cheaper by saying so, and should look at no more
    /// than a flag for it. What the end of such a call has let start may then run on its task, and its timeout counts while
    /// [`ended`](Self::ended) is called.
    fn needs_attempts_of_reads(&self) -> bool {
        true
    }

    /// Why records are not made durable at present, if they are not: a full disk, for example (JR-12). Whoever serves an engine
    /// tells of it.
    fn fault(&self) -> Option<Arc<str>> {
        None
    }

    /// An engine begins its life with this recorder. The first call.
    fn begin(&self, _epoch: Epoch) {}

    /// What is known of a session's name. Asked before a session of that name is opened that may have been open before,
    /// on the task of whoever opens it: it may read a file, and should take milliseconds. What was given earlier in this
    /// life is known too.
    ///
    /// # Errors
    /// [`RecordError`], if it cannot be read. The session then takes no calls.
    fn past(&self, _session: &SessionId) -> Result<Past, RecordError> {
        Ok(Past::default())
    }

    /// The turns that earlier lives of the engine have left open, the oldest first.
    ///
    /// # Errors
    /// [`RecordError`], if they cannot be read.
    fn open_turns(&self) -> Result<Vec<OpenTurn>, RecordError> {
        Ok(Vec::new())
    }

    /// The earlier lives of the engine, the oldest first, as far as anything is known of them.
    ///
    /// # Errors
    /// [`RecordError`], if they cannot be read.
    fn past_epochs(&self) -> Result<Vec<Epoch>, RecordError> {
        Ok(Vec::new())
    }

    /// The session that had this name, as it was opened last, in this life of the engine or an earlier one; `None` if none had.
    ///
    /// # Errors
    /// [`RecordError`], if it cannot be read.
    fn past_session(&self, _session: &SessionId) -> Result<Option<PastSession>, RecordError> {
        Ok(None)
    }

    /// The sessions that nobody has cancelled as a whole, each as it was opened last, in this life of the engine or an earlier
    /// one.
    ///
    /// # Errors
    /// [`RecordError`], if they cannot be read.
    fn past_sessions(&self) -> Result<Vec<PastSession>, RecordError> {
        Ok(Vec::new())
    }

    /// What a request with this key ([`Batch::of_request`](toolyard_core::Batch::of_request)) has brought to a session, in this
    /// life of the engine or an earlier one: of several the last. A batch of which every call was refused because the engine
    /// was shutting down has brought nothing.
    ///
    /// # Errors
    /// [`RecordError`], if it cannot be read.
    fn past_request(&self, _session: &SessionId, _request: &str) -> Result<Option<PastRequest>, RecordError> {
        Ok(None)
    }

    /// A turn of a session, open or not; `None` if there is none of this number.
    ///
    /// # Errors
    /// [`RecordError`], if it cannot be read.
    fn turn(&self, _session: &SessionId, _turn: u64) -> Result<Option<PastTurn>, RecordError> {
        Ok(None)
    }

    /// A turn that an earlier life of the engine has left open is taken up in this one. Its batches belong to the session
    /// that is open now, with their numbers; the given calls have ended; what handlers had dispatched, and what agents had
    /// left open that nobody has named, has ended with whoever made it. All this at once, before anything of it starts.
    fn resumed(&self, _record: &ResumeRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// A session is opened.
    fn session(&self, _record: &SessionRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// A sub-agent is made.
    fn fork(&self, _record: &ForkRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// A batch has arrived, with the request of its caller, or is opened for calls to come. No attempt of it that waits
    /// for its own record starts before this one is durable.
    fn batch(&self, _record: &BatchRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// Further calls of an open batch are taken.
    fn pushed(&self, _record: &PushRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// An open batch has all its calls. Its caller gets the results when this is durable.
    fn closed(&self, _record: &CloseRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// A question is to be asked, or asked anew about what would run now. It is shown when this is durable.
    fn question(&self, _record: &QuestionRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// A question is answered. The answer counts when this is durable.
    fn answer(&self, _record: &AnswerRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// A call is about to be started, or to be started again: before its handler, with its permits.
    fn attempt(&self, _record: &AttemptRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// An attempt has ended that is not the end of its call: another follows, which waits for this; or its caller has
    /// left, and other calls of its key wait for its result, which they are given when this is durable.
    fn attempt_ended(&self, _record: &AttemptEnd<'_>) -> Durable {
        Durable::Nothing
    }

    /// A call has its result.
    fn ended(&self, _record: &EndRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// Calls are cancelled. The cancel takes effect at once; [`Session::recorded`](crate::session::Session::recorded)
    /// says when this is durable.
    fn cancelled(&self, _record: &CancelRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// It was found out what became of a call that an earlier life of the engine has left open. Nobody acts on it before
    /// this is durable.
    fn verdict(&self, _record: &VerdictRecord<'_>) -> Durable {
        Durable::Nothing
    }

    /// When all that was given so far is durable. A drain waits for it, for at most 10 s (SC-8).
    fn flush(&self) -> Durable {
        Durable::Nothing
    }
}
