//! QMP, the protocol by which QEMU is told what to do: one JSON document a line.

use super::lines::Lines;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};
use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
};
use tokio::{
    io::{AsyncWriteExt as _, BufReader, Interest},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// A connection to QEMU.
pub(super) struct Qmp {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Qmp {
    /// Takes the greeting of a QEMU that has connected.
    pub(super) async fn greeted(stream: UnixStream) -> io::Result<Self> {
        let (reader, writer) = stream.into_split();
        let mut qmp = Self { lines: Lines::new(BufReader::new(reader)), writer };
        qmp.lines.next::<Value>().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        qmp.execute("qmp_capabilities", json!({})).await?;
        Ok(qmp)
    }

    /// Executes a command.
    pub(super) async fn execute(&mut self, command: &str, arguments: Value) -> io::Result<Value> {
        self.writer.write_all(&line(command, &arguments)).await?;
        self.answer(command).await
    }

    /// Hands a file to QEMU under this name.
    pub(super) async fn give(&mut self, name: &str, file: impl AsFd) -> io::Result<()> {
        let line = line("getfd", &json!({"fdname": name}));
        let stream = self.writer.as_ref();
        // The socket takes a line as short as this at once, or none of it.
        let sent = stream.async_io(Interest::WRITABLE, || send_with(stream, &line, file.as_fd())).await?;
        self.writer.write_all(&line[sent..]).await?;
        self.answer("getfd").await.map(drop)
    }

    /// What QEMU answers, past the events in front of that.
    async fn answer(&mut self, command: &str) -> io::Result<Value> {
        loop {
            let mut said: Value = self.lines.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if let Some(value) = said.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = said.get("error") {
                let why = error["desc"].as_str().unwrap_or("unknown error");
                return Err(io::Error::other(format!("QEMU refused {command}: {why}")));
            }
        }
    }
}

fn line(command: &str, arguments: &Value) -> Vec<u8> {
    format!("{}\n", json!({"execute": command, "arguments": arguments})).into_bytes()
}

fn send_with(stream: &UnixStream, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<usize> {
    let files = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !rights.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::other("no space for a descriptor"));
    }
    Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut rights, SendFlags::NOSIGNAL)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A QEMU that answers each line with the next of these.
    async fn qemu(answers: &'static [&'static str]) -> Qmp {
        let (ours, theirs) = UnixStream::pair().unwrap();
        tokio::spawn(async move {
            let (reader, mut writer) = theirs.into_split();
            let mut lines = Lines::new(BufReader::new(reader));
            writer.write_all(b"{\"QMP\":{}}\n").await.unwrap();
            for answer in answers {
                lines.next::<Value>().await.unwrap();
                writer.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Qmp::greeted(ours).await.unwrap()
    }

    #[tokio::test]
    async fn an_answer_is_found_behind_events() {
        let mut qmp = qemu(&["{\"return\":{}}\n", "{\"event\":\"STOP\"}\n{\"return\":7}\n"]).await;
        assert_eq!(qmp.execute("a", json!({})).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_refusal_says_why() {
        let mut qmp = qemu(&["{\"return\":{}}\n", "{\"error\":{\"desc\":\"no such file\"}}\n"]).await;
        let error = qmp.give("snapshot", io::stdin()).await.unwrap_err();
        assert_eq!(error.to_string(), "QEMU refused getfd: no such file");
        assert!(qmp.execute("b", json!({})).await.is_err(), "it has ended");
    }
}
