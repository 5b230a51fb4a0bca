//! The lines for the parent, in order, of which so many bytes wait at most.

use std::sync::Arc;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

/// How many bytes of lines wait for the parent to read them.
const WAITING_MAX: u32 = 64 << 20;

/// What a line counts beside its bytes.
const LINE_BYTES: usize = 128;

/// How many bytes are written at once, if they are there.
const WRITE_BYTES: usize = 64 << 10;

/// Where lines are put. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Out {
    lines: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
}

/// What waits to be written.
#[derive(Debug)]
enum Waiting {
    Line {
        bytes: Vec<u8>,
        /// Given back once it is written; one that must be told whatever waits has none.
        _room: Option<OwnedSemaphorePermit>,
    },
    /// Nothing is written behind this.
    End,
}

/// What writes the lines.
pub(super) struct Writing {
    lines: mpsc::UnboundedReceiver<Waiting>,
    room: Arc<Semaphore>,
}

/// The parent reads no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

pub(super) fn out() -> (Out, Writing) {
    let (tell, lines) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(WAITING_MAX as usize));
    (Out { lines: tell, room: room.clone() }, Writing { lines, room })
}

impl Out {
    /// Puts a line behind those that wait, once there is room for it.
    ///
    /// # Cancel safety
    /// If the future is dropped, the line is not told.
    pub(super) async fn tell(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        let room = self.room(&bytes).await?;
        self.put(bytes, Some(room))
    }

    /// Waits for room for a line.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn room(&self, bytes: &[u8]) -> Result<OwnedSemaphorePermit, Gone> {
        self.room.clone().acquire_many_owned(weight(bytes)).await.map_err(|_| Gone)
    }

    /// Puts a line behind those that wait, or returns it if there is no room for it.
    pub(super) fn try_tell(&self, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        match self.room.clone().try_acquire_many_owned(weight(&bytes)) {
            Ok(room) => {
                let _ = self.put(bytes, Some(room)); // a parent that has gone is noticed elsewhere
                Ok(())
            }
            Err(_) => Err(bytes),
        }
    }

    /// Puts a short line behind those that wait, of which there are few.
    pub(super) fn tell_now(&self, bytes: Vec<u8>) {
        let _ = self.put(bytes, None);
    }

    /// Puts a line behind those that wait, in the room that is there for it.
    pub(super) fn put(&self, bytes: Vec<u8>, room: Option<OwnedSemaphorePermit>) -> Result<(), Gone> {
        self.lines.send(Waiting::Line { bytes, _room: room }).map_err(|_| Gone)
    }

    /// Lines that are put from now on are not written.
    pub(super) fn end(&self) {
        let _ = self.lines.send(Waiting::End);
    }

    /// Waits until the parent reads no more.
    pub(super) async fn gone(&self) {
        self.lines.closed().await;
    }
}

fn weight(bytes: &[u8]) -> u32 {
    // A line that is larger than all the room takes all of it.
    u32::try_from(bytes.len() + LINE_BYTES).map_or(WAITING_MAX, |bytes| bytes.min(WAITING_MAX))
}

impl Writing {
    /// Writes lines until nobody puts any more, or they cannot be written.
    pub(super) async fn run(mut self, mut to: impl AsyncWrite + Unpin) {
        let mut bytes = Vec::new();
        let (mut held, mut is_over) = (Vec::new(), false);
        while !is_over {
            let mut next = self.lines.recv().await;
            while let Some(Waiting::Line { bytes: line, _room }) = next {
                bytes.extend_from_slice(&line);
                held.push(_room);
                next = match bytes.len() < WRITE_BYTES {
                    true => self.lines.try_recv().ok(),
                    false => None,
                };
            }
            is_over = matches!(next, Some(Waiting::End)) || held.is_empty();
            if to.write_all(&bytes).await.is_err() || to.flush().await.is_err() {
                break;
            }
            bytes.clear();
            bytes.shrink_to(4 * WRITE_BYTES); // one long line does not keep its memory
            held.clear();
        }
        let _ = to.shutdown().await;
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // Whoever waits for room hears that there is nobody to tell.
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use tokio::io::AsyncReadExt as _;

    /// AG-14: lines are told in order, and one that is larger than all the room is told alone.
    #[tokio::test]
    async fn a_line_waits_for_room() {
        let (out, writing) = out();
        out.tell(vec![b'a'; WAITING_MAX as usize]).await.unwrap();
        assert!(out.tell(b"b".to_vec()).now_or_never().is_none(), "there is no room");
        assert_eq!(out.try_tell(b"c".to_vec()), Err(b"c".to_vec()));
        out.tell_now(b"d".to_vec());
        let (to, mut from) = tokio::io::duplex(1 << 20);
        let told = tokio::spawn({
            let out = out.clone();
            async move { out.tell(b"e".to_vec()).await }
        });
        drop(out);
        let (mut read, ()) = (Vec::new(), tokio::task::yield_now().await);
        let (_, size) = tokio::join!(writing.run(to), from.read_to_end(&mut read));
        assert_eq!((size.unwrap(), &read[read.len() - 2..]), (WAITING_MAX as usize + 2, &b"de"[..]));
        assert_eq!(told.await.unwrap(), Ok(()));
    }

    /// AG-14: nobody waits for a parent that has gone.
    #[tokio::test]
    async fn a_parent_that_has_gone_is_not_waited_for() {
        let (out, writing) = out();
        let (to, from) = tokio::io::duplex(8);
        drop(from);
        out.tell(vec![b'a'; WAITING_MAX as usize]).await.unwrap();
        let ((), told) = tokio::join!(writing.run(to), out.tell(b"b".to_vec()));
        assert_eq!(told, Err(Gone));
        out.gone().await;
    }
}
