//! What a helper is told to do: by the program that started it, or by a signal.

use std::io;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::OwnedReadHalf,
    signal::unix::{Signal, SignalKind, signal},
};

/// An order to end all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// With grace.
    Terminate,
    /// At once: the program that started the helper has died, or says so (SB-7).
    Kill,
}

/// Where orders come from.
pub(super) struct Control {
    socket: OwnedReadHalf,
    /// Signals that ask this process to end, which it does only after its processes have ended.
    signals: [Signal; 4],
}

impl Control {
    /// From here on signals are orders.
    pub(super) fn new(socket: OwnedReadHalf) -> io::Result<Self> {
        let kinds =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
        let [term, int, hang_up, quit] = kinds.map(signal);
        Ok(Self { socket, signals: [term?, int?, hang_up?, quit?] })
    }

    /// The next order.
    ///
    /// # Cancel safety
    /// Dropping the future loses no order.
    pub(super) async fn next(&mut self) -> Order {
        let [term, int, hang_up, quit] = &mut self.signals;
        let mut byte = [0];
        tokio::select! {
            biased;
            read = self.socket.read(&mut byte) => match read {
                Ok(1..) => Order::Terminate,
                Ok(0) | Err(_) => Order::Kill,
            },
            _ = term.recv() => Order::Terminate,
            _ = int.recv() => Order::Terminate,
            _ = hang_up.recv() => Order::Terminate,
            _ = quit.recv() => Order::Terminate,
        }
    }

    /// Waits for an order to kill.
    ///
    /// # Cancel safety
    /// Dropping the future loses no order to kill.
    pub(super) async fn killed(&mut self) {
        while self.next().await != Order::Kill {}
    }
}
