//! The one way out of a confined program, as the program that started it sees it.
//!
//! ```text
//!   Program::start ──── a socket, with the launch ───► helper: leaves its namespaces, listens on the loopback there
//!   Door::opened  ◄─── the listener, as a descriptor ──┘
//!        │
//!        └─ accepts here what the program connects to there
//! ```
//!
//! A socket belongs to the network namespace it was made in, whoever has it. So this program accepts connections from
//! inside, and what it dials for them it dials from outside: nothing else joins the two.

use crate::launch::rights;
use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
};
use tokio::{
    io::Interest,
    net::{TcpListener, UnixStream},
};

/// The one way out of a confined program that [has one](crate::Confinement::door): a port on the loopback of its own
/// network namespace. What it leads to is up to whoever accepts its connections. Linux only.
///
/// # Examples
/// A program that is told one thing:
/// ```no_run
/// use tokio::io::AsyncWriteExt;
/// use toolyard_process::{Confinement, Containment, Door, Helper, Program};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let ask = format!("cat </dev/tcp/127.0.0.1/{}", Door::PORT);
/// let program = Program::new("/bin/bash").args(["-c", &ask]).confined(Confinement::new().door());
/// let mut started = program.start(&Containment::Helper(Helper::this_program()?))?;
/// let listener = started.door.take().expect("it has one").opened().await?;
/// listener.accept().await?.0.write_all(b"hello\n").await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a program waits at a door that nobody opens"]
pub struct Door {
    socket: UnixStream,
}

impl Door {
    /// The port on 127.0.0.1 that the program connects to.
    pub const PORT: u16 = 3128;

    /// A door, and the end of it that goes to the helper.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self { socket: UnixStream::from_std(ours)? }, theirs.into()))
    }

    /// Waits until the program is confined, which it is when it [has started](crate::Processes::started), and returns
    /// the listener that it connects to. Whoever drops that has closed the door.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) when it could not be confined; otherwise those of the system.
    ///
    /// # Cancel safety
    /// Dropping the future closes the door.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn opened(self) -> io::Result<TcpListener> {
        let mut descriptors = Vec::new();
        let receive = || rights::receive(&self.socket, &mut [0], &mut descriptors);
        self.socket.async_io(Interest::READABLE, receive).await?;
        let listener = descriptors.pop().ok_or_else(|| io::Error::other("no listener came"))?;
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[tokio::test]
    async fn what_is_sent_is_opened() {
        let (door, theirs) = Door::new().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        rights::send(&theirs.into(), &[0], &[listener.as_fd()]).unwrap();
        let opened = door.opened().await.unwrap();
        assert_eq!(opened.local_addr().unwrap(), listener.local_addr().unwrap());
    }

    /// SM-3: a helper that ends before it has confined the program has opened no door.
    #[tokio::test]
    async fn a_door_that_nobody_opens_is_an_error() {
        let (door, theirs) = Door::new().unwrap();
        drop(theirs);
        assert_eq!(door.opened().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
