//! Opens the door of a confined program: a listener on the loopback of its own network namespace, where there is nothing
//! else.

use super::user::named;
use crate::{Door, launch::rights};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
};

/// The loopback of every network namespace.
const LOOPBACK: i32 = 1;

/// Wants an answer: `NLM_F_REQUEST` and `NLM_F_ACK`.
const FLAGS: u16 = 0x5;

/// The length of the message that sets an interface up, and that of an answer up to its error.
const SET_UP_BYTES: u32 = 32;
const ANSWER_BYTES: usize = 20;

/// Opens the door in the network namespace of this process, and sends it to whoever will serve it.
pub(super) fn open(to: OwnedFd) -> io::Result<()> {
    set_up_loopback().map_err(|error| named("set its loopback up", error))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, Door::PORT))
        .map_err(|error| named("listen on its loopback", error))?;
    rights::send(&UnixStream::from(to), &[0], &[listener.as_fd()]).map(drop)
}

/// A new namespace has a loopback that is down.
fn set_up_loopback() -> io::Result<()> {
    let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&netlink, &set_up(), SendFlags::empty())?;
    let mut answer = [0; 512];
    let (length, _) = recv(&netlink, &mut answer[..], RecvFlags::empty())?;
    match error_of(&answer[..length]) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        None => Err(io::Error::other("the kernel's answer is none")),
    }
}

/// The message: `nlmsghdr` with `ifinfomsg`, in the byte order of this machine.
fn set_up() -> Vec<u8> {
    let up = libc::IFF_UP.to_ne_bytes();
    let number_and_port = [0; 8];
    let family_and_type = [0; 4];
    [
        &SET_UP_BYTES.to_ne_bytes()[..],
        &libc::RTM_NEWLINK.to_ne_bytes(),
        &FLAGS.to_ne_bytes(),
        &number_and_port,
        &family_and_type,
        &LOOPBACK.to_ne_bytes(),
        &up,
        &up, // which of the flags change
    ]
    .concat()
}

/// The error in an answer, negative, or 0 for none; `None` if it is no answer.
fn error_of(answer: &[u8]) -> Option<i32> {
    let error = answer.get(16..ANSWER_BYTES)?.try_into().ok()?;
    let kind = answer.get(4..6)?.try_into().ok()?;
    let is_answer = i32::from(u16::from_ne_bytes(kind)) == libc::NLMSG_ERROR;
    is_answer.then(|| i32::from_ne_bytes(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_as_long_as_it_says() {
        assert_eq!(set_up().len(), usize::try_from(SET_UP_BYTES).unwrap());
        assert_eq!(i32::from(FLAGS), libc::NLM_F_REQUEST | libc::NLM_F_ACK);
    }

    #[test]
    fn an_answer_is_read_as_far_as_it_goes() {
        let of = |kind: u16, error: i32| {
            [&[0; 4][..], &kind.to_ne_bytes(), &[0; 10], &error.to_ne_bytes(), &[0; 16]].concat()
        };
        assert_eq!(
            [error_of(&of(2, 0)), error_of(&of(2, -1)), error_of(&of(3, 0))],
            [Some(0), Some(-1), None]
        );
        assert_eq!(error_of(&of(2, 0)[..19]), None);
    }
}
