//! The terminal, and the thread that reads it: reads block, but neither calls nor the end of the program wait for them.
//!
//! ```text
//!   ask ─► Question ─► thread: discard earlier input ─► page, prompt ─► wait for a line, or for its withdrawal
//!     │ dropped: the pipe closes ───────────────────────────────────────────────────────────────┘
//! ```
//!
//! Arguments that the user changes are shown again, and a yes is to those.

mod edit;
mod view;

use super::{
    page,
    page::Page,
    reply,
    reply::{Reply, Typed},
};
use crate::screen::Screen;
use edit::Draft;
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

/// The width and height if the terminal does not know its own.
const SIZE: (usize, usize) = (80, 24);

/// The answer to a yes that comes too early.
const UNSEEN: &[u8] = b"    not all of the call was shown: type v to view the whole of it first\n";

/// The answer to an "always" after a change.
const ONCE: &[u8] = b"    changed arguments hold for this call alone: type y to run it with them\n";

/// How long [`Terminal::idle`] waits at most.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The terminal. Cheap to clone; all clones share it.
#[derive(Clone)]
pub(in super::super) struct Terminal {
    tty: Arc<File>,
    tasks: mpsc::Sender<Task>,
}

/// A task for the thread, which runs them one by one.
enum Task {
    Ask(Question),
    /// Reports that all earlier tasks are done.
    Idle(oneshot::Sender<()>),
}

impl Terminal {
    /// Opens the terminal and starts its thread.
    pub(super) fn open() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open(PATH)?;
        if !tty.is_terminal() {
            return Err(io::Error::other(format!("{PATH} is not a terminal")));
        }
        let (tasks, receiver) = mpsc::channel();
        let tty = Arc::new(tty);
        let read = tty.clone();
        thread::Builder::new().name("toolyard-ask".to_owned()).spawn(move || run_tasks(&read, &receiver))?;
        Ok(Self { tty, tasks })
    }

    /// Whether this process is in the terminal's foreground: a background process is stopped when it reads.
    pub(super) fn is_foreground(&self) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|front| front == getpgrp())
    }

    /// Shows a question and waits for its answer. If no answer can be read, it is no.
    ///
    /// # Cancel safety
    /// Dropping the future takes the question off the screen.
    pub(super) async fn ask(&self, request: &ApprovalRequest, page: Page, screen: Option<Screen>) -> Reply {
        let (answer, wait) = oneshot::channel();
        let Ok((withdrawn, _open_while_asked)) = io::pipe() else { return Reply::No(None) };
        let (time_limit, showing) = (request.expires_in(), request.showing().clone());
        let request = request.clone();
        let question = Question { request, page, time_limit, showing, screen, withdrawn, answer };
        // If the thread is gone, the answer's sender is dropped and the reply is no.
        let _ = self.tasks.send(Task::Ask(question));
        wait.await.unwrap_or(Reply::No(None))
    }

    /// Waits until questions that are over are complete on the screen, so that nothing is printed into them.
    pub(in super::super) async fn idle(&self) {
        let (done, wait) = oneshot::channel();
        let _ = self.tasks.send(Task::Idle(done));
        let _ = timeout(IDLE_TIMEOUT, wait).await;
    }
}

fn run_tasks(tty: &File, tasks: &mpsc::Receiver<Task>) {
    for task in tasks {
        match task {
            Task::Ask(question) => question.ask(tty),
            Task::Idle(done) => {
                // The waiter may be gone.
                let _ = done.send(());
            }
        }
    }
}

/// A question that is shown, or about to be.
struct Question {
    request: ApprovalRequest,
    page: Page,
    time_limit: Duration,
    showing: Showing,
    screen: Option<Screen>,
    /// Closes when nobody waits for the answer any more.
    withdrawn: PipeReader,
    answer: oneshot::Sender<Reply>,
}

/// The result of waiting for a line.
enum Input {
    Line(String),
    Over(Over),
}

/// Why no line will come.
enum Over {
    /// The input has ended.
    Input,
    /// The question was withdrawn.
    Withdrawn,
}

impl Question {
    fn ask(self, tty: &File) {
        if self.answer.is_closed() {
            return;
        }
        let _off = self.screen.as_ref().map(Screen::hold);
        // If the question cannot be shown, the call is not allowed.
        let reply = self.reply(tty).unwrap_or(Some(Reply::No(None)));
        if let Some(reply) = reply {
            let _ = self.answer.send(reply);
        }
    }

    /// The reply, or `None` if the question is withdrawn.
    fn reply(&self, mut tty: &File) -> io::Result<Option<Reply>> {
        discard_input(tty)?;
        tty.write_all(self.page.render(size(tty).0).as_bytes())?;
        let since = Instant::now();
        self.showing.shown();
        let mut is_seen = !self.page.is_cut();
        let mut draft = Draft::default();
        loop {
            let remaining = self.time_limit.saturating_sub(since.elapsed());
            tty.write_all(page::prompt(remaining, is_seen, draft.edited().is_some()).as_bytes())?;
            let line = match self.input(tty)? {
                Input::Line(line) => line,
                Input::Over(over) => return self.close(tty, over, since),
            };
            match Typed::of(&line) {
                Some(Typed::Reply(Reply::Yes | Reply::Always)) if !is_seen => tty.write_all(UNSEEN)?,
                Some(Typed::Reply(Reply::Always)) if draft.edited().is_some() => tty.write_all(ONCE)?,
                Some(Typed::Reply(Reply::Yes)) => {
                    let edited = draft.edited().map(|edited| Reply::Edited(edited.arguments.clone()));
                    return Ok(Some(edited.unwrap_or(Reply::Yes)));
                }
                Some(Typed::Reply(reply)) => return Ok(Some(reply)),
                Some(Typed::Edit) => match self.edit(tty, &mut draft)? {
                    Ok(()) => {
                        let page = draft.edited().map_or(&self.page, |edited| &edited.page);
                        tty.write_all(page.render(size(tty).0).as_bytes())?;
                        is_seen = !page.is_cut();
                    }
                    Err(over) => return self.close(tty, over, since),
                },
                Some(Typed::View) => {
                    match self.view(tty, draft.edited().map_or(&self.page, |it| &it.page))? {
                        Ok(viewed) => is_seen |= viewed.is_whole(),
                        Err(over) => return self.close(tty, over, since),
                    }
                }
                None => tty.write_all(help().as_bytes())?,
            }
            discard_input(tty)?;
        }
    }

    /// Says why there is no answer.
    fn close(&self, mut tty: &File, over: Over, since: Instant) -> io::Result<Option<Reply>> {
        match over {
            Over::Input => {
                tty.write_all(b"\n  end of input, which counts as no\n")?;
                Ok(Some(Reply::No(None)))
            }
            Over::Withdrawn => {
                let is_late = since.elapsed() >= self.time_limit;
                tty.write_all(closing_line(is_late).as_bytes())?;
                Ok(None)
            }
        }
    }

    fn input(&self, tty: &File) -> io::Result<Input> {
        loop {
            let mut waiting = [PollFd::new(tty, PollFlags::IN), PollFd::new(&self.withdrawn, PollFlags::IN)];
            match poll(&mut waiting, None) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            if !waiting[1].revents().is_empty() {
                return Ok(Input::Over(Over::Withdrawn));
            }
            if let Some(input) = read_line(tty)? {
                return Ok(input);
            }
        }
    }
}

/// The width and height of the terminal.
fn size(tty: &File) -> (usize, usize) {
    let size = tcgetwinsize(tty).map_or((0, 0), |size| (size.ws_col.into(), size.ws_row.into()));
    let known = |size, default| if size == 0 { default } else { size };
    (known(size.0, SIZE.0), known(size.1, SIZE.1))
}

/// Reads a line, or `None` if a signal interrupted.
fn read_line(mut tty: &File) -> io::Result<Option<Input>> {
    let mut line = [0; LINE_BYTES_MAX];
    match tty.read(&mut line) {
        Ok(0) => Ok(Some(Input::Over(Over::Input))),
        Ok(bytes) => Ok(Some(Input::Line(String::from_utf8_lossy(&line[..bytes]).into_owned()))),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

/// Discards what was typed before this prompt: it is not an answer to it.
fn discard_input(tty: &File) -> io::Result<()> {
    Ok(tcflush(tty, QueueSelector::IFlush)?)
}

fn help() -> String {
    let lines = reply::HELP.lines().map(|line| format!("    {line}\n"));
    lines.collect()
}

fn closing_line(is_late: bool) -> String {
    let why = match is_late {
        true => "not answered in time, so the call does not run",
        false => "the question is withdrawn: its call was cancelled or already decided",
    };
    format!("\n  {why}\n")
}
