//! Ctrl-C and SIGTERM.

use std::future::pending;
use tokio::sync::watch;

/// What the person, or the system, wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Stop in good order.
    First,
    /// Stop now.
    Again,
}

/// Signals as they come.
#[derive(Debug)]
pub(crate) struct Interrupts {
    count: watch::Receiver<usize>,
    last: Option<Signal>,
}

impl Interrupts {
    /// Takes over the signals of the process.
    pub(crate) fn listen() -> Self {
        let (sender, count) = watch::channel(0);
        // Where signals cannot be listened to, they end the process as they end any other.
        tokio::spawn(listen(sender));
        Self::counted(count)
    }

    /// Signals as they are counted.
    pub(crate) fn counted(count: watch::Receiver<usize>) -> Self {
        Self { count, last: None }
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

    /// What the last signal was, if one came.
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
