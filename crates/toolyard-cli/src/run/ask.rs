//! Asking the person at the terminal (PO-4).
//!
//! ```text
//!   ApprovalRequest ─► held until its turn ─► sheet: what would run, on one page ─► terminal: a line is read
//!                                             │ as plain text                       │ on a thread of its own
//!                                             └ nothing in it moves a cursor        └ y, n, a, q ─► Answer
//! ```

mod arguments;
mod plain;
mod reply;
mod sheet;
#[cfg(unix)]
mod terminal;
#[cfg(not(unix))]
#[path = "ask/no_terminal.rs"]
mod terminal;

pub(super) use terminal::Terminal;

use super::{interrupt::Stopper, live::Screen};
use crate::{
    cli::{Approve, RunArgs},
    fault::Fault,
};
use reply::Reply;
use sheet::Sheet;
use std::{
    collections::HashMap,
    future::pending,
    io::{IsTerminal, stderr, stdin},
    time::Duration,
};
use tokio::{sync::Mutex, time::timeout};
use toolyard::{Answer, ApprovalRequest, Approver, CallDigest, ConfirmationMode, Confirmations, async_trait};

/// How long a question waits to be withdrawn once the person has stopped the run; then it is answered no.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(1);

/// The terminal to ask on, where somebody is to be asked: by the person's word, or where they look on and said nothing.
pub(super) fn terminal(args: &RunArgs) -> Result<Option<Terminal>, Fault> {
    match args.approve {
        Some(Approve::Ask) => Terminal::open().map(Some).map_err(|error| {
            Fault::Usage(format!("--approve ask needs a terminal to ask on, and there is none: {error}"))
        }),
        None if stderr().is_terminal() && !is_typed(args) => {
            Ok(Terminal::open().ok().filter(Terminal::is_ours))
        }
        None | Some(Approve::Auto | Approve::Deny) => Ok(None),
    }
}

/// Whether the input itself comes from the keyboard: its lines and answers could not be told apart.
fn is_typed(args: &RunArgs) -> bool {
    let reads_stdin = args.input.file.as_ref().is_none_or(|file| file.as_os_str() == "-");
    reads_stdin && stdin().is_terminal()
}

/// Asks one question at a time.
pub(super) struct Asker {
    terminal: Terminal,
    screen: Option<Screen>,
    stopper: Stopper,
    confirmations: Confirmations,
    /// Whose turn it is has this.
    said: Mutex<Said>,
}

/// What the person has said so far.
#[derive(Default)]
struct Said {
    quit: bool,
    /// Answers for a whole pattern. The engine settles other questions with them, but a moment later than the next one
    /// has its turn.
    of_pattern: HashMap<CallDigest, Answer>,
}

impl Asker {
    /// Asks on this terminal, with the live view off the screen meanwhile.
    pub(super) fn new(
        terminal: Terminal,
        screen: Option<Screen>,
        stopper: Stopper,
        confirmations: Confirmations,
    ) -> Self {
        Self { terminal, screen, stopper, confirmations, said: Mutex::default() }
    }

    fn is_once(&self, request: &ApprovalRequest) -> bool {
        let mode = self.confirmations.mode(request.tool(), request.side_effects());
        mode == ConfirmationMode::PromptOnce
    }

    /// Stops the run as an interrupt does, which withdraws this question and all others.
    async fn quit(&self) -> Answer {
        self.stopper.stop();
        let _ = timeout(WITHDRAWN_WITHIN, pending::<()>()).await;
        Answer::Deny
    }
}

#[async_trait]
impl Approver for Asker {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        request.showing().hold();
        let mut said = self.said.lock().await;
        if said.quit {
            return Answer::Deny;
        }
        let pattern = request.pattern().key(request.session());
        if let Some(answer) = said.of_pattern.get(&pattern) {
            return *answer;
        }
        let sheet = Sheet::of(request, request.changes().await.as_deref());
        let answer = match self.terminal.ask(request, sheet, self.screen.clone()).await {
            Reply::Yes => Answer::Allow,
            Reply::No => Answer::Deny,
            Reply::Always => Answer::Always,
            Reply::Quit => {
                said.quit = true;
                return self.quit().await;
            }
        };
        if answer == Answer::Always || self.is_once(request) {
            said.of_pattern.insert(pattern, answer);
        }
        answer
    }
}
