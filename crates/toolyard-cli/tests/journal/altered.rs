//! Journals as if other things had come over them: a start of the machine, a loss of power, time.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};
use toolyard_journal::Reader;
#[cfg(target_os = "linux")]
use {
    toolyard::{
        BatchRecord, Durable, ForkRecord, Past, RecordError, Recorder, SessionId, SessionRecord, event::Epoch,
    },
    toolyard_journal::Journal,
};

/// Replaces these bytes, which the file has, by as many others.
fn replace(file: &Path, these: &[u8], by: &[u8]) {
    assert_eq!(these.len(), by.len());
    let mut bytes = fs::read(file).unwrap();
    let found: Vec<_> =
        (0..=bytes.len() - these.len()).filter(|at| bytes[*at..].starts_with(these)).collect();
    assert_ne!(found, [0; 0], "the file lacks it");
    for at in found {
        bytes[at..at + by.len()].copy_from_slice(by);
    }
    fs::write(file, &bytes).unwrap();
}

/// As if the machine had been started since. Nobody opens the journal any more, and all of it is in its file once its lock is
/// free.
#[cfg(target_os = "linux")]
pub(crate) fn started_since(journal: &Path) {
    fs::File::open(format!("{}.lock", journal.display())).unwrap().lock().unwrap();
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    replace(journal, boot.trim_ascii(), b"00000000-0000-4000-8000-000000000000");
}

/// As if all of its epochs had begun so much earlier. Nobody has the journal open, and all of it is in its file.
pub(crate) fn begun_earlier(journal: &Path, by: Duration) {
    let epochs = Reader::open(journal).unwrap().epochs().unwrap();
    for epoch in epochs {
        let bytes = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            u64::try_from(since.as_millis()).unwrap().to_be_bytes()
        };
        // SQLite has numbers of this size in six bytes, the highest first.
        replace(journal, &bytes(epoch.started)[2..], &bytes(epoch.started - by)[2..]);
    }
}

/// A journal that loses what is recorded of calls behind their arrival, as when the power goes.
#[cfg(target_os = "linux")]
pub(crate) struct LosesStarts(pub(crate) Journal);

#[cfg(target_os = "linux")]
impl Recorder for LosesStarts {
    fn outlives_engine(&self) -> bool {
        self.0.outlives_engine()
    }

    fn needs_attempts_of_reads(&self) -> bool {
        self.0.needs_attempts_of_reads()
    }

    fn begin(&self, epoch: Epoch) {
        self.0.begin(epoch);
    }

    fn past(&self, session: &SessionId) -> Result<Past, RecordError> {
        self.0.past(session)
    }

    fn session(&self, record: &SessionRecord<'_>) -> Durable {
        self.0.session(record)
    }

    fn fork(&self, record: &ForkRecord<'_>) -> Durable {
        self.0.fork(record)
    }

    fn batch(&self, record: &BatchRecord<'_>) -> Durable {
        self.0.batch(record)
    }
}
