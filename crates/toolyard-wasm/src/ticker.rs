//! The clock of the guests: one thread that raises the engine's epoch while calls run.
//!
//! ```text
//!   no call ── waits, without waking ──► a call begins ── every 10 ms: epoch + 1 ──► the last call has ended
//!   the runtime and all its modules are gone ──► the thread ends
//! ```

use parking_lot::{Condvar, Mutex};
use std::{io, sync::Arc, thread, time::Duration};
use wasmtime::Engine;

/// How often a guest that computes hands its thread back.
const TICK: Duration = Duration::from_millis(10);

/// Ends its thread when it is dropped.
pub(crate) struct Ticker(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many calls run.
    running: usize,
    is_over: bool,
}

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub(crate) fn start(engine: &Engine) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (clock, engine) = (shared.clone(), engine.weak());
        thread::Builder::new().name("toolyard-wasm".to_owned()).spawn(move || {
            while clock.wait()
                && let Some(engine) = engine.upgrade()
            {
                engine.increment_epoch();
            }
        })?;
        Ok(Self(shared))
    }

    /// Ticks for one more call, until what is returned is dropped.
    pub(crate) fn tick(&self) -> Ticking {
        self.0.state.lock().running += 1;
        self.0.changed.notify_one();
        Ticking(self.0.clone())
    }

    /// How many calls run.
    pub(crate) fn running(&self) -> usize {
        self.0.state.lock().running
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    /// Waits for the next tick; `false` when there will be none.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.running == 0 && !state.is_over {
            self.changed.wait(&mut state);
        }
        if !state.is_over {
            // Whatever wakes it early makes a tick come early, which does no harm.
            self.changed.wait_for(&mut state, TICK);
        }
        !state.is_over
    }
}

/// A call that runs.
pub(crate) struct Ticking(Arc<Shared>);

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.state.lock().running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-7: the thread ends with what it ticks for.
    #[test]
    fn the_thread_ends_with_its_runtime() {
        let ticker = Ticker::start(&Engine::default()).unwrap();
        let ticking = ticker.tick();
        assert_eq!(ticker.running(), 1);
        let shared = Arc::downgrade(&ticker.0);
        drop(ticking);
        assert_eq!(ticker.running(), 0);
        drop(ticker);
        // It is given up by the thread, however long that takes to be scheduled.
        while shared.strong_count() > 0 {
            thread::yield_now();
        }
    }
}
