//! Between rmcp and a server's pipes: messages out, bounded lines in.

use super::{
    frame::{LINE_BYTES_MAX, Lines},
    greeting::{Asked, Patience},
    line::Reader,
    watched::Gone,
};
use rmcp::{
    RoleClient,
    model::{ClientRequest, JsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::{io, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::Mutex,
    time::timeout_at,
};

/// A server's pipes.
pub(super) struct Pipes<R, W> {
    lines: Lines<R>,
    reader: Reader,
    write: Arc<Mutex<Option<W>>>,
    asked: Asked,
    gone: Gone,
}

impl<R: AsyncRead + Unpin, W> Pipes<R, W> {
    pub(super) fn new(read: R, write: W, patience: Patience, gone: Gone) -> Self {
        let write = Arc::new(Mutex::new(Some(write)));
        let lines = Lines::new(read, LINE_BYTES_MAX);
        Self { lines, reader: Reader::default(), write, asked: Asked::new(patience), gone }
    }

    /// The next message; `None` where there are no more.
    async fn message(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let read = match self.lines.next().await {
                Ok(Some(line)) => self.reader.read(line),
                Ok(None) => {
                    self.gone.because("it closed its output");
                    return None;
                }
                Err(fault) => {
                    self.gone.because(fault);
                    return None;
                }
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => continue,
                Err(fault) => {
                    self.gone.because(fault);
                    return None;
                }
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Pipes<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message
            && let ClientRequest::DiscoverRequest(_) = request.request
        {
            self.asked.ask(request.id.clone());
        }
        let write = self.write.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = match self.asked.until() {
                None => self.message().await?,
                Some(until) => match timeout_at(until, self.message()).await {
                    Ok(message) => message?,
                    Err(_) => return self.asked.give_up(),
                },
            };
            if let Some(message) = self.asked.heard(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.take();
        Ok(())
    }
}
