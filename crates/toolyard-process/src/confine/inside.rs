//! The two processes between a helper and a confined program: the helper itself, which makes the namespaces, and the
//! first process in them.
//!
//! ```text
//!   helper   group ─► namespaces ─► door ─► root ─► starts init, hands on what it was told ─► waits
//!   init     enters the group, and the root ─► gives up what it had ─► supervises the program, over the helper's own socket
//! ```

use super::{Group, attend::attend, door, rights, root, syscalls, user};
use crate::{
    Limit, Rest,
    cgroup::{self, Own},
    helper::{Supervision, THIS_PROGRAM, program, used},
    launch::Received,
    message::Message,
};
use rustix::{
    net::{RecvFlags, recv},
    process::{DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal, setsid},
};
use std::{
    future::pending,
    io::{self, Write as _},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::Path,
    process::{Child, Command, Stdio},
};

/// The argument of a program that is started as the first process inside.
pub(crate) const INIT: &str = "--toolyard-init-process";

/// The name of that process in process lists, and of its machine in its own eyes.
const INIT_NAME: &str = "toolyard-init";
const HOST_NAME: &[u8] = b"toolyard";

/// How many processes are in the group beside the program's.
const INIT_PROCESSES: u64 = 1;

/// Where it starts unless it starts elsewhere: its own `/tmp`.
const HOME: &str = "/tmp";

/// Starts a program confined, and waits until all of it has ended. For a helper, which has one thread, and is of no other
/// use afterwards: it has left its namespaces.
pub(super) fn start(received: Received, socket: UnixStream) -> io::Result<()> {
    let mut messages = socket.try_clone()?;
    let cpu_time = received.group().and_then(|group| group.limits.cpu_time);
    // Made before the namespaces, in which this process is nobody to the rest of the machine.
    let group = match received.group().map(|group| own(group, INIT_PROCESSES)).transpose() {
        Ok(group) => group,
        Err(error) => return messages.write_all(&Message::from(error).line()),
    };
    match hand_on(received, socket, group.as_ref()) {
        Ok(mut init) => match group {
            Some(group) => messages.write_all(&told(attend(&mut init.process, &group, cpu_time), &group)),
            None => init.process.wait().map(drop),
        },
        Err(why) => messages.write_all(&why.line()),
    }
}

/// Makes its group, in which there are so many processes beside the program's.
pub(super) fn own(group: &Group, beside: u64) -> io::Result<Own> {
    let Group { within, limits } = group;
    Own::make(within, limits, beside)
        .map_err(|error| user::named(&format!("make a group in '{}'", within.display()), error))
}

/// What there is to tell of a group. Whoever supervises the program tells all else, unless it was ended with that.
pub(super) fn told(limit: Option<Limit>, group: &Own) -> Vec<u8> {
    let used = used().map(|used| Message::Used(group.used(used)));
    let done = matches!(limit, Some(Limit::Memory | Limit::CpuTime)).then_some(Message::Done(Rest::NONE));
    let told = limit.map(Message::Limit).into_iter().chain(used).chain(done);
    told.flat_map(|message| message.line()).collect()
}

/// The first process inside.
struct Init {
    process: Child,
    /// Shows it, as long as this is open, that this process lives.
    _socket: UnixStream,
}

/// Makes what the program is confined to, and starts init in it.
fn hand_on(mut received: Received, socket: UnixStream, group: Option<&Own>) -> Result<Init, Message> {
    let entrance = group.map(Own::entrance).transpose()?;
    let door = received.take_door()?;
    let Some(confined) = received.confined() else {
        return Err(io::Error::other("nothing to confine it to").into());
    };
    let who = user::leave().map_err(|error| Message::NoNamespaces(error.to_string()))?;
    door.map_or(Ok(()), door::open)?;
    root::make(&confined.layout, received.handles(), who)?;
    user::hand_down()?;
    let (ours, theirs) = UnixStream::pair()?;
    let mut init = Command::new(THIS_PROGRAM);
    init.arg0(INIT_NAME).arg(INIT).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
    let process = init.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    received.without_handles().hand_on(&ours, std::iter::once(socket.into()).chain(entrance))?;
    Ok(Init { process, _socket: ours })
}

/// Runs as init: enters the root, and supervises the program there.
pub(crate) fn init(socket: &UnixStream) -> io::Result<()> {
    setsid()?;
    let mut received = Received::receive(socket)?;
    let (entrance, control) = (received.take_entrance()?, received.take_last()?);
    let mut messages = UnixStream::from(control.try_clone()?);
    let entered = entrance.map_or(Ok(()), enter_group).and_then(|()| enter(&received));
    if let Err(error) = entered.and_then(|()| end_with_helper(socket)) {
        return messages.write_all(&Message::from(error).line());
    }
    match received.into_command() {
        Ok(command) => Supervision::run(program(command), pending(), control.into()),
        Err(error) => messages.write_all(&Message::Refused(error.to_string()).line()),
    }
}

/// Enters the group, and sees no other from then on.
fn enter_group(entrance: OwnedFd) -> io::Result<()> {
    cgroup::enter(entrance)?;
    cgroup::hide_others()
}

/// Enters the root, and keeps nothing that the program must not have.
fn enter(received: &Received) -> io::Result<()> {
    let Some(confined) = received.confined() else {
        return Err(io::Error::other("nothing to confine it to"));
    };
    rustix::system::sethostname(HOST_NAME)?;
    root::enter()?;
    std::env::set_current_dir(confined.directory().unwrap_or(Path::new(HOME)))
        .map_err(|error| user::named("enter its directory", error))?;
    user::give_up()?;
    // The program is the same user, and must not look into this process or change it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_no_new_privs(true)?;
    confined.layout.limits.apply()?;
    rights::bound(&confined.layout)?;
    syscalls::bound(confined.layout.has_door)
}

/// Ends this process, and with it all that is inside, when its helper ends, which watches what they use. The helper has one
/// thread, so that its signal comes when it has died and not before.
fn end_with_helper(socket: &UnixStream) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match recv(socket, &mut [0; 1], RecvFlags::DONTWAIT) {
        Err(rustix::io::Errno::AGAIN) => Ok(()),
        // It died before.
        Ok(_) | Err(_) => Err(io::Error::other("its helper has died")),
    }
}
