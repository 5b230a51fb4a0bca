//! State that only few batches need: waiting calls with a time limit, questions, records, followers. It has its own allocation, so
//! that making a batch, which for many is one call, has little to write.

use crate::call::{alarms::Alarms, before::Before, ids::Ids, records::BatchRecords};
use futures::{channel::mpsc, future::AbortHandle};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::OnceLock};

/// The part of a batch's state that few batches need. An `E` tells of the end of a call.
pub(super) struct BatchRare<E> {
    /// The time limits of waiting calls.
    pub(super) alarms: Alarms,
    /// Pending questions to the approver, by the place of their call; a batch that stops withdraws them.
    pub(super) questions: Mutex<BTreeMap<u32, AbortHandle>>,
    /// What it has left with the recorder, if there is one.
    pub(super) records: OnceLock<BatchRecords>,
    /// Who is told of each end, if anybody is: set before any call can end.
    pub(super) ends: OnceLock<mpsc::UnboundedSender<E>>,
    pub(super) ids: Ids,
    /// What an earlier life of the engine has done for its calls, if it has left the batch open: set before any call begins.
    pub(super) before: OnceLock<Box<[Before]>>,
}

impl<E> Default for BatchRare<E> {
    fn default() -> Self {
        Self {
            alarms: Alarms::default(),
            questions: Mutex::default(),
            records: OnceLock::new(),
            ends: OnceLock::new(),
            ids: Ids::default(),
            before: OnceLock::new(),
        }
    }
}
