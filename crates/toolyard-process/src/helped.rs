//! A program under a helper, as the program that started it sees it.

use crate::{
    Confinement, Door, Helper, Program, Report, TERM_GRACE,
    descendants::kill_all,
    kept_open::kept_open,
    launch::{self, Launch},
    message::{Heard, Message},
    pipes::Theirs,
    processes::{Orders, Progress},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    convert::Infallible,
    future::pending,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixStream, unix::OwnedWriteHalf},
    process::{Child, Command},
    sync::watch,
    time::sleep,
};

/// How long a helper may take beyond the grace of its processes after it was told to end them. One that takes longer was
/// stopped (SIGSTOP) by the program, or waits for a process that cannot be killed. Either way it is not waited for: a
/// call must end within its own grace, or it loses the output so far.
const OVERDUE: Duration = Duration::from_millis(500);

/// How long a helper may take to kill its processes. Nobody's own grace depends on it.
const KILL_OVERDUE: Duration = Duration::from_secs(2);

/// The most bytes of messages that a helper sends.
const MESSAGES_BYTES_MAX: u64 = 64 << 10;

/// The byte that tells a helper to end its processes with grace. Any byte does.
const TERMINATE: &[u8] = b"t";

/// A helper that was started.
pub(crate) struct Helped {
    child: Child,
    socket: UnixStream,
    /// The part of the launch document that the socket did not take yet.
    unsent: Vec<u8>,
}

/// A helper that was started, and what leads to it and to its program.
pub(crate) struct Begun {
    pub(crate) helped: Helped,
    /// The socket to the helper, for ending it directly.
    pub(crate) socket: StdUnixStream,
    pub(crate) door: Option<Door>,
}

/// Starts a helper and sends it what to start.
pub(crate) fn start(mut program: Program, helper: &Helper, theirs: Theirs) -> io::Result<Begun> {
    let name = program.helper_name.clone();
    let has_directory = program.confinement.is_none() && program.directory.is_named();
    let kept = kept_open();
    let document = Launch::of(&program, has_directory, kept.len()).document()?;
    let (others, door) = match program.confinement.take() {
        Some(confinement) => handles(confinement)?,
        None => (program.directory.open()?.into_iter().collect(), None),
    };
    let (ours, socket) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let unsent = launch::send(&ours, document, &kept, &theirs, &others)?;
    let mut command = Command::new(helper.path());
    command.arg0(name).arg(Helper::ARGUMENT).env_clear();
    command.stdin(Stdio::from(OwnedFd::from(socket))).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn()?;
    let socket = ours.try_clone()?;
    Ok(Begun { helped: Helped { child, socket: UnixStream::from_std(ours)?, unsent }, socket, door })
}

/// What goes to the helper of a confined program: what that is granted, and where its door goes, which stays here.
fn handles(confinement: Confinement) -> io::Result<(Vec<OwnedFd>, Option<Door>)> {
    let Confinement { layout, mut handles } = confinement;
    if !layout.has_door {
        return Ok((handles, None));
    }
    let (door, theirs) = Door::new()?;
    handles.push(theirs);
    Ok((handles, Some(door)))
}

impl Helped {
    /// Its process id.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Reads the helper's messages until all processes have ended. Dropping the future closes the socket, which tells the
    /// helper to kill them.
    pub(crate) async fn watch(self, orders: Orders, progress: watch::Sender<Progress>) {
        let report = self.follow(orders, &progress).await;
        progress.send_replace(Progress::Ended(report));
    }

    async fn follow(mut self, orders: Orders, progress: &watch::Sender<Progress>) -> Report {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let (messages, writer) = self.socket.into_split();
        let mut lines = BufReader::new(messages.take(MESSAGES_BYTES_MAX)).lines();
        let mut telling = std::pin::pin!(tell(writer, self.unsent, &orders));
        let mut overdue = std::pin::pin!(overdue(&orders));
        let mut heard = Heard::default();
        loop {
            tokio::select! {
                biased;
                line = lines.next_line() => match line.ok().flatten().as_deref().map(Message::read) {
                    Some(Some(Message::Started)) => drop(progress.send_replace(Progress::Running)),
                    Some(message) => message.into_iter().for_each(|message| heard.add(message)),
                    None => break,
                },
                never = &mut telling => match never {},
                () = &mut overdue => break,
            }
        }
        if !heard.is_complete() {
            kill_directly(pid);
        }
        let _ = self.child.wait().await;
        heard.report()
    }
}

/// Sends the rest of the launch document, and then the order to end with grace. The order to kill needs no byte.
async fn tell(mut helper: OwnedWriteHalf, unsent: Vec<u8>, orders: &Orders) -> Infallible {
    // An error means that the helper has gone, which the end of its messages says as well.
    let _ = helper.write_all(&unsent).await;
    orders.terminate.cancelled().await;
    let _ = helper.write_all(TERMINATE).await;
    pending().await
}

/// Waits until the helper should long have done what it was told.
async fn overdue(orders: &Orders) {
    let killed = async {
        orders.kill.cancelled().await;
        sleep(KILL_OVERDUE).await;
    };
    let terminated = async {
        orders.terminate.cancelled().await;
        sleep(TERM_GRACE + OVERDUE).await;
    };
    tokio::select! {
        biased;
        () = killed => {}
        () = terminated => {}
    }
}

/// Ends the processes that can be found when the helper does not, because the program stopped or killed it.
fn kill_directly(helper: Option<Pid>) {
    tracing::warn!("the helper of a program did not finish: killing its processes directly");
    // A stopped helper is still the parent of all; a dead one can be traced by its session. It has not been reaped yet, so
    // its number cannot belong to another process.
    if let Some(helper) = helper {
        kill_all(helper);
        let _ = kill_process(helper, Signal::KILL);
    }
}
