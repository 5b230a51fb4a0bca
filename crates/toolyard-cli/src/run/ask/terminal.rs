//! The terminal, and the thread that reads it: reading blocks, and neither calls nor the end of the program wait for it.
//!
//! ```text
//!   ask ─► Shown ─► thread: typed before? forgotten ─► page, prompt ─► wait for a line, or for the end of the question
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

/// The terminal of this process, whatever its standard streams are.
const PATH: &str = "/dev/tty";

/// A line is not longer on any terminal.
const LINE_BYTES_MAX: usize = 4096;

/// The width where the terminal does not know it.
const WIDTH: usize = 80;

/// How long [`Terminal::rest`] waits.
const REST_WITHIN: Duration = Duration::from_secs(1);

/// The terminal. Cheap to clone; clones are the same one.
#[derive(Clone)]
pub(in super::super) struct Terminal {
    tty: Arc<File>,
    tasks: mpsc::Sender<Task>,
}

/// What the thread does, one after another.
enum Task {
    Ask(Shown),
    /// Says that everything before is done.
    Rest(oneshot::Sender<()>),
}

impl Terminal {
    /// Opens the terminal and starts the thread.
    pub(super) fn open() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open(PATH)?;
        if !tty.is_terminal() {
            return Err(io::Error::other(format!("{PATH} is none")));
        }
        let (tasks, todo) = mpsc::channel();
        let tty = Arc::new(tty);
        let read = tty.clone();
        thread::Builder::new().name("toolyard-ask".to_owned()).spawn(move || serve(&read, &todo))?;
        Ok(Self { tty, tasks })
    }

    /// Whether this process is the one that the terminal talks to: one in the background is stopped when it reads.
    pub(super) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|front| front == getpgrp())
    }

    /// Shows a question and waits for its answer. Where none can be read, that is no.
    ///
    /// # Cancel safety
    /// Dropping the future takes the question off the screen.
    pub(super) async fn ask(&self, request: &ApprovalRequest, sheet: Sheet, screen: Option<Screen>) -> Reply {
        let (answer, wait) = oneshot::channel();
        let Ok((withdrawn, _open_while_asked)) = io::pipe() else { return Reply::No };
        let (within, showing) = (request.expires_in(), request.showing().clone());
        let shown = Shown { sheet, within, showing, screen, withdrawn, answer };
        // Without its thread the other end of the channel is gone, and so is the answer.
        let _ = self.tasks.send(Task::Ask(shown));
        wait.await.unwrap_or(Reply::No)
    }

    /// Waits until what is on the screen of questions that are over is complete, so that nothing is printed into it.
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
                // Nobody may wait any more.
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
    /// Ends when nobody waits for the answer any more.
    withdrawn: PipeReader,
    answer: oneshot::Sender<Reply>,
}

/// What came of waiting for a line.
enum Typed {
    Line(String),
    /// The end of what is typed.
    End,
    Withdrawn,
}

impl Shown {
    fn play(self, tty: &File) {
        if self.answer.is_closed() {
            return;
        }
        let _off = self.screen.as_ref().map(Screen::hold);
        // What cannot be shown is not allowed.
        let reply = self.reply(tty).unwrap_or(Some(Reply::No));
        if let Some(reply) = reply {
            let _ = self.answer.send(reply);
        }
    }

    /// The answer; none where the question is withdrawn.
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
                    tty.write_all(b"\n  that is the end of the input: no\n")?;
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

/// What has been typed; nothing where a signal came in between.
fn read_line(mut tty: &File) -> io::Result<Option<Typed>> {
    let mut line = [0; LINE_BYTES_MAX];
    match tty.read(&mut line) {
        Ok(0) => Ok(Some(Typed::End)),
        Ok(bytes) => Ok(Some(Typed::Line(String::from_utf8_lossy(&line[..bytes]).into_owned()))),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

/// Forgets what was typed before there was a question, or for another one: it is no answer to this one.
fn forget_typed(tty: &File) -> io::Result<()> {
    Ok(tcflush(tty, QueueSelector::IFlush)?)
}

fn help() -> String {
    let lines = reply::HELP.lines().map(|line| format!("    {line}\n"));
    lines.collect()
}

fn over(is_late: bool) -> String {
    let why = match is_late {
        true => "nobody answered in time, so the call does not run",
        false => "the question is withdrawn: its call was cancelled, or is settled",
    };
    format!("\n  {why}\n")
}
