//! Decides which question is shown next: the one announced first.
//!
//! ```text
//!   announced ─► waits ─► has the turn ─► over
//!   (by its event, in the order of the calls; its task may arrive in any order)
//! ```

use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::sleep};
use toolyard::{Event, EventKind, RequestId};

/// How long a question waits for an earlier one that was announced but has not arrived. After that, the earlier one is
/// taken to be withdrawn.
const COMES_WITHIN: Duration = Duration::from_secs(1);

/// The queue of questions. Cheap to clone; all clones share it.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Turns {
    line: Arc<Mutex<Line>>,
    moved: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Line {
    announced: BTreeSet<RequestId>,
    waiting: BTreeSet<RequestId>,
    is_taken: bool,
    /// The question announced last.
    last: Option<RequestId>,
}

/// A question's place in the queue. Dropping it leaves the queue.
struct Place<'a> {
    turns: &'a Turns,
    id: RequestId,
}

/// The turn of a question, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
}

impl Turns {
    /// The event sink that announces questions.
    pub(in super::super) fn sink(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let turns = self.clone();
        move |event| {
            if let EventKind::ConfirmationRequested { request, .. } = &event.kind {
                turns.announce(*request);
            }
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, id: RequestId) {
        let mut line = self.line();
        line.announced.insert(id);
        line.last = line.last.max(Some(id));
    }

    /// The question announced last so far.
    pub(super) fn last(&self) -> Option<RequestId> {
        self.line().last
    }

    /// Waits for the turn of a question.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the line.
    pub(super) async fn turn(&self, id: RequestId) -> Turn<'_> {
        let mut moved = self.moved.subscribe();
        let place = Place::new(self, id);
        let (mut late, mut is_late) = (pin!(sleep(COMES_WITHIN)), false);
        loop {
            moved.borrow_and_update();
            if let Some(turn) = place.take() {
                return turn;
            }
            tokio::select! {
                biased;
                _ = moved.changed() => {}
                () = &mut late, if !is_late => {
                    is_late = true;
                    self.line().announced.retain(|announced| *announced > id);
                }
            }
        }
    }
}

impl<'a> Place<'a> {
    fn new(turns: &'a Turns, id: RequestId) -> Self {
        let mut line = turns.line();
        line.announced.remove(&id);
        // No need to notify: those that waited for this question to arrive now wait for its turn.
        line.waiting.insert(id);
        drop(line);
        Self { turns, id }
    }

    /// Takes the turn, if this question is next.
    fn take(&self) -> Option<Turn<'a>> {
        let mut line = self.turns.line();
        let is_next = line.waiting.first() == Some(&self.id)
            && line.announced.first().is_none_or(|announced| *announced > self.id);
        if line.is_taken || !is_next {
            return None;
        }
        line.is_taken = true;
        Some(Turn { turns: self.turns })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut line = self.turns.line();
        let lets_another_go = !line.is_taken && line.waiting.first() == Some(&self.id);
        line.waiting.remove(&self.id);
        drop(line);
        if lets_another_go {
            self.turns.moved.send_replace(());
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.line().is_taken = false;
        self.turns.moved.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tokio::{task::JoinHandle, task::yield_now, time::Instant};

    /// Takes its turn, reports it, and ends it.
    fn go(turns: &Turns, id: u64, told: &mpsc::Sender<u64>) -> JoinHandle<()> {
        let (turns, told) = (turns.clone(), told.clone());
        tokio::spawn(async move {
            let _turn = turns.turn(RequestId(id)).await;
            told.send(id).unwrap();
        })
    }

    /// PO-4: questions are shown in the order in which they were asked, whatever the order of their tasks.
    #[tokio::test(start_paused = true)]
    async fn the_first_that_was_asked_is_shown_first() {
        let (turns, (told, order)) = (Turns::default(), mpsc::channel());
        (1..=3).for_each(|id| turns.announce(RequestId(id)));
        let began = Instant::now();
        let mut tasks = Vec::new();
        for id in [3, 1, 2] {
            tasks.push(go(&turns, id, &told));
            yield_now().await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_comes_is_not_waited_for_long() {
        let (turns, (told, order)) = (Turns::default(), mpsc::channel());
        (1..=3).for_each(|id| turns.announce(RequestId(id)));
        let began = Instant::now();
        go(&turns, 3, &told).await.unwrap();
        assert_eq!(began.elapsed(), COMES_WITHIN);
        go(&turns, 4, &told).await.unwrap();
        assert_eq!(began.elapsed(), COMES_WITHIN);
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_withdrawn_leaves_the_line() {
        let (turns, (told, order)) = (Turns::default(), mpsc::channel());
        let shown = turns.turn(RequestId(1)).await;
        let (withdrawn, next) = (go(&turns, 2, &told), go(&turns, 3, &told));
        yield_now().await;
        withdrawn.abort();
        assert!(withdrawn.await.is_err());
        assert_eq!(order.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(shown);
        next.await.unwrap();
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [3]);
    }
}
