//! Ctrl-C and SIGTERM.
//!
//! A thread of its own listens, so that the second signal ends the program whatever its other threads do: they may be
//! stuck in a call, in a validation, or in writing to a pipe that nobody reads.

use crate::exit::Exit;
use std::{future::pending, io, process, sync::mpsc, thread, time::Duration};
use tokio::{runtime, sync::watch, time::sleep};

/// How long the program may take, after a second signal, to print and write what it has.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Stop in an orderly way.
    First,
    /// Stop at once.
    Second,
}

impl Signal {
    /// What so many signals ask for.
    fn of_count(count: usize) -> Option<Self> {
        match count {
            0 => None,
            1 => Some(Self::First),
            _ => Some(Self::Second),
        }
    }

    /// The number of signals that ask for this.
    fn count(self) -> usize {
        match self {
            Self::First => 1,
            Self::Second => 2,
        }
    }
}

/// The signals of the process, in order.
#[derive(Debug)]
pub(crate) struct Interrupts {
    count: watch::Receiver<usize>,
    stopper: Stopper,
    last: Option<Signal>,
}

/// Stops a run from inside, as a first signal would.
#[derive(Debug, Clone)]
pub(crate) struct Stopper {
    count: watch::Sender<usize>,
}

impl Stopper {
    /// Counts as a signal if none has arrived yet: a second request to stop does not mean at once.
    pub(crate) fn stop(&self) {
        self.count.send_if_modified(|count| {
            let is_first = *count == 0;
            *count += usize::from(is_first);
            is_first
        });
    }
}

impl Interrupts {
    /// Takes over the signals of the process.
    pub(crate) fn listen() -> Self {
        let count = watch::Sender::new(0);
        let (listening, is_listening) = mpsc::channel();
        let counts = count.clone();
        let thread = thread::Builder::new().name("toolyard-signals".to_owned());
        // If they cannot be listened to, signals end the process, as is their default.
        if thread.spawn(move || end_at_second(&counts, listening)).is_ok() {
            let _ = is_listening.recv(); // from then on, no signal is lost
        }
        Self::counted(count)
    }

    /// Reads signals from a counter.
    pub(crate) fn counted(count: watch::Sender<usize>) -> Self {
        Self { count: count.subscribe(), stopper: Stopper { count }, last: None }
    }

    /// A handle that stops the run from inside.
    pub(crate) fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// The next signal.
    ///
    /// # Cancel safety
    /// Dropping the future loses no signal.
    pub(crate) async fn next(&mut self) -> Signal {
        if self.count.changed().await.is_err() {
            return pending().await;
        }
        let signal = Signal::of_count(*self.count.borrow_and_update()).unwrap_or(Signal::First);
        self.last = Some(signal);
        signal
    }

    /// The last signal that [`next`](Self::next) has returned.
    pub(crate) fn last(&self) -> Option<Signal> {
        self.last
    }

    /// The last signal that has arrived, whether anybody has waited for it or not.
    pub(crate) fn arrived(&self) -> Option<Signal> {
        Signal::of_count(*self.count.borrow())
    }

    /// Waits until this signal has arrived. Any number of tasks may wait.
    ///
    /// # Cancel safety
    /// Dropping the future loses no signal.
    pub(crate) async fn until(&self, signal: Signal) {
        self.until_count(signal.count()).await;
    }

    /// Waits for one more signal than have arrived so far.
    ///
    /// # Cancel safety
    /// Dropping the future loses no signal.
    pub(crate) async fn another(&self) {
        let so_far = *self.count.borrow();
        self.until_count(so_far + 1).await;
    }

    async fn until_count(&self, least: usize) {
        let mut count = self.count.clone();
        let reached = count.wait_for(|count| *count >= least).await.is_ok();
        if !reached {
            pending().await
        }
    }
}

/// Counts the signals, and ends the process some time after the second one, or at the third.
fn end_at_second(count: &watch::Sender<usize>, listening: mpsc::Sender<()>) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        drop(listening);
        for _ in 0..2 {
            signals.next().await?;
            count.send_modify(|count| *count += 1);
        }
        tokio::select! {
            () = sleep(LAST_WORDS) => {}
            _ = signals.next() => {}
        }
        // Nothing is printed: whoever holds standard error may be what is stuck.
        process::exit(Exit::Interrupted.code().into())
    })
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> io::Result<()> {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        Ok(())
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn listen() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> io::Result<()> {
        self.0.recv().await;
        Ok(())
    }
}
