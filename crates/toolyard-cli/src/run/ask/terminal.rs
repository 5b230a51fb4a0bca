//! The terminal, and the thread that reads it: reads block, but neither calls nor the end of the program wait for them.
//!
//! ```text
//!   ask ─► Shown ─► thread: discard earlier input ───► page, prompt ─► wait for a line, or for its withdrawal
//!     │ dropped: the pipe closes ──────────────────────────────────────────────────────────────┘
//! ```

use super::{super::live::Screen, reply, reply::Reply, sheet, sheet::Sheet};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::getpgrp,
    termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize},
};
use std::{
    fs::File,
    io::{self, IsTerminal, PipeReader, Read, Write},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};
use toolyard::{ApprovalRequest, Showing};

/// The controlling terminal of this process, whatever its standard streams are.
const PATH: &str = "/dev/tty";

/// The longest line that a terminal delivers.
const LINE_BYTES_MAX: usize = 4096;

/// The width if the terminal does not know its own.
const WIDTH: usize = 80;

/// How long [`Terminal::rest`] waits at most.
const REST_WITHIN: Duration = Duration::from_secs(1);

/// The terminal. Cheap to clone; all clones share it.
#[derive(Clone)]
pub(in super::super) struct Terminal {
    tty: Arc<File>,
    tasks: mpsc::Sender<Task>,
}

/// A task for the thread, which runs them one by one.
enum Task {
    Ask(Shown),
    /// Reports that all earlier tasks are done.
    Rest(oneshot::Sender<()>),
}

impl Terminal {
    /// Opens the terminal and starts its thread.
    pub(super) fn open() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open(PATH)?;
        if !tty.is_terminal() {
            return Err(io::Error::other(format!("{PATH} is not a terminal")));
        }
        let (tasks, todo) = mpsc::channel();
        let tty = Arc::new(tty);
        let read = tty.clone();
        thread::Builder::new().name("toolyard-ask".to_owned()).spawn(move || serve(&read, &todo))?;
        Ok(Self { tty, tasks })
    }

    /// Whether this process is in the terminal's foreground: a background process is stopped when it reads.
    pub(super) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|front| front == getpgrp())
    }

    /// Shows a question and waits for its answer. If no answer can be read, it is no.
    ///
    /// # Cancel safety
    /// Dropping the future takes the question off the screen.
    pub(super) async fn ask(&self, request: &ApprovalRequest, sheet: Sheet, screen: Option<Screen>) -> Reply {
        let (answer, wait) = oneshot::channel();
        let Ok((withdrawn, _open_while_asked)) = io::pipe() else { return Reply::No };
        let (within, showing) = (request.expires_in(), request.showing().clone());
        let shown = Shown { sheet, within, showing, screen, withdrawn, answer };
        // If the thread is gone, the answer's sender is dropped and the reply is no.
        let _ = self.tasks.send(Task::Ask(shown));
        wait.await.unwrap_or(Reply::No)
    }

    /// Waits until questions that are over are complete on the screen, so that nothing is printed into them.
    pub(in super::super) async fn rest(&self) {
        let (done, wait) = oneshot::channel();
        let _ = self.tasks.send(Task::Rest(done));
        let _ = timeout(REST_WITHIN, wait).await;
    }
}

fn serve(tty: &File, todo: &mpsc::Receiver<Task>) {
    for task in todo {
        match task {
            Task::Ask(shown) => shown.play(tty),
            Task::Rest(done) => {
                // The waiter may be gone.
                let _ = done.send(());
            }
        }
    }
}

/// A question that is shown, or about to be.
struct Shown {
    sheet: Sheet,
    within: Duration,
    showing: Showing,
    screen: Option<Screen>,
    /// Closes when nobody waits for the answer any more.
    withdrawn: PipeReader,
    answer: oneshot::Sender<Reply>,
}

/// The result of waiting for a line.
enum Typed {
    Line(String),
    /// The end of the input.
    End,
    Withdrawn,
}

impl Shown {
    fn play(self, tty: &File) {
        if self.answer.is_closed() {
            return;
        }
        let _off = self.screen.as_ref().map(Screen::hold);
        // If the question cannot be shown, the call is not allowed.
        let reply = self.reply(tty).unwrap_or(Some(Reply::No));
        if let Some(reply) = reply {
            let _ = self.answer.send(reply);
        }
    }

    /// The reply, or `None` if the question is withdrawn.
    fn reply(&self, mut tty: &File) -> io::Result<Option<Reply>> {
        forget_typed(tty)?;
        let width = tcgetwinsize(tty).map_or(0, |size| usize::from(size.ws_col));
        let page = self.sheet.laid_out(if width == 0 { WIDTH } else { width });
        tty.write_all(page.as_bytes())?;
        let since = Instant::now();
        self.showing.shown();
        loop {
            let left = self.within.saturating_sub(since.elapsed());
            tty.write_all(sheet::prompt(left).as_bytes())?;
            match self.typed(tty)? {
                Typed::Line(line) => match Reply::of(&line) {
                    Some(reply) => return Ok(Some(reply)),
                    None => tty.write_all(help().as_bytes())?,
                },
                Typed::End => {
                    tty.write_all(b"\n  end of input, which counts as no\n")?;
                    return Ok(Some(Reply::No));
                }
                Typed::Withdrawn => {
                    let is_late = since.elapsed() >= self.within;
                    tty.write_all(over(is_late).as_bytes())?;
                    return Ok(None);
                }
            }
            forget_typed(tty)?;
        }
    }

    fn typed(&self, tty: &File) -> io::Result<Typed> {
        loop {
            let mut waiting = [PollFd::new(tty, PollFlags::IN), PollFd::new(&self.withdrawn, PollFlags::IN)];
            match poll(&mut waiting, None) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            if !waiting[1].revents().is_empty() {
                return Ok(Typed::Withdrawn);
            }
            if let Some(typed) = read_line(tty)? {
                return Ok(typed);
            }
        }
    }
}

/// Reads a line, or `None` if a signal interrupted.
fn read_line(mut tty: &File) -> io::Result<Option<Typed>> {
    let mut line = [0; LINE_BYTES_MAX];
    match tty.read(&mut line) {
        Ok(0) => Ok(Some(Typed::End)),
        Ok(bytes) => Ok(Some(Typed::Line(String::from_utf8_lossy(&line[..bytes]).into_owned()))),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

/// Discards what was typed before this prompt: it is not an answer to it.
fn forget_typed(tty: &File) -> io::Result<()> {
    Ok(tcflush(tty, QueueSelector::IFlush)?)
}

fn help() -> String {
    let lines = reply::HELP.lines().map(|line| format!("    {line}\n"));
    lines.collect()
}

fn over(is_late: bool) -> String {
    let why = match is_late {
        true => "not answered in time, so the call does not run",
        false => "the question is withdrawn: its call was cancelled or already decided",
    };
    format!("\n  {why}\n")
}
