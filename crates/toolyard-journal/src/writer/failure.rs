//! Why a group is not committed, and whether it may be tried again (JR-12).

use rusqlite::{Error, ErrorCode, ffi};
use toolyard::RecordError;

pub(super) enum Failure {
    /// It may be committed later.
    Passing(RecordError),
    /// It never is.
    Final(RecordError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let is_passing = is_passing(&error);
        let what = format!("the journal cannot be written ({error})");
        let record = RecordError::new(what).caused_by(error);
        if is_passing { Self::Passing(record) } else { Self::Final(record) }
    }
}

/// Whether the same group may be tried again.
///
/// A write that fails before the commit is rolled back, and the next attempt writes the same pages of SQLite's log anew: so
/// with a full disk, with a quota that is used up and with a file that may not grow, which SQLite tells as a write that
/// failed, or as shared memory that cannot grow. A sync that fails is another matter: the system may have let go of what it
/// was to write, and the next sync may succeed without it.
fn is_passing(error: &Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull};
    let is_short = matches!(
        error.sqlite_extended_error_code(),
        Some(ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE)
    );
    is_short || matches!(error.sqlite_error_code(), Some(DiskFull | DatabaseBusy | DatabaseLocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JR-12: what fails before anything was synced is tried again; a failed sync, and what nobody knows the state of, never.
    #[test]
    fn only_what_was_rolled_back_is_tried_again() {
        let passes = |code| is_passing(&Error::SqliteFailure(ffi::Error::new(code), None));
        for passing in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_SHMSIZE,
        ] {
            assert!(passes(passing), "{passing}");
        }
        for last in [
            ffi::SQLITE_IOERR,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_DIR_FSYNC,
            ffi::SQLITE_IOERR_CLOSE,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_SHORT_READ,
            ffi::SQLITE_IOERR_TRUNCATE,
            ffi::SQLITE_IOERR_SHMMAP,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_READONLY,
        ] {
            assert!(!passes(last), "{last}");
        }
    }
}
