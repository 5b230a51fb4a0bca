//! Threads for validations that take long.

use crate::tasks::caught;
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, thread};

/// How many validations run at once in an engine.
const THREADS_MAX: usize = 2;

/// How many wait for a thread.
const WAITING_MAX: usize = 64;

/// The stack of a thread, in bytes: more than a validation may use.
const STACK: usize = 2 << 20;

type Work = Box<dyn FnOnce() + Send>;

/// Threads that exist while there is work for them.
#[derive(Default)]
pub(crate) struct Lengthy {
    state: Arc<Mutex<Workload>>,
}

#[derive(Default)]
struct Workload {
    waiting: VecDeque<Work>,
    threads: usize,
}

impl Lengthy {
    /// Does the work on a thread, at once or later. Returns `false` if too much waits already, or there is no thread.
    pub(crate) fn start(&self, work: Work) -> bool {
        let mut state = self.state.lock();
        if state.threads == THREADS_MAX {
            let has_room = state.waiting.len() < WAITING_MAX;
            if has_room {
                state.waiting.push_back(work);
            }
            return has_room;
        }
        let builder = thread::Builder::new().name("toolyard-validation".to_owned()).stack_size(STACK);
        let shared = self.state.clone();
        let is_started = builder.spawn(move || work_on(&shared, work)).is_ok();
        state.threads += usize::from(is_started);
        is_started
    }
}

/// Does this work, and what waits.
fn work_on(state: &Mutex<Workload>, first: Work) {
    let mut next = Some(first);
    while let Some(work) = next {
        if let Err(panic) = caught(work) {
            panic.log_drop(); // of what the work has let go of
        }
        let mut state = state.lock();
        next = state.waiting.pop_front();
        state.threads -= usize::from(next.is_none());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// CC-4: two at a time, sixty-four in line, and no thread when there is nothing to do.
    #[test]
    fn validations_are_bounded() {
        let lengthy = Lengthy::default();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let (done, is_done) = mpsc::channel();
        let work = || -> Work {
            let (released, done) = (released.clone(), done.clone());
            Box::new(move || {
                let waited = released.lock().recv();
                done.send(()).unwrap();
                waited.unwrap();
            })
        };
        let taken = (0..100).filter(|_| lengthy.start(work())).count();
        assert_eq!(taken, THREADS_MAX + WAITING_MAX);
        (0..taken).for_each(|_| release.send(()).unwrap());
        (0..taken).for_each(|_| is_done.recv().unwrap());
        while lengthy.state.lock().threads > 0 {
            thread::yield_now();
        }
        assert!(lengthy.start(Box::new(|| panic!("of its own"))));
        while lengthy.state.lock().threads > 0 {
            thread::yield_now();
        }
    }
}
