//! Bytes over a socket, and descriptors with them (`SCM_RIGHTS`).
//!
//! A descriptor that is known by its number alone could only be used by unsafe code; one that comes with a message is
//! owned.

use rustix::{
    cmsg_space,
    io::retry_on_intr,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg,
    },
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

/// The most descriptors that go with one message.
const DESCRIPTORS_MAX: usize = 8 + crate::confine::GRANTS_MAX;

/// Sends descriptors, and as many of the bytes as the socket takes at once; returns how many.
pub(crate) fn send(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    Ok(retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL))?)
}

/// Fills `bytes`, and adds the descriptors that come with them. A socket that does not block gives them one by one.
pub(crate) fn receive(socket: impl AsFd, bytes: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let rest = &mut bytes[filled..];
        // None of them reaches a process that is started, unless it is given to it.
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = retry_on_intr(|| recvmsg(&socket, &mut [IoSliceMut::new(rest)], &mut control, flags))?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += received.bytes;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(owned) = message {
                descriptors.extend(owned);
            }
        }
    }
    Ok(())
}
