//! Asks the user at the terminal (PO-4).
//!
//! ```text
//!   ApprovalRequest ─► held until it is next ─► sheet: what would run, as one page ─► terminal: a line is read
//!                                             │ as plain text                       │ on its own thread
//!                                             └ nothing in it moves a cursor        ├ y, n, a, q ─► Answer
//!                                                                                   ├ v ─► the whole call, if cut
//!                                                                                   └ e ─► other arguments, shown anew
//! ```

#[cfg(not(unix))]
mod no_terminal;
mod page;
mod queue;
mod reply;
#[cfg(unix)]
mod terminal;

#[cfg(not(unix))]
pub(super) use no_terminal::Terminal;
pub(super) use queue::QuestionQueue;
#[cfg(unix)]
pub(super) use terminal::Terminal;

use super::interrupt::Stopper;
use crate::screen::Screen;
use crate::{
    cli::{Approve, RunArgs},
    error::Error,
};
use page::Page;
use parking_lot::Mutex;
use reply::Reply;
use std::{
    collections::HashMap,
    env,
    future::pending,
    io::{self, IsTerminal, stderr, stdin},
    time::Duration,
};
use tokio::time::timeout;
use toolyard::{
    Answer, ApprovalRequest, Approver, Arguments, CallDigest, ConfirmationMode, Confirmations, Decision,
    EngineBuilder, RequestId, SessionId, async_trait,
};

/// How long a question waits to be withdrawn after the user has stopped the run; then the answer is no.
const WITHDRAWAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The terminal to ask on, if any: with `--approve ask`, or by default if the user is watching at a terminal.
pub(super) fn terminal(args: &RunArgs) -> Result<Option<Terminal>, Error> {
    match args.approve {
        Some(Approve::Ask) => Terminal::open().map(Some).map_err(no_terminal),
        None if stderr().is_terminal() && !is_typed(args) => {
            Ok(Terminal::open().ok().filter(Terminal::is_foreground))
        }
        None | Some(Approve::Auto | Approve::Deny) => Ok(None),
    }
}

/// Lets the user answer an engine's questions, as `--approve ask` says, in place of what is drawn on the screen.
pub(crate) fn with_user(
    builder: EngineBuilder,
    stopper: Stopper,
    confirmations: Confirmations,
    screen: Option<Screen>,
) -> Result<EngineBuilder, Error> {
    let terminal = Terminal::open().map_err(no_terminal)?;
    let asker = Asker::new(terminal, screen, stopper, confirmations);
    Ok(builder.events(asker.queue().sink()).approver(asker))
}

fn no_terminal(error: io::Error) -> Error {
    Error::Usage(format!("--approve ask needs a terminal to ask on: {error}"))
}

/// Whether the input itself is typed: then its lines and the answers could not be told apart.
fn is_typed(args: &RunArgs) -> bool {
    let reads_stdin = args.input.file.as_ref().is_none_or(|file| file.as_os_str() == "-");
    reads_stdin && stdin().is_terminal()
}

/// The name under which the user's answers are recorded.
pub(crate) fn user() -> String {
    let name = ["LOGNAME", "USER"].into_iter().find_map(|name| env::var(name).ok());
    name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "terminal".to_owned())
}

/// Asks the user, one question at a time.
pub(super) struct Asker {
    terminal: Terminal,
    screen: Option<Screen>,
    stopper: Stopper,
    confirmations: Confirmations,
    queue: QuestionQueue,
    /// The name of the user.
    who: String,
    answers: Mutex<Answers>,
}

/// The answers of the user so far.
#[derive(Default)]
struct Answers {
    quit: bool,
    /// Answers for whole patterns of a session, each with the last question announced by then. The engine applies them to those
    /// pending questions too, but possibly after the next one is shown; later questions it answers itself.
    by_pattern: HashMap<(SessionId, CallDigest), (Answer, Option<RequestId>)>,
}

impl Asker {
    /// Asks on this terminal, and takes the live view off the screen meanwhile.
    pub(super) fn new(
        terminal: Terminal,
        screen: Option<Screen>,
        stopper: Stopper,
        confirmations: Confirmations,
    ) -> Self {
        let (queue, answers) = (QuestionQueue::default(), Mutex::default());
        Self { terminal, screen, stopper, confirmations, queue, who: user(), answers }
    }

    /// The queue of its questions, whose sink must receive the events.
    pub(super) fn queue(&self) -> &QuestionQueue {
        &self.queue
    }

    /// The earlier answer, if it covers this question too.
    fn earlier_answer(&self, pattern: &(SessionId, CallDigest), id: RequestId) -> Option<Answer> {
        let answers = self.answers.lock();
        if answers.quit {
            return Some(Answer::deny(&self.who));
        }
        let (answer, last) = answers.by_pattern.get(pattern)?;
        (Some(id) <= *last).then(|| answer.clone())
    }

    fn is_once(&self, request: &ApprovalRequest) -> bool {
        let mode = self.confirmations.mode(request.tool(), request.side_effects());
        mode == ConfirmationMode::PromptOnce
    }

    /// Stops the run as an interrupt does, which withdraws all questions, this one included.
    async fn quit(&self) -> Answer {
        self.answers.lock().quit = true;
        self.stopper.stop();
        let _ = timeout(WITHDRAWAL_TIMEOUT, pending::<()>()).await;
        Answer::deny(&self.who)
    }
}

#[async_trait]
impl Approver for Asker {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        request.showing().hold();
        let _current = self.queue.until_current(request.id()).await;
        let pattern = (request.session().clone(), request.pattern().key());
        if let Some(answer) = self.earlier_answer(&pattern, request.id()) {
            return answer;
        }
        let page = Page::of(request, request.changes().await.as_deref());
        let answer = match self.terminal.ask(request, page, self.screen.clone()).await {
            Reply::Yes => Answer::allow(&self.who),
            // Holds for this call alone, whatever its mode.
            Reply::Edited(arguments) => return Answer::edit(&self.who, Arguments::Json(arguments)),
            Reply::No(None) => Answer::deny(&self.who),
            Reply::No(Some(reason)) => Answer::deny(&self.who).because(reason),
            Reply::Always => Answer::always(&self.who),
            Reply::Never(reason) => reason.iter().fold(Answer::never(&self.who), Answer::because),
            Reply::Quit => return self.quit().await,
        };
        if matches!(answer.decision(), Decision::Always | Decision::Never) || self.is_once(request) {
            let last = self.queue.last();
            self.answers.lock().by_pattern.insert(pattern, (answer.clone(), last));
        }
        answer
    }
}
