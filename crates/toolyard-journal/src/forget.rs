//! Keys that are not to be known any more (JR-10).

use crate::{journal::Journal, op::Op, queue::Faulty};
use toolyard::{Durable, RecordError};

impl Journal {
    /// Releases an idempotency key of the sessions that somebody has named so, in all epochs: its calls count for it no
    /// more, and one that comes with it later is a new one (JR-10). It is in the file when this returns. An engine knows the
    /// keys of the sessions that it has open by itself: forget before its sessions are opened.
    ///
    /// Cancel-safe: the record is taken at once, and dropping the future withdraws nothing.
    ///
    /// # Errors
    /// If no call there has the key, if it was released before, or if one of its calls has not ended: whether that has done
    /// its work is not known. Also if the journal cannot be written.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("agent.journal");
    /// use toolyard_journal::{Journal, Settings};
    /// let journal = Journal::open(&path, Settings::default())?;
    /// let unknown = journal.forget("demo", "order-17").await;
    /// assert!(unknown.is_err(), "nothing has this key yet");
    /// # journal.close()?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn forget(&self, session: &str, key: &str) -> Result<(), RecordError> {
        let bytes = session.len() + key.len();
        let op = Op::Forget { session: session.to_owned(), key: key.to_owned() };
        match self.wait(op, bytes, Faulty::Refused) {
            Durable::When(written) => written.await,
            Durable::Nothing => Ok(()),
        }
    }
}
