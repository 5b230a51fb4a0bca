//! SIGHUP, which asks a server to read its configuration again.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The hang-ups of the process. From when this is made, one does not end it.
pub(crate) struct Hangups {
    /// Nothing if they cannot be listened to.
    #[cfg(unix)]
    signal: Option<Signal>,
}

impl Hangups {
    #[cfg(unix)]
    pub(crate) fn listen() -> Self {
        Self { signal: signal(SignalKind::hangup()).ok() }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Self {
        Self {}
    }

    /// The next one; several at once are one.
    ///
    /// # Cancel safety
    /// Dropping the future loses none.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}
