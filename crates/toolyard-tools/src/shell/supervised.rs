//! A command under a supervisor, as the program sees it.

use super::{
    TERM_GRACE,
    containment::{ARGUMENT, Supervisor},
    processes::kill_all,
    report::{Message, Report},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    pin::Pin,
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::UnixStream,
    process::{Child, Command},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

/// How long a supervisor may take beyond the grace of its processes after it was told to stop. One that takes longer
/// was stopped (SIGSTOP) by the command, or waits for a process that cannot be killed. Either way it is not waited for:
/// the call must end within its own grace, or it loses the output so far.
const OVERDUE: Duration = Duration::from_millis(500);

/// The name of supervisors in process lists.
const NAME: &str = "toolyard-shell";

/// The command line of a supervisor.
pub(super) fn command(supervisor: &Supervisor, command: &str) -> Command {
    let mut program = Command::new(supervisor.path());
    program.arg0(NAME).arg(ARGUMENT).arg(command);
    program
}

/// Starts the supervisor.
pub(super) fn start(
    mut command: Command,
    stop: CancellationToken,
) -> io::Result<Pin<Box<dyn Future<Output = Report> + Send>>> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let socket = UnixStream::from_std(ours)?;
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    let child = command.spawn()?;
    drop(command); // and with it our copies of the supervisor's descriptors
    Ok(Box::pin(watch(child, socket, stop)))
}

/// Reads the supervisor's messages until all processes have ended. Dropping the future closes the socket, which tells
/// the supervisor to stop.
async fn watch(mut child: Child, socket: UnixStream, stop: CancellationToken) -> Report {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let (messages, write_half) = socket.into_split();
    let (mut messages, mut write_half) = (BufReader::new(messages).lines(), Some(write_half));
    let mut report = Report::default();
    let overdue = async {
        stop.cancelled().await;
        sleep(TERM_GRACE + OVERDUE).await;
    };
    let mut overdue = std::pin::pin!(overdue);
    loop {
        tokio::select! {
            biased;
            line = messages.next_line() => match line {
                Ok(Some(line)) => Message::read(&line).into_iter().for_each(|message| report.apply(message)),
                _ => break,
            },
            () = stop.cancelled(), if write_half.is_some() => write_half = None,
            () = &mut overdue => break,
        }
    }
    if report.done.is_none() {
        kill_directly(pid);
    }
    let _ = child.wait().await;
    report
}

/// Ends the processes that can be found when the supervisor does not, because the command stopped or killed it.
fn kill_directly(supervisor: Option<Pid>) {
    tracing::warn!("the supervisor of a command did not finish: killing its processes directly");
    // A stopped supervisor is still the parent of all; a dead one can be traced by its session. It has not been reaped
    // yet, so its number cannot belong to another process.
    if let Some(supervisor) = supervisor {
        kill_all(supervisor);
        let _ = kill_process(supervisor, Signal::KILL);
    }
}
