//! What waits for the writer: bounded, in the order in which it was given (JR-2, JR-12).
//!
//! ```text
//!   give ─► waits ─ somebody waits for one of them, or the linger is over ─► the writer takes all, ─► durable
//!     │                                                                        and what comes meanwhile
//!     │ full, stopped: an error at once
//! ```
//!
//! Records that nobody needs, those of plain reads, have half of the room: they never keep out one that somebody waits for.

mod asked;
mod bell;
mod gathering;
mod given;
mod job;
mod waiting;

pub(crate) use job::{Faulty, Job};

use crate::op::{EndsOp, Op};
use bell::Bell;
use futures::future::ready;
use given::Given;
use job::Held;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    mem::take,
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, Instant},
};
use toolyard::{Durable, EndRecord, RecordError};
use waiting::{KEPT, Waiting};

/// What a journal is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalState {
    /// It is written.
    Writing,
    /// The disk is full, a quota is used up, or somebody else keeps the file busy. What is known is tried again; calls that change something are
    /// not started (JR-12).
    Failing(String),
    /// It is not written any more in this process: a sync has failed, a newer epoch has begun, or the file is damaged or was
    /// taken away. Records whose waiters were told that they have failed may be found in it after a restart (JR-12).
    Stopped(String),
    /// It was closed.
    Closed,
}

/// How a journal fares.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalStatus {
    /// What it is doing.
    pub state: JournalState,
    /// Transactions that were committed.
    pub commits: u64,
    /// Records that are durable.
    pub records: u64,
    /// Records that wait for the writer, or are being written.
    pub waiting: usize,
    /// About how many bytes those of them have that no writer has taken up.
    pub waiting_bytes: usize,
    /// Records for which nobody waited and which are not in the file: their half of the queue was full, or what they
    /// belong to is not there. They are of calls that only read, which run again when their turn is resumed.
    pub lost: u64,
}

/// How long a group takes what comes meanwhile, at most, once somebody waits for it.
const GROUP_TIME: Duration = Duration::from_millis(2);

/// As few as these are woken by the writer alone.
const FEW: usize = 3;

/// How long somebody waits on a thread for one group to be written.
const READ_WAIT: Duration = Duration::from_secs(10);

/// The queue between those who give records and the writer.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// The writer has something to do.
    bell: Bell,
    /// The writer is done with what it had taken.
    done: Condvar,
    max: Held,
}

impl Queue {
    pub(crate) fn new(records_max: usize, bytes_max: usize) -> Self {
        Self {
            waiting: Mutex::new(Waiting::new()),
            bell: Bell::default(),
            done: Condvar::new(),
            max: Held { records: records_max, bytes: bytes_max },
        }
    }

    /// The lock, and some of what the writer has written, which is dropped once the lock is released.
    fn enter(&self) -> ([Option<Job>; 2], MutexGuard<'_, Waiting>) {
        let mut waiting = self.waiting.lock();
        ([waiting.spent.pop(), waiting.spent.pop()], waiting)
    }

    /// Gives a record that nobody needs.
    pub(crate) fn give(&self, op: Op, bytes: usize) {
        let (_spent, mut waiting) = self.enter();
        if self.leaves_out(&waiting, bytes) {
            waiting.lost += 1;
            return;
        }
        let op = Some(op);
        let job = Job { op, asked: None, faulty: Faulty::Kept, is_spare: true, bytes, records: 1 };
        self.add(&mut waiting, job);
    }

    /// Gives the end of a call that nobody needs, of so many bytes beside its texts: with those of its batch that came last,
    /// if nothing came since and the writer has not taken them.
    pub(crate) fn give_end(&self, end: &EndRecord<'_>, bytes: usize) {
        let mut waiting = self.waiting.lock();
        if self.leaves_out(&waiting, bytes) {
            waiting.lost += 1;
            return;
        }
        let Some(ends) = last_ends(&mut waiting.jobs).filter(|ends| ends.takes(end.call)) else {
            drop(waiting);
            return self.give_first_end(end, bytes);
        };
        let bytes = bytes + ends.add(end);
        if self.leaves_out(&waiting, bytes) {
            last_ends(&mut waiting.jobs).into_iter().for_each(EndsOp::remove_last);
            waiting.lost += 1;
        } else {
            waiting.grow_last(bytes);
        }
    }

    /// The same for one that makes a record of its own, to which others are added.
    fn give_first_end(&self, end: &EndRecord<'_>, bytes: usize) {
        // Declared before the lock, so that one that is refused is dropped without it.
        let mut ends;
        let (_spent, mut waiting) = self.enter();
        ends = waiting.ends_for(end.call);
        let bytes = bytes + ends.add(end);
        if self.leaves_out(&waiting, bytes) {
            waiting.lost += 1;
            return;
        }
        let op = Some(Op::Ends(ends));
        let job = Job { op, asked: None, faulty: Faulty::Kept, is_spare: true, bytes, records: 1 };
        self.add(&mut waiting, job);
    }

    /// Gives a record that somebody waits for; or none, to wait for those before it.
    pub(crate) fn wait_for(self: &Arc<Self>, op: Option<Op>, bytes: usize, faulty: Faulty) -> Durable {
        let (_spent, mut waiting) = self.enter();
        if let Some(refused) = self.refuses(&waiting, bytes) {
            return failed(refused);
        }
        if let (JournalState::Failing(why), Faulty::Refused | Faulty::Kept) = (&waiting.state, faulty) {
            let error = RecordError::new(why.as_str());
            if faulty == Faulty::Kept {
                self.add(&mut waiting, Job { op, asked: None, faulty, is_spare: false, bytes, records: 1 });
            }
            return failed(error);
        }
        let number = waiting.asked.add();
        self.add(&mut waiting, Job { op, asked: Some(number), faulty, is_spare: false, bytes, records: 1 });
        drop(waiting);
        Durable::when(Given::new(Arc::clone(self), number))
    }

    /// Why a record that somebody waits for cannot be added, if so.
    fn refuses(&self, waiting: &Waiting, bytes: usize) -> Option<RecordError> {
        let what = match &waiting.state {
            JournalState::Stopped(why) => return Some(RecordError::new(why.as_str())),
            _ if waiting.is_ended() => "the journal is closed".to_owned(),
            _ if self.is_full(waiting, bytes, false) => {
                let Held { records, bytes } = waiting.held();
                format!(
                    "the journal's queue is full ({records} records with {bytes} bytes wait): its disk is too slow, or full"
                )
            }
            _ => return None,
        };
        Some(RecordError::new(what))
    }

    /// Whether a record that nobody needs is left out.
    fn leaves_out(&self, waiting: &Waiting, bytes: usize) -> bool {
        waiting.is_ended() || self.is_full(waiting, bytes, true)
    }

    fn is_full(&self, waiting: &Waiting, bytes: usize, is_spare: bool) -> bool {
        let Waiting { needed, spare, .. } = waiting;
        let half = Held { records: self.max.records.div_ceil(2), bytes: self.max.bytes / 2 };
        match is_spare {
            true => spare.fills(half, bytes) || waiting.held().records >= self.max.records,
            // What is spare takes no more than its half, even if a single one of it is larger.
            false => needed.fills(self.left_by(Held { bytes: spare.bytes.min(half.bytes), ..*spare }), bytes),
        }
    }

    fn left_by(&self, held: Held) -> Held {
        Held { records: self.max.records - held.records, bytes: self.max.bytes - held.bytes }
    }

    fn add(&self, waiting: &mut Waiting, job: Job) {
        waiting.push(job);
        // Later ones find the writer awake, or lingering for all.
        if waiting.jobs.len() == 1 {
            self.bell.ring();
        }
    }

    /// What became of the record of this number, for which a task waits. Whoever is told first wakes all who are told too, and
    /// reads what it is told after that: a waker that panics takes nothing with it.
    fn ask(&self, number: u64, waker: Waker) -> Poll<Result<(), RecordError>> {
        let mut waiting = self.waiting.lock();
        if waiting.asked.is_told(number) {
            if waiting.asked.unwoken() > 0 {
                drop(waiting);
                self.wake_others();
                waiting = self.waiting.lock();
            }
            return Poll::Ready(waiting.asked.read(number));
        }
        let (is_first, _spare) = waiting.asked.ask(number, waker);
        let is_wanted = is_first && waiting.hurry(number);
        if is_wanted {
            self.bell.mark();
        }
        drop(waiting);
        if is_wanted {
            self.bell.wake();
        }
        Poll::Pending
    }

    /// Nobody waits for the record of this number any more. Whoever goes was perhaps to wake others.
    fn leave(&self, number: u64) {
        let _last = self.waiting.lock().asked.leave(number);
        self.wake_others();
    }

    /// Wakes all who are told and not woken yet, each without the lock: if that takes long, others wake the rest.
    pub(crate) fn wake_others(&self) {
        loop {
            let next = self.waiting.lock().asked.next_unwoken();
            match next {
                Some(waker) => waker.wake(),
                None => return,
            }
        }
    }

    /// Whether all who are told are woken.
    pub(crate) fn are_woken(&self) -> bool {
        self.waiting.lock().asked.unwoken() == 0
    }

    /// Waits, on this thread, until what was given so far is written, so that it can be read.
    pub(crate) fn wait_until_written(&self) -> Result<(), RecordError> {
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        while (waiting.taken.records > 0 || !waiting.jobs.is_empty()) && waiting.written < number {
            match &waiting.state {
                JournalState::Stopped(why) | JournalState::Failing(why) => {
                    return Err(RecordError::new(why.as_str()));
                }
                JournalState::Writing | JournalState::Closed => {}
            }
            waiting.is_urgent = true;
            waiting.gathering.end();
            self.bell.ring();
            if self.done.wait_for(&mut waiting, READ_WAIT).timed_out() {
                return Err(RecordError::new(
                    "the journal's disk is too slow: what was given is not written yet",
                ));
            }
        }
        match &waiting.state {
            // It was taken out, and not written.
            JournalState::Stopped(why) if waiting.written < number => Err(RecordError::new(why.as_str())),
            _ => Ok(()),
        }
    }

    /// Whether somebody waits for what is queued, or nothing more will come; if neither, waits until then for it.
    pub(crate) fn is_wanted_until(&self, until: Instant) -> bool {
        let mut waiting = self.waiting.lock();
        let is_wanted =
            |waiting: &Waiting| waiting.is_urgent && !waiting.jobs.is_empty() || waiting.is_closing;
        while !is_wanted(&waiting) && self.bell.expect_until(&mut waiting, until) {}
        is_wanted(&waiting)
    }

    /// Begins a group with all that waits, once somebody waits for it or it has waited this long. `false` if nothing more
    /// will come. The writer alone calls this.
    pub(crate) fn begin(&self, linger: Duration, group: &mut Vec<Job>) -> bool {
        let mut waiting = self.waiting.lock();
        let mut are_expected = true;
        while !waiting.is_closing {
            if waiting.jobs.is_empty() {
                // The one that was urgent may have been refused since.
                waiting.is_urgent = false;
                let until = waiting.gathering.wait_until(waiting.in_flight()).filter(|_| are_expected);
                match until {
                    // The lock was given away: what waits is looked at again before it is waited for without an end.
                    Some(until) => are_expected = self.bell.expect_until(&mut waiting, until),
                    None => self.bell.wait(&mut waiting),
                }
            } else if waiting.is_urgent || !self.bell.wait_for(&mut waiting, linger) {
                break;
            }
        }
        waiting.take_into(group);
        !group.is_empty()
    }

    /// Adds to the group, which has `began` then, what has come since, or waits for those who are expected. Adds nothing once
    /// it is complete.
    pub(crate) fn add_to(&self, group: &mut Vec<Job>, began: Instant) {
        let mut waiting = self.waiting.lock();
        let is_late = waiting.in_flight() > 0 && began.elapsed() >= GROUP_TIME;
        if waiting.is_group_full() || is_late {
            // More may wait, whoever that is.
            return waiting.gathering.end();
        }
        while waiting.jobs.is_empty() && !waiting.is_closing {
            match waiting.gathering.wait_until(waiting.in_flight()) {
                Some(until) if self.bell.expect_until(&mut waiting, until) => {}
                _ => return waiting.end_group(),
            }
        }
        waiting.take_into(group);
    }

    /// The writer has told all of a group, and gives back what it has written.
    pub(crate) fn spend(&self, group: &mut Vec<Job>) {
        let is_kept = self.waiting.lock().spend(group);
        if !is_kept {
            group.clear();
        }
        group.shrink_to(KEPT);
    }

    /// A group is durable, `lost` of its records aside, for which nobody waited, and those that were refused: whoever waits for
    /// them is told why, and all others that they are written. One of them is woken, which wakes the others.
    #[expect(clippy::disallowed_methods, reason = "the writer is a thread, and a disk takes real time")]
    pub(crate) fn written(&self, records: usize, lost: usize, refused: &[(u64, RecordError)]) {
        let mut waiting = self.waiting.lock();
        refused.iter().for_each(|(number, error)| waiting.asked.fail(*number, error));
        waiting.commits += 1;
        waiting.records += records as u64;
        waiting.lost += lost as u64;
        let (told, awaited) = (waiting.group_written(), waiting.in_flight());
        waiting.gathering.told(told, awaited, Instant::now());
        waiting.state = JournalState::Writing;
        let are_few = waiting.asked.unwoken() <= FEW;
        let first = waiting.asked.next_unwoken();
        drop(waiting);
        self.done.notify_all();
        first.into_iter().for_each(Waker::wake);
        if are_few {
            self.wake_others();
        }
    }

    /// Whoever waits for a record of this group is told that it has failed.
    pub(crate) fn refuse(&self, group: &mut Vec<Job>, error: &RecordError) {
        let told: Vec<_> = group.drain(..).filter_map(|job| job.asked).collect();
        let mut waiting = self.waiting.lock();
        told.into_iter().for_each(|number| waiting.asked.fail(number, error));
        drop(waiting);
        self.wake_others();
    }

    /// The writer goes on trying with this group. Whoever waits for a record of it, or for one that is queued behind it,
    /// is told; records that are refused leave both.
    pub(crate) fn fail(&self, group: &mut Vec<Job>, error: &RecordError) {
        let mut told = Vec::new();
        group.retain_mut(|job| job.stays(&mut told));
        let mut waiting = self.waiting.lock();
        waiting.state = JournalState::Failing(error.to_string());
        waiting.taken = Held::of(group.iter());
        waiting.jobs.retain_mut(|job| job.stays(&mut told));
        waiting.count();
        told.into_iter().for_each(|number| waiting.asked.fail(number, error));
        drop(waiting);
        self.done.notify_all();
        self.wake_others();
    }

    /// The writer writes no more. Whoever waits is told.
    pub(crate) fn stop(&self, state: JournalState, why: &str) {
        let mut waiting = self.waiting.lock();
        waiting.state = state;
        waiting.taken = Held::default();
        let _jobs = take(&mut waiting.jobs);
        waiting.count();
        waiting.asked.fail_all(&RecordError::new(why));
        drop(waiting);
        self.done.notify_all();
        self.wake_others();
    }

    /// Lets nothing more in, and the writer end once it has written what waits.
    pub(crate) fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_closing = true;
        self.bell.ring();
    }

    /// Waits before a group is tried again. Whether the journal is being closed.
    #[expect(clippy::disallowed_methods, reason = "the writer is a thread, and a disk takes real time")]
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut waiting = self.waiting.lock();
        let was_closing = waiting.is_closing;
        while waiting.is_closing == was_closing && self.bell.wait_until(&mut waiting, until) {}
        waiting.is_closing
    }

    pub(crate) fn status(&self) -> JournalStatus {
        let waiting = self.waiting.lock();
        JournalStatus {
            state: waiting.state.clone(),
            commits: waiting.commits,
            records: waiting.records,
            waiting: waiting.held().records + waiting.taken.records,
            waiting_bytes: waiting.held().bytes,
            lost: waiting.lost,
        }
    }
}

/// The ends that were given last, if nothing was given since.
fn last_ends(jobs: &mut [Job]) -> Option<&mut EndsOp> {
    match jobs.last_mut()?.op.as_mut()? {
        Op::Ends(ends) => Some(ends),
        _ => None,
    }
}

fn failed(error: RecordError) -> Durable {
    Durable::when(ready(Err(error)))
}

#[cfg(test)]
mod tests;
