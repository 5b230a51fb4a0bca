//! Between rmcp and a server's pipes: messages out, bounded lines in.

use super::{
    frame::{LINE_BYTES_MAX, Lines},
    line::Reader,
    progress::{Calls, Sink},
};
use rmcp::{
    RoleClient,
    model::{ClientRequest, GetMeta, JsonRpcMessage, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::{
    io,
    sync::{Arc, OnceLock},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::Mutex,
};
use tokio_util::sync::CancellationToken;

/// Why a server is heard no more, once it is not.
#[derive(Debug, Clone, Default)]
pub(super) struct Gone(Arc<OnceLock<String>>, CancellationToken);

impl Gone {
    /// Notes it; the first reason stays.
    pub(super) fn because(&self, why: impl ToString) {
        let _ = self.0.set(why.to_string());
        self.1.cancel();
    }

    /// Waits until there is one.
    pub(super) async fn wait(&self) {
        self.1.cancelled().await;
    }

    /// The reason.
    pub(super) fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// A server's pipes.
pub(super) struct Pipes<R, W> {
    lines: Lines<R>,
    reader: Reader,
    write: Arc<Mutex<Option<W>>>,
    calls: Calls,
    gone: Gone,
}

impl<R: AsyncRead + Unpin, W> Pipes<R, W> {
    pub(super) fn new(read: R, write: W, gone: Gone) -> Self {
        let write = Arc::new(Mutex::new(Some(write)));
        let lines = Lines::new(read, LINE_BYTES_MAX);
        Self { lines, reader: Reader::default(), write, calls: Calls::default(), gone }
    }

    /// Notes where the progress of a call goes, before its request is written.
    fn note(&self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        let ClientRequest::CallToolRequest(call) = &request.request else { return };
        let token = request.request.get_meta().get_progress_token();
        if let (Some(token), Some(sink)) = (token, call.extensions.get::<Sink>()) {
            self.calls.note(token, sink);
        }
    }

    /// The message in a line, if it is not for us alone.
    fn heard(&self, message: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        match &message {
            JsonRpcMessage::Notification(note) => match &note.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.calls.tell(&progress.params);
                    None
                }
                _ => Some(message),
            },
            _ => Some(message),
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
        self.note(&message);
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
                Ok(message) => match message.and_then(|message| self.heard(message)) {
                    Some(message) => return Some(message),
                    None => continue,
                },
                Err(fault) => {
                    self.gone.because(fault);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.gone.because("the connection was closed");
        self.write.lock().await.take();
        Ok(())
    }
}
