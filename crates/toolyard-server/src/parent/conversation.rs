//! What is done for each line of the parent.

mod begin;
mod sessions;

use super::{
    GRACE, LAST_LINES, TalkEnd, TalkError,
    ask::{self, Ask, Confirmation, Head, Hello},
    deltas::Deltas,
    events,
    functions::Functions,
    names::Names,
    out::{Gone, Out},
    questions, tell,
    turns::Turns,
};
use crate::{
    access::Token,
    app::App,
    problem::Problem,
    questions::Asked,
    routes::{confirmations::settle, tools::definitions_of},
};
use futures::{Stream, StreamExt as _};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::{codec::LinesCodecError, sync::CancellationToken, task::TaskTracker};
use toolyard::{Answer, SessionId};

/// The session of turns that name none.
pub(crate) const SESSION: &str = "main";

/// How many bytes of lines are read while an answer waits for room: so that the end behind them is seen.
const AHEAD_BYTES_MAX: usize = 1 << 20;

/// Who has answered a question, if the parent does not say.
const WHO: &str = "parent";

/// A conversation with a parent. Dropping it cancels what the parent has begun.
pub(super) struct Conversation {
    app: App,
    token: Arc<Token>,
    out: Out,
    /// How many lines have been done.
    line: u64,
    /// Lines that have been read and not been done.
    ahead: VecDeque<String>,
    /// How many bytes they have.
    ahead_bytes: usize,
    /// Whether no more lines come.
    is_read: bool,
    meta: Arc<AtomicBool>,
    /// The sessions that were opened by name, until they are closed by the parent.
    opened: BTreeSet<String>,
    names: Names,
    turns: Turns,
    functions: Functions,
    /// What has to be answered before the end.
    tasks: TaskTracker,
    followers: Followers,
    ending: Option<Ending>,
}

/// Why nothing new is begun.
enum Ending {
    /// The parent has said bye, by this request.
    Bye(Option<Value>),
    /// The program was told to end.
    Stopped,
}

/// The tasks that tell the parent what it did not ask about.
struct Followers {
    questions: Option<JoinHandle<()>>,
    events: Option<JoinHandle<()>>,
    /// Which events are wanted.
    wanted: watch::Sender<events::Wanted>,
    /// Fires when those that are there are the last.
    finish: CancellationToken,
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.questions.iter().chain(&self.events).for_each(JoinHandle::abort);
    }
}

impl Conversation {
    pub(super) fn new(app: App, out: Out) -> Result<Self, TalkError> {
        let (names, tasks) = (Names::default(), TaskTracker::new());
        if !app.front.tell_parent(Deltas::new(names.clone(), out.clone())) {
            return Err(TalkError::Twice);
        }
        Ok(Self {
            token: Arc::new(Token::parent()),
            functions: Functions::new(app.engine.clone(), out.clone(), names.clone(), tasks.clone()),
            app,
            out,
            line: 0,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            is_read: false,
            meta: Arc::default(),
            opened: BTreeSet::new(),
            names,
            turns: Turns::default(),
            tasks,
            followers: Followers {
                questions: None,
                events: None,
                wanted: watch::Sender::new(None),
                finish: CancellationToken::new(),
            },
            ending: None,
        })
    }

    /// Speaks until the parent says bye, closes its end, or `stop` fires, and all is answered.
    pub(super) async fn run(
        mut self,
        mut lines: impl Stream<Item = Result<String, LinesCodecError>> + Unpin,
        stop: CancellationToken,
    ) -> Result<TalkEnd, TalkError> {
        let (mut answer, mut is_stopped): (Option<Vec<u8>>, bool) = (None, false);
        let talked = loop {
            if answer.is_none()
                && let Some(line) = self.ahead.pop_front()
            {
                self.ahead_bytes -= weight(&line);
                answer = self.line(&line).and_then(|told| self.out.try_tell(told).err());
                continue;
            }
            let out = self.out.clone();
            let may_read = !self.is_read && self.ahead_bytes < AHEAD_BYTES_MAX;
            tokio::select! {
                biased;
                () = out.gone() => break Ok(TalkEnd::Closed),
                () = stop.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    self.out.tell_now(tell::shutdown(GRACE));
                    if self.ending.is_none() {
                        self.end(Ending::Stopped);
                    }
                }
                // The answer is kept until it has been told.
                told = tell_one(&out, answer.as_ref()), if answer.is_some() => match told {
                    Ok(()) => answer = None,
                    Err(_) => break Ok(TalkEnd::Closed),
                },
                () = self.tasks.wait(), if self.ending.is_some() && answer.is_none() => break Ok(self.over().await),
                line = lines.next(), if may_read => match line {
                    None if matches!(self.ending, Some(Ending::Bye(_))) => self.says_no_more(),
                    // It says bye, once what stands before that is answered.
                    None if self.ahead.iter().any(|line| is_bye(line)) => self.is_read = true,
                    None => break Ok(TalkEnd::Closed),
                    Some(Err(error)) => break Err(self.broken(error).await),
                    Some(Ok(line)) => {
                        self.ahead_bytes += weight(&line);
                        self.ahead.push_back(line);
                    }
                }
            }
        };
        self.leave();
        self.tasks.close();
        // Its calls end with its sessions. What does not end in time is the engine's affair.
        let _ = timeout(GRACE, self.tasks.wait()).await;
        talked
    }

    /// Begins nothing new from now on.
    fn end(&mut self, ending: Ending) {
        self.turns.end_all();
        self.functions.finish();
        self.tasks.close();
        self.ending = Some(ending);
    }

    /// The parent has said bye and closed its end: what waits for it waits in vain, and everything else goes on.
    fn says_no_more(&mut self) {
        self.is_read = true;
        self.functions.end();
        let questions = self.app.front.questions();
        questions.set_parent(false);
        if questions.has_approvers() {
            return;
        }
        let epoch = self.app.engine.epoch();
        let is_own = |asked: &Asked| is_own(&self.app, asked.request.session());
        for asked in questions.pending(epoch, None, usize::MAX, is_own) {
            let (app, request) = (self.app.clone(), asked.request);
            self.tasks.spawn(async move {
                let questions = app.front.questions();
                // One that has ended meanwhile needs no answer.
                let _ = questions.answer(request.id(), request.digest(), Answer::nobody()).await;
            });
        }
    }

    /// Everything is answered.
    async fn over(&mut self) -> TalkEnd {
        self.followers.finish.cancel();
        let events = self.followers.events.take();
        // It ends when it has told what is there.
        let told = async { drop(futures::future::join_all(events).await) };
        match self.ending.take() {
            Some(Ending::Bye(id)) => {
                told.await;
                let _ = self.out.tell(tell::answer("goodbye", id.as_ref(), json!({}))).await;
                self.out.end();
                TalkEnd::Bye
            }
            _ => {
                let _ = timeout(LAST_LINES, told).await; // a parent that reads nothing keeps nobody
                TalkEnd::Stopped
            }
        }
    }

    /// Lines cannot be read any more.
    async fn broken(&mut self, error: LinesCodecError) -> TalkError {
        let number = self.line + self.ahead.len() as u64 + 1;
        let error = TalkError::from(error);
        let told = self.out.tell(tell::error(&Head::default(), number, &Problem::malformed(&error)));
        let _ = timeout(LAST_LINES, told).await; // a parent that reads nothing hears nothing
        error
    }

    /// Does what a line asks; returns what is to be told at once.
    fn line(&mut self, line: &str) -> Option<Vec<u8>> {
        self.line += 1;
        if line.trim_ascii().is_empty() {
            return None;
        }
        let (head, checked) = ask::head(line);
        let asked = checked.and_then(|()| ask::ask(&head, line));
        match asked.and_then(|ask| self.done(&head, ask)) {
            Ok(answer) => answer,
            Err(problem) => Some(tell::error(&head, self.line, &problem)),
        }
    }

    /// Does what a line asks; returns its answer, if that is known at once.
    fn done(&mut self, head: &Head, ask: Ask) -> Result<Option<Vec<u8>>, Problem> {
        let answer = |op: &str, fields: Value| Ok(Some(tell::answer(op, head.id.as_ref(), fields)));
        match ask {
            Ask::Hello(hello) => Ok(Some(self.hello(head, hello))),
            Ask::Open(ask) => {
                self.may_begin()?;
                self.open(&ask.session, ask.open)?;
                self.opened.insert(ask.session.clone());
                answer("opened", json!({"session": ask.session}))
            }
            Ask::Fork(ask) => {
                self.may_begin()?;
                let served = self.served(&ask.of)?;
                let agent = served.fork(ask.of.agent.as_deref(), ask.fork.policy()?)?;
                answer("forked", json!({"session": served.id().as_str(), "agent": agent.agent().as_str()}))
            }
            Ask::Close(session) => self.close(head, &session).map(|()| None),
            Ask::Definitions(ask) => {
                let (_, agent) = self.agent(&ask.of)?;
                let definitions = tell::listed(definitions_of(&agent, ask.to.as_deref())?);
                answer("definitions", json!({"definitions": definitions}))
            }
            Ask::Respond(ask) => self.respond(head, *ask).map(|()| None),
            Ask::Calls(ask) => self.calls(head, ask).map(|()| None),
            Ask::TurnEnd => self.turns.end(turn_of(head)?).map(|()| None),
            Ask::Cancel(call) => self.turns.cancel(turn_of(head)?, call.as_ref()).map(|()| None),
            Ask::Confirmation(given) => {
                self.confirmation(head, given);
                Ok(None)
            }
            Ask::Register(definition) => {
                let (tool, class) = self.functions.register(*definition)?;
                answer("registered", json!({"tool": tool, "class": class.as_str()}))
            }
            Ask::Unregister(tool) => {
                self.functions.unregister(&tool)?;
                answer("unregistered", json!({"tool": tool}))
            }
            Ask::Reply(call_id, reply) => self.functions.reply(&call_id, reply).map(|()| None),
            Ask::Bye if matches!(self.ending, Some(Ending::Bye(_))) => Err(Problem::draining()),
            Ask::Bye => {
                self.end(Ending::Bye(head.id.clone()));
                if self.is_read {
                    self.says_no_more();
                }
                Ok(None)
            }
        }
    }

    fn hello(&mut self, head: &Head, hello: Hello) -> Vec<u8> {
        self.meta.store(hello.meta, Ordering::Relaxed);
        if let Some(deltas) = self.app.front.deltas() {
            deltas.want(hello.deltas);
        }
        self.app.front.questions().set_parent(hello.confirm && !self.is_read);
        if hello.confirm && self.followers.questions.is_none() {
            let following = questions::follow(self.app.clone(), self.names.clone(), self.out.clone());
            self.followers.questions = Some(tokio::spawn(following));
        }
        self.followers.wanted.send_replace(hello.events);
        if self.followers.events.is_none() {
            let (wanted, finish) = (self.followers.wanted.subscribe(), self.followers.finish.clone());
            let following = events::follow(self.app.clone(), wanted, finish, self.out.clone());
            self.followers.events = Some(tokio::spawn(following));
        }
        let entries = self.app.engine.registry().list();
        let tools: Vec<&str> = entries.iter().map(|entry| entry.name()).collect();
        tell::welcome(head.id.as_ref(), self.app.engine.epoch(), &tools)
    }

    /// Brings an answer to its question, in a task: it may take a moment until it counts.
    fn confirmation(&self, head: &Head, given: Confirmation) {
        let (app, out) = (self.app.clone(), self.out.clone());
        let head = Head { op: head.op.clone(), id: head.id.clone(), turn: None };
        let line = self.line;
        self.tasks.spawn(async move {
            let Confirmation { request_id, who, given } = given;
            let who = who.as_deref().unwrap_or(WHO);
            let here = |session: &SessionId, _| is_own(&app, session);
            let answer = match settle(&app, &request_id, here, || Ok(()), given, who).await {
                Ok(taken) => {
                    let taken = serde_json::to_value(taken).expect("an answer can be written as JSON");
                    tell::answer("confirmed", head.id.as_ref(), taken)
                }
                Err(problem) => tell::error(&head, line, &problem),
            };
            let _ = out.tell(answer).await;
        });
    }

    /// Lets go of everything that the parent has begun: nobody waits for it.
    fn leave(&self) {
        self.app.front.questions().set_parent(false);
        if let Some(deltas) = self.app.front.deltas() {
            deltas.want(false);
        }
        self.turns.end_all();
        for served in self.app.book.list(None, usize::MAX, |served| served.owner().is_parent()) {
            served.close();
        }
        self.functions.end();
        self.app.forget_closed();
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Tells an answer, which is kept by whoever waits for that.
async fn tell_one(out: &Out, answer: Option<&Vec<u8>>) -> Result<(), Gone> {
    match answer {
        Some(answer) => out.tell(answer.clone()).await,
        None => Ok(()),
    }
}

/// Whether a line says bye.
fn is_bye(line: &str) -> bool {
    ask::head(line).0.op.as_deref() == Some("bye")
}

/// What a line that waits takes, in bytes.
fn weight(line: &str) -> usize {
    line.len() + 64
}

/// Whether a session is the parent's.
pub(super) fn is_own(app: &App, session: &SessionId) -> bool {
    app.book.find(session.as_str()).is_some_and(|served| served.owner().is_parent())
}

fn turn_of(head: &Head) -> Result<&str, Problem> {
    head.turn.as_deref().ok_or_else(|| Problem::invalid("/turn", "field 'turn' is missing"))
}
