//! Writes messages, one per line.

use serde::Serialize;
use std::{io, sync::Arc};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::Mutex,
};

/// The write end of a pipe, shared by writers that take turns. Clones share the pipe.
pub(crate) struct Out<W>(Arc<Mutex<Option<W>>>);

impl<W> Clone for Out<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<W: AsyncWrite + Unpin> Out<W> {
    pub(crate) fn new(write: W) -> Self {
        Self(Arc::new(Mutex::new(Some(write))))
    }

    /// Writes a message.
    ///
    /// # Errors
    /// If the pipe is broken or closed.
    ///
    /// # Cancel safety
    /// Dropping the future may leave half a line.
    pub(crate) async fn write(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut write = self.0.lock().await;
        let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        write.write_all(&line).await?;
        write.flush().await
    }

    /// Closes the pipe.
    pub(crate) async fn close(&self) {
        self.0.lock().await.take();
    }
}
