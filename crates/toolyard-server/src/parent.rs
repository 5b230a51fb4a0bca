//! A parent program, which has started this one and speaks with it in lines (AG-14).
//!
//! ```text
//!   lines ─► Ask ─┬─ respond, tool_calls ─► turns ─► session, as over HTTP ─► answers ──┐
//!                 ├─ register ────────────► functions ─► the engine's tools ─► invoked ─┤
//!                 ├─ tool_result … ───────► the invocation that waits for it            ├─► out ─► parent
//!                 ├─ confirmation ────────► questions ─────────────── asked ────────────┤
//!                 └─ hello, open … ───────► an answer ──────────────────────────────────┘
//! ```
//!
//! Lines are read all the time: a call may wait for a function whose result stands behind it. What has a bound is refused
//! and does not wait. The one thing that holds back the reader is a parent that does not read.

mod answers;
mod ask;
mod conversation;
mod definition;
mod deltas;
mod events;
mod functions;
mod names;
mod nested;
mod out;
mod questions;
mod reply;
mod running;
mod tell;
mod turns;

pub(crate) use conversation::SESSION;
pub(crate) use deltas::Deltas;

use crate::server::Server;
use conversation::Conversation;
use std::{io, pin::pin, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};
use tokio_util::{
    codec::{FramedRead, LinesCodec, LinesCodecError},
    sync::CancellationToken,
};

/// The longest line of a parent, in bytes.
const LINE_BYTES_MAX: usize = 64 << 20;

/// How long calls have to end when the parent has gone or the program is told to end.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How long a parent has to read its last lines when the program is told to end.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How a conversation with a parent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TalkEnd {
    /// The parent has said bye, and all is answered.
    Bye,
    /// The parent has closed its end, or has gone.
    Closed,
    /// It was told to end, and all is answered or has had its time.
    Stopped,
}

/// Why a conversation with a parent cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TalkError {
    /// A line is too long.
    #[error("a line of the parent has more than {LINE_BYTES_MAX} bytes: send less at once")]
    TooLong,
    /// Lines cannot be read, or are not UTF-8.
    #[error("the parent's lines cannot be read: {0}")]
    Read(#[from] io::Error),
    /// Another parent is spoken with, or was.
    #[error("a server has one parent")]
    Twice,
}

impl From<LinesCodecError> for TalkError {
    fn from(error: LinesCodecError) -> Self {
        match error {
            LinesCodecError::MaxLineLengthExceeded => Self::TooLong,
            LinesCodecError::Io(error) => Self::Read(error),
        }
    }
}

impl Server {
    /// Speaks with a parent program, whose lines come from `from` and whose answers go to `to`, until it says bye, closes
    /// its end, or `stop` fires; `docs/stdio.md` is the protocol. Its sessions are served over HTTP too, to those who may
    /// see them, if the server [serves](Self::serve). When `stop` fires, shut the engine down, so that its calls end.
    ///
    /// # Errors
    /// [`TalkError`]: the conversation is over, and what it has begun is cancelled.
    ///
    /// # Cancel safety
    /// Dropping the future cancels what the parent has begun.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use tokio_util::sync::CancellationToken;
    /// use toolyard::Engine;
    /// use toolyard_server::{Front, Server, ServerOptions, TalkEnd};
    /// let front = Front::default();
    /// let engine = Engine::builder().approver(front.clone()).events(front.clone()).build().await.unwrap();
    /// let server = Server::new(engine, front, ServerOptions::default()).unwrap();
    /// let (from, mut to) = (&b"{\"op\":\"bye\",\"id\":1}\n"[..], Vec::new());
    /// let end = server.talk(from, &mut to, CancellationToken::new()).await.unwrap();
    /// assert_eq!((end, &to[..]), (TalkEnd::Bye, &b"{\"op\":\"goodbye\",\"id\":1}\n"[..]));
    /// # }
    /// ```
    pub async fn talk(
        &self,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
        stop: CancellationToken,
    ) -> Result<TalkEnd, TalkError> {
        let (out, writing) = out::out();
        let conversation = Conversation::new(self.app().clone(), out.clone())?;
        let lines = FramedRead::new(from, LinesCodec::new_with_max_length(LINE_BYTES_MAX));
        let mut writing = pin!(writing.run(to));
        let mut talking = pin!(conversation.run(lines, stop.clone()));
        let mut is_read = true;
        let talked = loop {
            tokio::select! {
                biased;
                talked = &mut talking => break talked,
                // A parent that reads no more is noticed by the conversation.
                () = &mut writing, if is_read => is_read = false,
            }
        };
        out.end();
        if is_read {
            // A parent that has said bye reads on. Others do not keep the program.
            let stopped = async {
                if matches!(talked, Ok(TalkEnd::Bye)) {
                    stop.cancelled().await;
                }
                sleep(LAST_LINES).await;
            };
            tokio::select! {
                () = writing => {}
                () = stopped => {}
            }
        }
        talked
    }
}
