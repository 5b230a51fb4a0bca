//! Between rmcp and a client's pipes: messages out, bounded lines in, and answers to messages that rmcp would ignore.

use super::{
    in_flight::{InFlight, TakenId},
    incoming::{self, Incoming},
    limits::{Room, Share},
    refusal::Refusal,
};
use crate::{
    frame::{FrameError, Lines},
    out::Out,
};
use rmcp::{
    RoleServer,
    model::{ClientRequest, JsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::{io, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
};

/// A client's pipes.
pub(super) struct Pipes<R, W> {
    lines: Lines<R>,
    room: Arc<Room>,
    share: Share,
    out: Out<W>,
    in_flight: InFlight,
    /// An answer being written. Nothing is read meanwhile, so that answers do not pile up if the client does not read.
    answering: Option<JoinHandle<io::Result<()>>>,
}

impl<R, W> Pipes<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(read: R, write: W, room: Arc<Room>) -> Self {
        Self {
            // A client may close its end right after its last request.
            lines: Lines::new(read, room.message_max(false)).with_unterminated_last(),
            share: room.whole(),
            room,
            out: Out::new(write),
            in_flight: InFlight::default(),
            answering: None,
        }
    }

    /// Answers a message here, in a task: the reading future may be dropped at any time, which must not leave half a
    /// line.
    fn refuse(&mut self, refusal: Refusal) {
        tracing::debug!(?refusal, "a message of a client was refused");
        let out = self.out.clone();
        self.answering = Some(tokio::spawn(async move { out.write(&refusal).await }));
    }

    /// The next thing that the client sent; `None` at the end.
    async fn next(&mut self) -> Option<Incoming> {
        match self.lines.next().await {
            Ok(line) => line.map(|line| incoming::receive(line, &self.share)),
            Err(FrameError::TooLong(bytes)) => {
                let why = format!("the message has more than {bytes} bytes");
                Some(Incoming::Refused(Refusal::invalid_request(None, why)))
            }
            Err(FrameError::Broken(error)) => {
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
        self.in_flight.answered(&message).iter().for_each(TakenId::release);
        let out = self.out.clone();
        async move { out.write(&message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answering) = &mut self.answering {
                // A broken pipe is noticed by the next read.
                let _ = answering.await;
                self.answering = None;
            }
            match self.next().await? {
                Incoming::Message(message) => match self.in_flight.received(&message) {
                    Ok(_) => {
                        if is_opening(&message) {
                            self.lines.set_bytes_max(self.room.message_max(true));
                        }
                        return Some(*message);
                    }
                    Err(id) => self.refuse(Refusal::duplicate_id(id)),
                },
                Incoming::Refused(refusal) => self.refuse(refusal),
                Incoming::Ignored => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out.close().await;
        Ok(())
    }
}

fn is_opening(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}
