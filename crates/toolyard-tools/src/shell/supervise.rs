//! The supervisor: the process between the program and a command, which leaves no process of the command behind.
//!
//! It does not rely on a parent-death signal, because that is sent when the *thread* that started the process ends,
//! and a runtime's threads do end. The socket to the parent closes only when the parent process has died.

use super::{
    TERM_GRACE,
    containment::{ARGUMENT, claim},
    processes::{descendants, kill_all, terminate_all},
    report::{End, Message},
};
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, setsid, wait};
use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write as _},
    os::{
        fd::AsFd,
        unix::{net::UnixStream as StdUnixStream, process::CommandExt as _},
    },
    process::{self, Command, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until, timeout},
};

/// How long to wait for processes that do not end when killed, for example because they are in an uninterruptible
/// system call, or belong to a user that may not be signalled.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// The pause after a round of killing before the next one.
const KILL_ROUND: Duration = Duration::from_millis(20);

/// Runs the program as a supervisor if it was started as one, and then does not return. Otherwise does nothing.
///
/// A program that runs commands under [`Supervisor::this_program`](super::Supervisor::this_program) must call this at
/// the start of `main`, before it starts any thread.
///
/// # Examples
/// ```no_run
/// use toolyard_tools::shell::{Containment, Shell, Supervisor, supervise_if_asked};
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     supervise_if_asked();
///     // Here begins the program itself.
///     let shell = Shell::new(Containment::Supervisor(Supervisor::this_program()?));
/// #   drop(shell);
///     Ok(())
/// }
/// ```
pub fn supervise_if_asked() {
    let mut args = env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(ARGUMENT)) {
        return claim();
    }
    let command = args.next().unwrap_or_default();
    process::exit(i32::from(supervise(&command).is_err()))
}

/// Runs the command and ends all processes that it leaves behind.
fn supervise(command: &OsStr) -> io::Result<()> {
    close_inherited()?;
    let socket = StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut messages = socket.try_clone()?;
    supervise_over(socket, command).inspect_err(|error| {
        // If the socket itself failed, the parent cannot be told.
        let _ = messages.write_all(Message::Failed(error.to_string()).to_string().as_bytes());
    })
}

/// Does the work. The socket carries the parent's stop and the supervisor's messages.
fn supervise_over(socket: StdUnixStream, command: &OsStr) -> io::Result<()> {
    // From here on there is no terminal, and no terminal's signals reach this process group.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    descendants(getpid())?; // a supervisor that cannot see its processes must not start any
    socket.set_nonblocking(true)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (stop, messages) = UnixStream::from_std(socket)?.into_split();
        Supervision { children: signal(SignalKind::child())?, messages }.run(command.to_owned(), stop).await
    })
}

/// Closes descriptors that were inherited by accident: a command gets its output pipe and no more.
fn close_inherited() -> io::Result<()> {
    let open = |entry: fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?.flatten().filter_map(open).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The descriptor that listed them is closed already, and fails here.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

struct Supervision {
    /// Notifies that children have ended.
    children: Signal,
    messages: OwnedWriteHalf,
}

impl Supervision {
    async fn run(mut self, command: OsString, stop: OwnedReadHalf) -> io::Result<()> {
        // Installed first: a supervisor that is asked to end from here on ends the command before itself.
        let terminated = termination_signal()?;
        self.send(Message::Starting).await;
        let main = match start(&command) {
            Ok(main) => main,
            Err(error) => {
                self.send(Message::Failed(error.to_string())).await;
                self.send(Message::Done { remaining: 0, surviving: 0 }).await;
                return Ok(());
            }
        };
        if let Some(end) = self.watch(main, stop, terminated).await {
            self.send(Message::Ended(end)).await;
        }
        let (remaining, surviving) = self.stop_all().await;
        self.send(Message::Done { remaining, surviving }).await;
        Ok(())
    }

    /// Waits until the command itself has ended, or has to be stopped.
    async fn watch(
        &mut self,
        main: Pid,
        stop: OwnedReadHalf,
        terminated: impl Future<Output = ()>,
    ) -> Option<End> {
        let mut stopped = Box::pin(stop_requested(stop));
        let mut terminated = Box::pin(terminated);
        loop {
            if let Reaped::Main(status) = reap(Some(main)) {
                return Some(End::of(status));
            }
            tokio::select! {
                biased;
                () = &mut stopped => return None,
                () = &mut terminated => return None,
                _ = self.children.recv() => {}
            }
        }
    }

    /// Ends all processes. Returns how many were sent SIGTERM, and how many survive.
    async fn stop_all(&mut self) -> (usize, usize) {
        if matches!(reap(None), Reaped::All) {
            return (0, 0);
        }
        let remaining = terminate_all(getpid());
        if self.reap_all_until(Instant::now() + TERM_GRACE).await {
            return (remaining, 0);
        }
        let deadline = Instant::now() + KILL_GRACE;
        while Instant::now() < deadline {
            kill_all(getpid());
            if self.reap_all_until(Instant::now() + KILL_ROUND).await {
                return (remaining, 0);
            }
        }
        (remaining, descendants(getpid()).map_or(0, |surviving| surviving.len()))
    }

    /// Reaps children until none is left or the deadline has passed. Returns whether none is left.
    async fn reap_all_until(&mut self, deadline: Instant) -> bool {
        loop {
            if matches!(reap(None), Reaped::All) {
                return true;
            }
            tokio::select! {
                biased;
                _ = self.children.recv() => {}
                () = sleep_until(deadline) => return matches!(reap(None), Reaped::All),
            }
        }
    }

    /// Sends a message to the parent. A parent that has died, or does not read, must not hold up the work.
    async fn send(&mut self, message: Message) {
        let _ =
            timeout(Duration::from_secs(1), self.messages.write_all(message.to_string().as_bytes())).await;
    }
}

fn start(command: &OsStr) -> io::Result<Pid> {
    let mut shell = Command::new(super::launch::SHELL);
    shell.args(super::launch::SHELL_ARGUMENTS).arg(command).stdin(Stdio::null()).process_group(0);
    let child = shell.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the command has no process id"))
}

/// Waits for the parent to say stop, or to die.
async fn stop_requested(mut stop: OwnedReadHalf) {
    // Anything counts: a byte, the end of the stream, or an error.
    let _ = stop.read(&mut [0]).await;
}

/// Waits for a signal that asks this process to end, which it does only after the command's processes have ended.
fn termination_signal() -> io::Result<impl Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (mut hang_up, mut quit) = (signal(SignalKind::hangup())?, signal(SignalKind::quit())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = hang_up.recv() => {}
            _ = quit.recv() => {}
        }
    })
}

enum Reaped {
    /// The command itself has ended.
    Main(WaitStatus),
    /// Some children are left.
    Remaining,
    /// No child is left.
    All,
}

/// Reaps children that have ended; stops at `main`, if it is among them.
fn reap(main: Option<Pid>) -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if Some(pid) == main => return Reaped::Main(status),
            Ok(Some(_)) => {}
            Ok(None) => return Reaped::Remaining,
            Err(_) => return Reaped::All,
        }
    }
}
