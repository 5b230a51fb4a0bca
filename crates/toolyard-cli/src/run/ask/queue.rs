//! Decides which question is shown next: the one announced first.
//!
//! ```text
//!   announced ─► waits ─► is current ─► over
//!   (by its event, in the order of the calls; its task may arrive in any order)
//! ```

use parking_lot::Mutex;
use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};
use tokio::{sync::watch, time::sleep};
use toolyard::{Event, EventKind, RequestId};

/// How long a question waits for an earlier one that was announced but has not arrived. After that, the earlier one is
/// taken to be withdrawn.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The queue of questions. Cheap to clone; all clones share it.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct QuestionQueue {
    state: Arc<Mutex<QueueState>>,
    updates: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct QueueState {
    announced: BTreeSet<RequestId>,
    waiting: BTreeSet<RequestId>,
    has_current: bool,
    /// The question announced last.
    last: Option<RequestId>,
}

/// A question's place in the queue. Dropping it leaves the queue.
struct QueuePlace<'a> {
    queue: &'a QuestionQueue,
    id: RequestId,
}

/// The right of one question to be shown. The next one gets it when this is dropped.
#[derive(Debug)]
pub(super) struct CurrentQuestion<'a> {
    queue: &'a QuestionQueue,
}

impl QuestionQueue {
    /// The event sink that announces questions.
    pub(in super::super) fn sink(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let queue = self.clone();
        move |event| {
            // A question that shares another one is not asked itself.
            if let EventKind::ConfirmationRequested(it) = &event.kind
                && it.shares.is_none()
            {
                queue.announce(it.request);
            }
        }
    }

    fn announce(&self, id: RequestId) {
        let mut state = self.state.lock();
        state.announced.insert(id);
        state.last = state.last.max(Some(id));
    }

    /// The question announced last so far.
    pub(super) fn last(&self) -> Option<RequestId> {
        self.state.lock().last
    }

    /// Waits until this question is the one to show.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue.
    pub(super) async fn until_current(&self, id: RequestId) -> CurrentQuestion<'_> {
        let mut updates = self.updates.subscribe();
        let place = QueuePlace::new(self, id);
        let (mut late, mut is_late) = (pin!(sleep(ARRIVAL_TIMEOUT)), false);
        loop {
            updates.borrow_and_update();
            if let Some(current) = place.take() {
                return current;
            }
            tokio::select! {
                biased;
                _ = updates.changed() => {}
                () = &mut late, if !is_late => {
                    is_late = true;
                    self.state.lock().announced.retain(|announced| *announced > id);
                }
            }
        }
    }
}

impl<'a> QueuePlace<'a> {
    fn new(queue: &'a QuestionQueue, id: RequestId) -> Self {
        let mut state = queue.state.lock();
        state.announced.remove(&id);
        // No need to notify: those that waited for this question to arrive now wait for its end.
        state.waiting.insert(id);
        drop(state);
        Self { queue, id }
    }

    /// Makes this question the current one, if it is next.
    fn take(&self) -> Option<CurrentQuestion<'a>> {
        let mut state = self.queue.state.lock();
        let is_next = state.waiting.first() == Some(&self.id)
            && state.announced.first().is_none_or(|announced| *announced > self.id);
        if state.has_current || !is_next {
            return None;
        }
        state.has_current = true;
        Some(CurrentQuestion { queue: self.queue })
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        let frees_another = !state.has_current && state.waiting.first() == Some(&self.id);
        state.waiting.remove(&self.id);
        drop(state);
        if frees_another {
            self.queue.updates.send_replace(());
        }
    }
}

impl Drop for CurrentQuestion<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().has_current = false;
        self.queue.updates.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tokio::{task::JoinHandle, task::yield_now, time::Instant};

    /// Waits until it is current, reports that, and ends.
    fn spawn_question(queue: &QuestionQueue, id: u64, sender: &mpsc::Sender<u64>) -> JoinHandle<()> {
        let (queue, sender) = (queue.clone(), sender.clone());
        tokio::spawn(async move {
            let _current = queue.until_current(RequestId::new(0, id, 0)).await;
            sender.send(id).unwrap();
        })
    }

    /// PO-4: questions are shown in the order in which they were asked, whatever the order of their tasks.
    #[tokio::test(start_paused = true)]
    async fn the_first_that_was_asked_is_shown_first() {
        let (queue, (sender, order)) = (QuestionQueue::default(), mpsc::channel());
        (1..=3).for_each(|id| queue.announce(RequestId::new(0, id, 0)));
        let began = Instant::now();
        let mut tasks = Vec::new();
        for id in [3, 1, 2] {
            tasks.push(spawn_question(&queue, id, &sender));
            yield_now().await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_never_arrives_is_not_waited_for_long() {
        let (queue, (sender, order)) = (QuestionQueue::default(), mpsc::channel());
        (1..=3).for_each(|id| queue.announce(RequestId::new(0, id, 0)));
        let began = Instant::now();
        spawn_question(&queue, 3, &sender).await.unwrap();
        assert_eq!(began.elapsed(), ARRIVAL_TIMEOUT);
        spawn_question(&queue, 4, &sender).await.unwrap();
        assert_eq!(began.elapsed(), ARRIVAL_TIMEOUT);
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_withdrawn_question_leaves_the_queue() {
        let (queue, (sender, order)) = (QuestionQueue::default(), mpsc::channel());
        let shown = queue.until_current(RequestId::new(0, 1, 0)).await;
        let (withdrawn, next) = (spawn_question(&queue, 2, &sender), spawn_question(&queue, 3, &sender));
        yield_now().await;
        withdrawn.abort();
        assert!(withdrawn.await.is_err());
        assert_eq!(order.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(shown);
        next.await.unwrap();
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [3]);
    }
}
