//! The journal: what an engine must not lose, in one SQLite file (JR-1 to JR-4, JR-7, JR-12, JR-13).
//!
//! ```text
//!   engine ─ Recorder ─► records ─► queue, bounded ─► writer ─ one transaction for all that waits ─► FILE, FILE-wal
//!      ▲                                                │                                              ▲
//!      └──────────── durable, or the error ◄────────────┘             Reader, SQL, verify: beside it ──┘
//! ```
//!
//! [`Journal`] is the [`Recorder`](toolyard::Recorder) that writes it, [`Reader`] reads it, also while it is written and
//! after a crash; [`verify`] says whether it is whole, [`prune`] removes what has ended. Its tables are the crate's own;
//! the views `sessions`, `turns`, `calls` and others are for SQL ([`VIEWS`]).
//!
//! **What it keeps is kept as it came**: arguments, answers, keys, with every secret in them, because calls have to run
//! again with exactly these. The file is readable by its owner alone; keep it like the secrets.
//!
//! **Do not open or copy the file with `std::fs` in the process that writes it** (JR-4): on Unix, closing a descriptor of a
//! file drops every lock that the process has on it, so that another process may remove the log that is being written. Use
//! [`Reader`], a connection of SQLite, or another process.
//!
//! # Features
//! Without a feature the crate is empty. `bundled` builds a SQLite of its own, which takes a C compiler; `sqlite` uses
//! the system's.
#![cfg_attr(not(feature = "sqlite"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "sqlite")]
mod apply;
#[cfg(feature = "sqlite")]
mod epoch;
#[cfg(feature = "sqlite")]
mod error;
#[cfg(feature = "sqlite")]
mod expire;
#[cfg(feature = "sqlite")]
mod file;
#[cfg(feature = "sqlite")]
mod forget;
#[cfg(feature = "sqlite")]
mod identity;
#[cfg(feature = "sqlite")]
mod journal;
#[cfg(feature = "sqlite")]
mod listing;
#[cfg(feature = "sqlite")]
mod lock;
#[cfg(feature = "sqlite")]
mod op;
#[cfg(feature = "sqlite")]
mod past;
#[cfg(feature = "sqlite")]
mod prune;
#[cfg(feature = "sqlite")]
mod queue;
#[cfg(feature = "sqlite")]
mod reader;
#[cfg(feature = "sqlite")]
mod recorder;
#[cfg(feature = "sqlite")]
mod schema;
#[cfg(feature = "sqlite")]
mod settings;
#[cfg(feature = "sqlite")]
mod stamp;
#[cfg(feature = "sqlite")]
mod verify;
#[cfg(feature = "sqlite")]
mod writer;

#[cfg(feature = "sqlite")]
pub use {
    error::{Holder, JournalError},
    journal::Journal,
    prune::{Keep, Pruned, prune},
    queue::{JournalState, JournalStatus},
    reader::{
        AnswerRow, AttemptRow, AttemptRowEnd, BatchRow, CallRow, CallState, CancelRow, EndRow, EpochRow,
        ForkRow, Gap, OpenQuestion, OpenTurn, QuestionRow, Reader, SessionRow, StartedCall, Turn, TurnRow,
        Verdict, Which,
    },
    schema::VIEWS,
    settings::{Durability, Settings},
    verify::{Finding, Report, verify},
};
