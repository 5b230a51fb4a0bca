//! Starts the program, adopts and reaps what it leaves, and ends all of it.

use super::control::{Control, Order};
use crate::{
    End, Rest, TERM_GRACE, Used,
    descendants::{Asked, descendants, kill_all},
    message::Message,
};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::{TimeVal, TimeValLike as _},
};
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, wait};
use std::{
    convert::Infallible,
    io,
    os::unix::{net::UnixStream as StdUnixStream, process::CommandExt as _},
    process::Command,
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::{UnixStream, unix::OwnedWriteHalf},
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until, timeout},
};

/// How long to wait for processes that do not end when killed, for example because they are in an uninterruptible system
/// call, or belong to a user that may not be signalled.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// The pause after a round of killing before the next one.
const KILL_ROUND: Duration = Duration::from_millis(20);

/// When processes that were asked to end are looked at first; each further look is after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// How long the program that started the helper may take to take up a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) struct Supervision {
    /// Notifies that children have ended.
    children: Signal,
    control: Control,
    messages: OwnedWriteHalf,
}

impl Supervision {
    /// Starts the program and ends all that it leaves. The socket carries orders and messages. What is done `beside` that
    /// ends with it.
    pub(crate) fn run(
        start: impl FnOnce() -> Result<Pid, Message>,
        beside: impl Future<Output = Infallible>,
        socket: StdUnixStream,
    ) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let (orders, messages) = UnixStream::from_std(socket)?.into_split();
            // Installed first: a helper that is asked to end from here on ends the program before itself.
            let control = Control::new(orders)?;
            let children = signal(SignalKind::child())?;
            let mut supervision = Self { children, control, messages };
            tokio::select! {
                biased;
                () = supervision.supervise(start) => {}
                never = beside => match never {},
            }
            // The socket is the helper's too, which may have more to tell.
            supervision.messages.forget();
            Ok(())
        })
    }

    async fn supervise(&mut self, start: impl FnOnce() -> Result<Pid, Message>) {
        self.send(Message::Starting).await;
        let main = match start() {
            Ok(main) => main,
            Err(why) => {
                self.send(why).await;
                return self.send(Message::Done(Rest::NONE)).await;
            }
        };
        self.send(Message::Started).await;
        let order = match self.watch(main).await {
            Ok(end) => {
                self.send(Message::Ended(end)).await;
                Order::Terminate
            }
            Err(order) => order,
        };
        let rest = self.end_all(order).await;
        if let Some(used) = used() {
            self.send(Message::Used(used)).await;
        }
        self.send(Message::Done(rest)).await;
    }

    /// Waits until the program itself has ended, or has to be ended.
    async fn watch(&mut self, main: Pid) -> Result<End, Order> {
        loop {
            if let Reaped::Main(status) = reap(Some(main)) {
                return Ok(end(status));
            }
            tokio::select! {
                biased;
                order = self.control.next() => return Err(order),
                _ = self.children.recv() => {}
            }
        }
    }

    /// Ends all processes.
    async fn end_all(&mut self, order: Order) -> Rest {
        if matches!(reap(None), Reaped::All) {
            return Rest::NONE;
        }
        let left = match order {
            Order::Terminate => {
                let asked = Asked::all(getpid());
                let left = asked.len();
                if self.end_in_grace(asked).await {
                    return Rest { left, surviving: 0 };
                }
                left
            }
            Order::Kill => descendants(getpid()).map_or(0, |left| left.len()),
        };
        let deadline = Instant::now() + KILL_GRACE;
        while Instant::now() < deadline {
            kill_all(getpid());
            if self.reap_all_until(Instant::now() + KILL_ROUND).await {
                return Rest { left, surviving: 0 };
            }
        }
        Rest { left, surviving: descendants(getpid()).map_or(0, |surviving| surviving.len()) }
    }

    /// Waits until none is left, the grace is over, or they are to be killed. Returns whether none is left.
    async fn end_in_grace(&mut self, mut asked: Asked) -> bool {
        let begin = Instant::now();
        let deadline = begin + TERM_GRACE;
        let mut look = FIRST_LOOK;
        loop {
            if matches!(reap(None), Reaped::All) {
                return true;
            }
            // A process that is started while those around it are asked would be left, and would not end by itself.
            asked.orphans(getpid());
            tokio::select! {
                biased;
                () = self.control.killed() => return false,
                _ = self.children.recv() => {}
                // The end of one that has another parent is not told here.
                () = sleep_until(deadline.min(begin + look)) => {
                    if Instant::now() >= deadline {
                        return matches!(reap(None), Reaped::All);
                    }
                    look *= 2;
                }
            }
        }
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
        let _ = timeout(SEND_TIMEOUT, self.messages.write_all(&message.line())).await;
    }
}

/// What starts this program.
pub(crate) fn program(command: Command) -> impl FnOnce() -> Result<Pid, Message> {
    || start(command).map_err(|error| Message::Refused(error.to_string()))
}

/// Starts a program in a group of its own. The command has the helper's copies of its descriptors, which end here.
pub(crate) fn start(mut command: Command) -> io::Result<Pid> {
    Ok(Pid::from_child(&command.process_group(0).spawn()?))
}

fn end(status: WaitStatus) -> End {
    match status.terminating_signal() {
        Some(signal) => End::Killed(signal),
        None => End::Exited(status.exit_status().unwrap_or_default()),
    }
}

/// What all processes used that were reaped, by this one or by one that was.
pub(crate) fn used() -> Option<Used> {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let time =
        |time: TimeVal| Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or_default());
    let memory_peak = u64::try_from(used.max_rss()).unwrap_or_default().saturating_mul(1024);
    Some(Used { cpu: time(used.user_time()) + time(used.system_time()), memory_peak })
}

enum Reaped {
    /// The program itself has ended.
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
