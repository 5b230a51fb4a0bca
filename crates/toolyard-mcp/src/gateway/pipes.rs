//! Between rmcp and a client's pipes: messages out, bounded lines in, and an answer to those that rmcp would pass over.

use super::{
    flying::{Flight, Open},
    refusal::Refusal,
    sent::{self, Sent},
};
use crate::{
    frame::{FrameFault, LINE_BYTES_MAX, Lines},
    out::Out,
};
use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::io;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
};

/// A client's pipes.
pub(super) struct Pipes<R, W> {
    lines: Lines<R>,
    out: Out<W>,
    open: Open,
    /// An answer that is being written. Nothing is read meanwhile, so that nothing piles up for who does not read.
    answering: Option<JoinHandle<io::Result<()>>>,
}

impl<R, W> Pipes<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(read: R, write: W) -> Self {
        Self {
            // A client may close its end behind its last request.
            lines: Lines::new(read, LINE_BYTES_MAX).and_rest(),
            out: Out::new(write),
            open: Open::default(),
            answering: None,
        }
    }

    /// Answers a message itself, in a task: what reads may be dropped at any time, and half a line must not be left.
    fn refuse(&mut self, refusal: Refusal) {
        tracing::debug!(?refusal, "a message of a client was refused");
        let out = self.out.clone();
        self.answering = Some(tokio::spawn(async move { out.put(&refusal).await }));
    }

    /// What was sent next; `None` where there is no more.
    async fn next(&mut self) -> Option<Sent> {
        match self.lines.next().await {
            Ok(line) => line.map(sent::read),
            Err(FrameFault::TooLong(bytes)) => {
                let why = format!("the message has more than {bytes} bytes");
                Some(Sent::Refused(Refusal::no_request(None, why)))
            }
            Err(FrameFault::Broken(error)) => {
                tracing::debug!(%error, "a client's pipe broke");
                None
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Pipes<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.open.answered(&message).iter().for_each(Flight::land);
        let out = self.out.clone();
        async move { out.put(&message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answering) = &mut self.answering {
                // A pipe that takes nothing any more is noticed when it is read.
                let _ = answering.await;
                self.answering = None;
            }
            match self.next().await? {
                Sent::Message(message) => match self.open.has_come(&message) {
                    Ok(_) => return Some(*message),
                    Err(id) => self.refuse(Refusal::twice(id)),
                },
                Sent::Refused(refusal) => self.refuse(refusal),
                Sent::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out.close().await;
        Ok(())
    }
}
