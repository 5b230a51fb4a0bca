//! Who waits for records, and how they are told.
//!
//! ```text
//!   given ─► unasked ─► asked ─┬─ its group is written ─► told ─► one task is woken; who asks first wakes the others
//!                              └─ refused, not written ─► told, with the error kept until it is read
//! ```
//!
//! Records are told in the order in which they were given: what is written is a number, up to which all are, and what of them
//! has failed. So the writer leaves nothing with each of those who wait.
//!
//! To wake a task from another thread takes a call of the system, and may wake a processor. Who waits for the same group is
//! mostly on the same runtime, where one task wakes another by a push into its queue. Whom it wakes last may run after it on
//! its own thread; so a few are woken by the writer alone.

use std::{
    collections::{BTreeMap, VecDeque},
    mem::replace,
    task::Waker,
};
use toolyard::RecordError;

/// Those who wait for records, by the numbers that these have among all that somebody waits for.
#[derive(Default)]
pub(super) struct Asked {
    /// The number of the first of `each`: those before it are told.
    first: u64,
    each: VecDeque<Waits>,
    /// What those who are told have not read yet, if it is an error.
    failed: BTreeMap<u64, RecordError>,
    /// Who is told and not woken.
    unwoken: VecDeque<Waker>,
}

/// How somebody waits for a record.
enum Waits {
    /// Nobody has asked yet.
    Unasked,
    /// The task that has asked last.
    Asked(Waker),
    /// It is told, or has gone.
    Told,
}

impl Asked {
    /// The number of one more record that somebody waits for.
    pub(super) fn add(&mut self) -> u64 {
        self.each.push_back(Waits::Unasked);
        self.next() - 1
    }

    /// The number of the next one.
    pub(super) fn next(&self) -> u64 {
        self.first + self.each.len() as u64
    }

    fn at(&mut self, number: u64) -> Option<&mut Waits> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.each.get_mut(at)
    }

    /// Whether whoever waits for the record is told.
    pub(super) fn is_told(&mut self, number: u64) -> bool {
        matches!(self.at(number), None | Some(Waits::Told))
    }

    /// What became of a record of which somebody is told: read once.
    pub(super) fn read(&mut self, number: u64) -> Result<(), RecordError> {
        self.failed.remove(&number).map_or(Ok(()), Err)
    }

    /// The task that has this waker waits for a record. Returns whether it is the first to ask, and the waker that is not
    /// needed, to be dropped without the lock.
    pub(super) fn ask(&mut self, number: u64, waker: Waker) -> (bool, Option<Waker>) {
        match self.at(number) {
            Some(Waits::Asked(last)) if last.will_wake(&waker) => (false, Some(waker)),
            Some(waits @ (Waits::Unasked | Waits::Asked(_))) => match replace(waits, Waits::Asked(waker)) {
                Waits::Asked(last) => (false, Some(last)),
                Waits::Unasked | Waits::Told => (true, None),
            },
            None | Some(Waits::Told) => (false, Some(waker)),
        }
    }

    /// Nobody waits for the record any more. Returns the task that had asked, to be dropped without the lock.
    pub(super) fn leave(&mut self, number: u64) -> Option<Waker> {
        match self.at(number).map(|waits| replace(waits, Waits::Told)) {
            Some(Waits::Asked(last)) => Some(last),
            Some(Waits::Unasked) => None,
            None | Some(Waits::Told) => {
                self.failed.remove(&number);
                None
            }
        }
    }

    /// Whoever waits for this record is told that it has failed.
    pub(super) fn fail(&mut self, number: u64, error: &RecordError) {
        match self.at(number).map(|waits| replace(waits, Waits::Told)) {
            None | Some(Waits::Told) => return,
            Some(Waits::Unasked) => {}
            Some(Waits::Asked(waker)) => self.unwoken.push_back(waker),
        }
        self.failed.insert(number, error.clone());
    }

    /// All who wait are told that it has failed.
    pub(super) fn fail_all(&mut self, error: &RecordError) {
        (self.first..self.next()).for_each(|number| self.fail(number, error));
    }

    /// Whoever waits for a record before this number is told that it is written.
    pub(super) fn written(&mut self, until: u64) {
        let count = usize::try_from(until.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.unwoken.reserve(count.min(self.each.len()));
        for waits in self.each.drain(..count.min(self.each.len())) {
            self.first += 1;
            if let Waits::Asked(waker) = waits {
                self.unwoken.push_back(waker);
            }
        }
    }

    /// One who is told and not woken.
    pub(super) fn next_unwoken(&mut self) -> Option<Waker> {
        self.unwoken.pop_front()
    }

    /// How many are told and not woken.
    pub(super) fn unwoken(&self) -> usize {
        self.unwoken.len()
    }

    /// Gives back the room of many who are gone.
    pub(super) fn shrink_to(&mut self, kept: usize) {
        if self.each.len() <= kept && self.unwoken.len() <= kept {
            self.each.shrink_to(kept);
            self.unwoken.shrink_to(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many who wait, of whom all but the first have asked.
    fn waiting(count: u64) -> Asked {
        let mut asked = Asked::default();
        for number in 0..count {
            assert_eq!(asked.add(), number);
            assert!(number == 0 || is_first(&mut asked, number));
        }
        asked
    }

    fn is_first(asked: &mut Asked, number: u64) -> bool {
        asked.ask(number, Waker::noop().clone()).0
    }

    fn told(asked: &mut Asked, number: u64) -> Option<Result<(), String>> {
        asked.is_told(number).then(|| asked.read(number).map_err(|error| error.to_string()))
    }

    /// JR-2: what is written is told to all before its number, in their order; who has not asked yet, or has gone, is not
    /// woken.
    #[test]
    fn all_before_a_number_are_told() {
        let mut asked = waiting(7);
        assert!(asked.leave(3).is_some());
        asked.written(5);
        assert_eq!(asked.unwoken(), 3);
        assert_eq!([0, 1, 4].map(|number| told(&mut asked, number)), [const { Some(Ok(())) }; 3]);
        assert_eq!([5, 6].map(|number| told(&mut asked, number)), [None, None]);
        asked.written(5);
        assert_eq!(asked.unwoken(), 3, "they were told before");
        asked.written(7);
        assert_eq!((asked.unwoken(), asked.next(), asked.add()), (5, 7, 7));
    }

    /// JR-12: an error is told to whom it concerns, is kept until it is read, and no longer than somebody waits.
    #[test]
    fn errors_are_kept_until_they_are_read() {
        let (mut asked, full) = (waiting(6), RecordError::new("the disk is full"));
        let failed = || Some(Err("the disk is full".to_owned()));
        asked.leave(1);
        [0, 1, 2, 3].iter().for_each(|number| asked.fail(*number, &full));
        assert_eq!((asked.unwoken(), asked.failed.len()), (2, 3), "who has gone has no error");
        assert_eq!((told(&mut asked, 2), told(&mut asked, 4)), (failed(), None));
        asked.written(5);
        let of = [3, 4, 5].map(|number| told(&mut asked, number));
        assert_eq!(of, [failed(), Some(Ok(())), None]);
        asked.fail_all(&full);
        asked.leave(0);
        assert_eq!(asked.failed.len(), 1);
        assert_eq!((told(&mut asked, 5), asked.failed.len()), (failed(), 0));
    }

    /// What many who are gone have taken is given back.
    #[test]
    fn room_is_given_back() {
        let mut asked = waiting(10_000);
        asked.written(10_000);
        while asked.next_unwoken().is_some() {}
        asked.shrink_to(100);
        assert!(asked.each.capacity() < 1000 && asked.unwoken.capacity() < 1000);
    }
}
