//! What the lock of the queue guards.

use super::{
    JournalState,
    asked::Asked,
    gathering::Gathering,
    job::{Held, Job},
};
use crate::op::{EndsOp, Op};
use std::mem::{replace, swap, take};
use toolyard::CallPlace;

/// How many records an empty list keeps room for: as many as a large group has, some 100 KiB.
pub(super) const KEPT: usize = 512;

/// How many written records wait, at most, for those who give others to drop them, and how many bytes they have.
const SPENT_MAX: Held = Held { records: 4096, bytes: 1 << 20 };

/// How many records of ends keep their room for others.
const ENDS_KEPT: usize = 32;

/// From how many records, or bytes, a group takes no more that come while it is applied.
const GROUP_MAX: Held = Held { records: 1024, bytes: 1 << 20 };

pub(super) struct Waiting {
    pub(super) jobs: Vec<Job>,
    /// How much of them somebody needs, and how much is spare.
    pub(super) needed: Held,
    pub(super) spare: Held,
    /// The number of the next record, and of the first that the writer has not taken.
    pub(super) next: u64,
    first: u64,
    /// Who waits for records, and the first of them whose record the writer has not taken.
    pub(super) asked: Asked,
    asked_first: u64,
    /// What the writer has taken and not written.
    pub(super) taken: Held,
    /// All records before this number are written, or have failed.
    pub(super) written: u64,
    /// What the writer has written. Whoever gives a record drops some of that, on the thread on which it was made: if the
    /// writer did, both would wait for the allocator.
    pub(super) spent: Vec<Job>,
    /// Records of ends that were written: the next ones need no room of their own.
    #[expect(clippy::vec_box, reason = "the boxes are used again too")]
    ends: Vec<Box<EndsOp>>,
    /// Whether somebody waits for one of the jobs, and how many tasks do; how many wait for what the writer has taken.
    pub(super) is_urgent: bool,
    awaited: usize,
    awaited_taken: usize,
    pub(super) gathering: Gathering,
    pub(super) is_closing: bool,
    pub(super) state: JournalState,
    pub(super) commits: u64,
    pub(super) records: u64,
    pub(super) lost: u64,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self {
            jobs: Vec::new(),
            needed: Held::default(),
            spare: Held::default(),
            next: 0,
            first: 0,
            asked: Asked::default(),
            asked_first: 0,
            taken: Held::default(),
            written: 0,
            spent: Vec::new(),
            ends: Vec::new(),
            is_urgent: false,
            awaited: 0,
            awaited_taken: 0,
            gathering: Gathering::default(),
            is_closing: false,
            state: JournalState::Writing,
            commits: 0,
            records: 0,
            lost: 0,
        }
    }

    pub(super) fn held(&self) -> Held {
        self.needed.with(self.spare.records, self.spare.bytes)
    }

    /// Whether nothing more is let in.
    pub(super) fn is_ended(&self) -> bool {
        self.is_closing || matches!(self.state, JournalState::Stopped(_) | JournalState::Closed)
    }

    pub(super) fn push(&mut self, job: Job) {
        let held = if job.is_spare { &mut self.spare } else { &mut self.needed };
        *held = held.with(job.records, job.bytes);
        self.jobs.push(job);
        self.next += 1;
    }

    /// The last job, which is spare, has got one more record, of this many bytes.
    pub(super) fn grow_last(&mut self, bytes: usize) {
        if let Some(job) = self.jobs.last_mut() {
            job.bytes += bytes;
            job.records += 1;
        }
        self.next += 1;
        self.spare = self.spare.with(1, bytes);
    }

    /// Counts anew how much waits, once those were told that it takes too long who wait no longer. For whom a group waits
    /// is known again with the next one.
    pub(super) fn count(&mut self) {
        self.needed = Held::of(self.jobs.iter().filter(|job| !job.is_spare));
        self.spare = Held::of(self.jobs.iter().filter(|job| job.is_spare));
        (self.awaited, self.awaited_taken) = (0, 0);
    }

    /// Somebody waits for a record, which has this number among those that are waited for. Whether the writer is to be woken.
    pub(super) fn hurry(&mut self, number: u64) -> bool {
        let is_taken = number < self.asked_first;
        let awaited = if is_taken { &mut self.awaited_taken } else { &mut self.awaited };
        *awaited += 1;
        // Those between find the writer awake, or waiting for the rest.
        let is_first = !is_taken && !replace(&mut self.is_urgent, true);
        is_first || self.gathering.becomes_complete(self.in_flight())
    }

    /// How many wait for what is not written.
    pub(super) fn in_flight(&self) -> usize {
        self.awaited_taken + self.awaited
    }

    /// Whether the writer has taken as much as a group has at most.
    pub(super) fn is_group_full(&self) -> bool {
        self.taken.records >= GROUP_MAX.records || self.taken.bytes >= GROUP_MAX.bytes
    }

    /// Moves all that waits to the end of the group that is written next.
    pub(super) fn take_into(&mut self, group: &mut Vec<Job>) {
        match group.is_empty() {
            true => swap(group, &mut self.jobs),
            false => group.append(&mut self.jobs),
        }
        self.awaited_taken += take(&mut self.awaited);
        let held = self.held();
        self.taken = self.taken.with(held.records, held.bytes);
        (self.needed, self.spare) = (Held::default(), Held::default());
        (self.is_urgent, self.first, self.asked_first) = (false, self.next, self.asked.next());
    }

    /// Nothing more is added to the group: all are there who were expected, or they do not come.
    pub(super) fn end_group(&mut self) {
        let awaited = self.awaited_taken;
        self.gathering.ended(awaited);
    }

    /// All that the writer has taken is written, and those who wait for it are told. Returns how many these are.
    pub(super) fn group_written(&mut self) -> usize {
        (self.taken, self.written) = (Held::default(), self.first);
        self.asked.written(self.asked_first);
        take(&mut self.awaited_taken)
    }

    /// A record without ends, of the batch of this call.
    pub(super) fn ends_for(&mut self, call: CallPlace<'_>) -> Box<EndsOp> {
        match self.ends.pop() {
            Some(ends) => ends.emptied_for(call),
            None => Box::new(EndsOp::of(call)),
        }
    }

    /// Keeps what was written to be used again, or dropped, by those who give records. `false` if that is too much.
    pub(super) fn spend(&mut self, group: &mut Vec<Job>) -> bool {
        for job in group.iter_mut() {
            if self.ends.len() >= ENDS_KEPT {
                break;
            }
            if let Some(Op::Ends(ends)) = job.op.take_if(|op| matches!(op, Op::Ends(ends) if ends.is_small()))
            {
                self.ends.push(ends);
            }
        }
        let held = Held::of(group.iter());
        let all = Held::of(self.spent.iter()).with(held.records, held.bytes);
        let has_room = all.records <= SPENT_MAX.records && all.bytes <= SPENT_MAX.bytes;
        if has_room {
            self.spent.append(group);
        }
        if self.jobs.len() <= KEPT {
            self.jobs.shrink_to(KEPT);
        }
        self.asked.shrink_to(KEPT);
        has_room
    }
}
