//! The output of a process, read no further than there is a place for it.

use super::{Intake, Place, SHORT_BYTES, Slow};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, ReadBuf},
    time::{Sleep, sleep_until},
};
use tokio_util::sync::PollSemaphore;

/// The output of a server, read no further than there is a place for it.
pub(crate) struct Paced<R> {
    inner: R,
    places: PollSemaphore,
    place: Option<(Place, Pin<Box<Sleep>>)>,
    /// The bytes of the current line that were read so far.
    line_bytes: usize,
    /// Whether the last read had the end of a line, which is parsed before the next read.
    has_ended: bool,
}

impl<R> Paced<R> {
    pub(crate) fn new(inner: R, intake: &Intake) -> Self {
        let places = PollSemaphore::new(intake.0.clone());
        Self { inner, places, place: None, line_bytes: 0, has_ended: false }
    }

    /// Counts what was read.
    fn count(&mut self, bytes: &[u8]) {
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => (self.line_bytes, self.has_ended) = (bytes.len() - end - 1, true),
            None => self.line_bytes = self.line_bytes.saturating_add(bytes.len()),
        }
    }

    /// Waits for a place if the line needs one; fails if the time of the place is over.
    fn poll_place(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.has_ended) {
            self.place = None;
        }
        if self.place.is_none() && self.line_bytes > SHORT_BYTES {
            let permit = ready!(self.places.poll_acquire(cx)).expect("the places are never closed");
            let place = Place::new(permit);
            let over = Box::pin(sleep_until(place.deadline));
            self.place = Some((place, over));
        }
        if self.place.as_mut().is_some_and(|(_, over)| over.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, Slow)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Paced<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_place(cx))?;
        let filled = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buffer))?;
        this.count(&buffer.filled()[filled..]);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protocol::intake::{PLACES, REST_TIMEOUT};
    use crate::frame::{LINE_BYTES_MAX, Lines};
    use futures::FutureExt;
    use tokio::{
        io::{AsyncWriteExt, DuplexStream},
        time::advance,
    };

    /// A server's end of a pipe, and its lines.
    fn server(intake: &Intake) -> (DuplexStream, Lines<Paced<DuplexStream>>) {
        let (write, read) = tokio::io::duplex(1 << 20);
        (write, Lines::new(Paced::new(read, intake), LINE_BYTES_MAX))
    }

    /// Sends this many bytes without the end of a line.
    async fn send(write: &mut DuplexStream, bytes: usize) {
        write.write_all(&vec![b'x'; bytes]).await.unwrap();
    }

    /// Only so many long messages are in memory at once; short ones pass, and a place is free when its message is read.
    #[tokio::test(start_paused = true)]
    async fn long_messages_wait_for_a_place_and_short_ones_do_not() {
        let intake = Intake::default();
        let mut servers: Vec<_> = (0..PLACES).map(|_| server(&intake)).collect();
        for (write, lines) in &mut servers {
            send(write, 2 * SHORT_BYTES).await;
            assert!(lines.next().now_or_never().is_none());
        }
        let (mut write, mut waiting) = server(&intake);
        write.write_all(b"short\n").await.unwrap();
        assert_eq!(waiting.next().await.unwrap(), Some(&b"short"[..]));
        send(&mut write, 2 * SHORT_BYTES).await;
        write.write_all(b"\n").await.unwrap();
        assert!(waiting.next().now_or_never().is_none(), "there was a fifth place");
        let (first, lines) = &mut servers[0];
        first.write_all(b"\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap().unwrap().len(), 2 * SHORT_BYTES);
        assert!(waiting.next().now_or_never().is_none(), "the message is still being parsed");
        assert!(lines.next().now_or_never().is_none());
        assert_eq!(waiting.next().await.unwrap().unwrap().len(), 2 * SHORT_BYTES);
    }

    /// A server that holds a place and sends no more loses its connection, and the others go on.
    #[tokio::test(start_paused = true)]
    async fn a_place_is_not_held_for_ever() {
        let intake = Intake::default();
        let (mut write, mut lines) = server(&intake);
        send(&mut write, 2 * SHORT_BYTES).await;
        assert!(lines.next().now_or_never().is_none());
        assert_eq!(intake.0.available_permits(), PLACES - 1);
        advance(REST_TIMEOUT).await;
        let error = lines.next().await.unwrap_err().to_string();
        assert_eq!(error, "reading from it failed: it took more than 60 s to send one message");
        drop(lines);
        assert_eq!(intake.0.available_permits(), PLACES);
    }
}
