//! A program that is confined by landlock and seccomp alone, for machines on which a user may make no namespaces.
//!
//! ```text
//!   helper   makes a directory for its temporary files, and a group if it gets one ─► supervises, from outside
//!     └─ the same program again: enters the group, gives up what it had, bounds itself ─► executes the program
//! ```
//!
//! What ends the program's processes is the helper, as it ends those of a program that is not confined: there is no pid
//! namespace whose end would be theirs.

mod calls;
mod home;
mod lacks;
mod paths;
mod rights;

pub use lacks::landlock_alone_lacks;

use super::{
    attend::spend,
    inside::{own, told},
    syscalls,
    user::{self, named},
};
use crate::{
    Limit, cgroup,
    helper::{Supervision, THIS_PROGRAM, start as spawn},
    launch::Received,
    message::Message,
};
use home::Home;
use rustix::process::{DumpableBehavior, Pid, set_dumpable_behavior};
use std::{
    cell::Cell,
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::Path,
    process::{Command, Stdio},
};

/// The argument of a program that is started to confine itself and execute another.
pub(crate) const ENTER: &str = "--toolyard-enter-process";

/// Its name in process lists until then.
const ENTERING_NAME: &str = "toolyard-enter";

/// The variables that name the directory of a program's own.
const HOME_VARIABLES: [&str; 2] = ["HOME", "TMPDIR"];

/// Starts a program confined, and waits until all of it has ended. Its temporary files lie in `place` until then.
pub(super) fn start(mut received: Received, place: &Path, socket: UnixStream) -> io::Result<()> {
    let mut messages = socket.try_clone()?;
    let limits = received.group().map(|group| group.limits);
    let group = received.group().map(|group| own(group, 0)).transpose();
    let made = group.and_then(|group| {
        let home = Home::make(place)?;
        received.give_home(home.handle()?, home.path(), &HOME_VARIABLES);
        let entrance = group.as_ref().map(cgroup::Own::entrance).transpose()?;
        Ok((group, home, entrance))
    });
    let (group, home, entrance) = match made {
        Ok(made) => made,
        Err(error) => return messages.write_all(&Message::from(error).line()),
    };
    let is_spent = Cell::new(false);
    let cpu_time = limits.and_then(|limits| limits.cpu_time);
    let spending = spend(group.as_ref().zip(cpu_time), &is_spent);
    Supervision::run(|| hand_on(received, entrance), spending, socket)?;
    drop(home);
    let Some(group) = group else { return Ok(()) };
    let limit = if is_spent.get() { Some(Limit::CpuTime) } else { group.reached() };
    messages.write_all(&told(limit, &group))
}

/// Starts the process that becomes the program, and waits until it has. Its end of the socket closes when it executes that.
fn hand_on(received: Received, entrance: Option<OwnedFd>) -> Result<Pid, Message> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut next = Command::new(THIS_PROGRAM);
    next.arg0(ENTERING_NAME).arg(ENTER).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
    next.stdout(Stdio::null()).stderr(Stdio::null());
    let pid = spawn(next)?;
    received.hand_on(&ours, entrance)?;
    let mut answer = String::new();
    ours.read_to_string(&mut answer)?;
    match answer.lines().last().and_then(Message::read) {
        Some(Message::Starting) => Ok(pid),
        Some(why) => Err(why),
        None => Err(Message::NotConfined("it was ended before it could start the program".to_owned())),
    }
}

/// Runs as that process: bounds itself, and executes the program.
pub(crate) fn enter(socket: &UnixStream) -> io::Result<()> {
    let mut received = Received::receive(socket)?;
    let entrance = received.take_entrance()?;
    let mut messages = socket;
    let bounded = entrance.map_or(Ok(()), cgroup::enter).and_then(|()| bound(&received));
    if let Err(error) = bounded {
        return messages.write_all(&Message::from(error).line());
    }
    let refused = match received.into_command() {
        Ok(mut command) => {
            messages.write_all(&Message::Starting.line())?;
            command.exec()
        }
        Err(error) => error,
    };
    messages.write_all(&Message::Refused(refused.to_string()).line())
}

/// Keeps nothing that the program must not have. What it holds for that itself closes when it executes the program.
fn bound(received: &Received) -> io::Result<()> {
    let Some(confined) = received.confined() else {
        return Err(io::Error::other("nothing to confine it to"));
    };
    if let Some(directory) = confined.directory() {
        std::env::set_current_dir(directory).map_err(|error| named("enter its directory", error))?;
    }
    // Root's too: an exec without new privileges gives back none that are given up.
    user::give_up()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_no_new_privs(true)?;
    rights::bound(&confined.layout, received.handles())?;
    confined.layout.limits.apply()?;
    syscalls::bound(false)?;
    syscalls::forbid(calls::forbidden)
}
