//! Questions that events have told of, and that have not been asked yet: an answer may come first.

use parking_lot::Mutex;
use std::{collections::VecDeque, time::Duration};
use tokio::{sync::Notify, time::timeout};
use toolyard::RequestId;

/// How many there are at most. Of more, the oldest is as if no event had told of it.
const ANNOUNCED_MAX: usize = 1024;

/// How long an answer waits for its question. It comes at once, unless its call has ended meanwhile.
const WITHIN: Duration = Duration::from_secs(2);

/// The questions that are about to be asked, oldest first.
#[derive(Debug, Default)]
pub(super) struct Announced {
    ids: Mutex<VecDeque<RequestId>>,
    asked: Notify,
}

impl Announced {
    pub(super) fn add(&self, id: RequestId) {
        let mut ids = self.ids.lock();
        if ids.len() == ANNOUNCED_MAX {
            ids.pop_front();
        }
        ids.push_back(id);
    }

    /// The question is asked, here or elsewhere.
    pub(super) fn remove(&self, id: RequestId) {
        let mut ids = self.ids.lock();
        if let Some(at) = ids.iter().rposition(|other| *other == id) {
            ids.remove(at);
            drop(ids);
            self.asked.notify_waiters();
        }
    }

    /// Waits until a question that an event has told of is asked.
    pub(super) async fn asked(&self, id: RequestId) {
        let asked = async {
            loop {
                // Created before the check, so that what happens in between is not missed.
                let asked = self.asked.notified();
                if !self.ids.lock().contains(&id) {
                    return;
                }
                asked.await;
            }
        };
        // One that is not asked any more is not found either.
        let _ = timeout(WITHIN, asked).await;
    }
}
