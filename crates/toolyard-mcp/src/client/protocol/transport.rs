//! Between rmcp and a server's pipes: messages out, bounded lines in.

use super::{
    greeting::{AnswerTimeouts, PendingDiscover},
    inspect::Disconnect,
    line::Reader,
};
use crate::{
    frame::{LINE_BYTES_MAX, Lines},
    out::Out,
};
use rmcp::{
    RoleClient,
    model::{ClientRequest, JsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{timeout, timeout_at},
};

/// How long a server may leave a line unread. A busy server reads late; one that does not read at all is given up,
/// because messages to it would pile up forever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);

/// A server's pipes.
pub(crate) struct Pipes<R, W> {
    lines: Lines<R>,
    reader: Reader,
    out: Out<W>,
    discover: PendingDiscover,
    disconnect: Disconnect,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Pipes<R, W> {
    pub(crate) fn new(read: R, write: W, timeouts: AnswerTimeouts, disconnect: Disconnect) -> Self {
        let (lines, out) = (Lines::new(read, LINE_BYTES_MAX), Out::new(write));
        Self { lines, reader: Reader::default(), out, discover: PendingDiscover::new(timeouts), disconnect }
    }

    /// The next message; `None` at the end.
    async fn message(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let read = match self.lines.next().await {
                Ok(Some(line)) => self.reader.read(line),
                Ok(None) => {
                    self.disconnect.record("it closed its output");
                    return None;
                }
                Err(error) => {
                    self.disconnect.record(error);
                    return None;
                }
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => continue,
                Err(error) => {
                    self.disconnect.record(error);
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
            self.discover.sent(request.id.clone());
        }
        let (out, disconnect) = (self.out.clone(), self.disconnect.clone());
        async move {
            match timeout(WRITE_TIMEOUT, out.write(&message)).await {
                Ok(written) => written,
                Err(_) => {
                    disconnect.record("it does not read its input");
                    Err(io::ErrorKind::TimedOut.into())
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = match self.discover.deadline() {
                None => self.message().await?,
                Some(deadline) => match timeout_at(deadline, self.message()).await {
                    Ok(message) => message?,
                    Err(_) => return self.discover.give_up(),
                },
            };
            if let Some(message) = self.discover.filter(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out.close().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protocol::greeting;
    use rmcp::model::{ClientJsonRpcMessage, ClientNotification, InitializedNotification};

    /// A server that does not read is given up after a while, so that messages do not pile up.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_is_lost() {
        let (near, _far) = tokio::io::duplex(8);
        let disconnect = Disconnect::default();
        let timeouts = greeting::AnswerTimeouts {
            discover: greeting::DISCOVER_TIMEOUT,
            any: greeting::DISCOVER_TIMEOUT,
        };
        let mut pipes = Pipes::new(tokio::io::empty(), near, timeouts, disconnect.clone());
        let note = ClientNotification::InitializedNotification(InitializedNotification::default());
        let sent = pipes.send(ClientJsonRpcMessage::notification(note)).await;
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(disconnect.why(), Some("it does not read its input"));
    }
}
