//! The two processes between a helper and a confined program: the helper itself, which makes the namespaces, and the
//! first process in them.
//!
//! ```text
//!   helper   namespaces ─► door ─► root ─► starts init, hands on what it was told ─► waits
//!   init     enters the root ─► gives up what it had ─► supervises the program, over the helper's own socket
//! ```

use super::{door, rights, root, syscalls, user};
use crate::{
    helper::{Supervision, THIS_PROGRAM},
    launch::Received,
    message::Message,
};
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setsid};
use std::{
    io::{self, Write as _},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Child, Command, Stdio},
};

/// The argument of a program that is started as the first process inside.
pub(crate) const INIT: &str = "--toolyard-init-process";

/// The name of that process in process lists, and of its machine in its own eyes.
const INIT_NAME: &str = "toolyard-init";
const HOST_NAME: &[u8] = b"toolyard";

/// Starts a program confined, and waits until all of it has ended. For a helper, which has one thread, and is of no other
/// use afterwards: it has left its namespaces.
pub(crate) fn start(received: Received, socket: UnixStream) -> io::Result<()> {
    let mut messages = socket.try_clone()?;
    match hand_on(received, socket) {
        Ok(mut init) => init.wait().map(drop),
        Err(error) => messages.write_all(&Message::NotConfined(error.to_string()).line()),
    }
}

/// Makes what the program is confined to, and starts init in it.
fn hand_on(mut received: Received, socket: UnixStream) -> io::Result<Child> {
    let door = received.take_door()?;
    let Some(confined) = received.confined() else {
        return Err(io::Error::other("nothing to confine it to"));
    };
    let who = user::leave()?;
    door.map_or(Ok(()), door::open)?;
    root::make(&confined.layout, received.handles(), who)?;
    user::hand_down()?;
    let (ours, theirs) = UnixStream::pair()?;
    let mut init = Command::new(THIS_PROGRAM);
    init.arg0(INIT_NAME).arg(INIT).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
    let init = init.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    received.send_inside(&ours, socket.into())?;
    Ok(init)
}

/// Runs as init: enters the root, and supervises the program there.
pub(crate) fn init(socket: &UnixStream) -> io::Result<()> {
    setsid()?;
    let (received, control) = Received::receive_inside(socket)?;
    let mut messages = UnixStream::from(control.try_clone()?);
    if let Err(error) = enter(&received) {
        return messages.write_all(&Message::NotConfined(error.to_string()).line());
    }
    match received.into_command() {
        Ok(command) => Supervision::run(command, control.into()),
        Err(error) => messages.write_all(&Message::Refused(error.to_string()).line()),
    }
}

/// Enters the root, and keeps nothing that the program must not have.
fn enter(received: &Received) -> io::Result<()> {
    let Some(confined) = received.confined() else {
        return Err(io::Error::other("nothing to confine it to"));
    };
    rustix::system::sethostname(HOST_NAME)?;
    root::enter()?;
    std::env::set_current_dir(confined.directory())
        .map_err(|error| user::named("enter its directory", error))?;
    user::give_up()?;
    // The program is the same user, and must not look into this process or change it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_no_new_privs(true)?;
    confined.layout.limits.apply()?;
    rights::bound(&confined.layout)?;
    syscalls::bound(confined.layout.has_door)
}
