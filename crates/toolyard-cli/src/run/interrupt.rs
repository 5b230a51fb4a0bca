//! Ctrl-C and SIGTERM.

use std::future::pending;
use tokio::sync::watch;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Stop in an orderly way.
    First,
    /// Stop at once.
    Again,
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
        // If they cannot be listened to, signals end the process, as is their default.
        tokio::spawn(listen(count.clone()));
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
        let signal = if *self.count.borrow_and_update() > 1 { Signal::Again } else { Signal::First };
        self.last = Some(signal);
        signal
    }

    /// The last signal, if one has arrived.
    pub(crate) fn last(&self) -> Option<Signal> {
        self.last
    }
}

#[cfg(unix)]
async fn listen(count: watch::Sender<usize>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        count.send_modify(|count| *count += 1);
    }
}

#[cfg(not(unix))]
async fn listen(count: watch::Sender<usize>) -> std::io::Result<()> {
    loop {
        tokio::signal::ctrl_c().await?;
        count.send_modify(|count| *count += 1);
    }
}
