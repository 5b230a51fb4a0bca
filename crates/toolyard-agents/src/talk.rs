//! One agent's conversation: its lines in, its answers out, its calls through its session (AG-2, AG-3).
//!
//! ```text
//!   lines ─► Ask ─┬─ call ────────────────► turn: the open batch of a Turn ─────► ends ─┐
//!                 │   └ the batch is over ─► queue, until all of it is answered         ├─► answers ─► outgoing
//!                 ├─ call with `after` ────► apart: waits for those, a Turn of its own ─┘
//!                 └─ refused: an error, which does nothing
//! ```
//!
//! It is one task. It reads on until a call comes that has no room beside [`CALLS_OPEN_MAX`] others, so that an agent may
//! send that many before it reads. It takes no answer from the engine while the agent does not read: an agent holds back
//! itself and nobody else.

mod apart;
mod known;
mod outgoing;
mod turn;

use crate::{
    deltas::{Deltas, Following},
    lines::{LineError, Lines, LongLines},
    observe::Observer,
    protocol::{Ask, AskedCall, Hello, Refused, Tell, Welcome, ask, shown},
};
use apart::Apart;
use known::Known;
use outgoing::Outgoing;
use serde_json::Value;
use std::{collections::VecDeque, future::pending, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::timeout,
};
use toolyard::{Call, CallError, CallId, ErrorKind, Outcome, Routing, Session, ToolSpec};
use turn::Turns;

/// The most calls of an agent that have no answer.
pub(crate) const CALLS_OPEN_MAX: usize = 1_000;

/// The most bytes of the arguments of a call, which is what the engine takes (CC-4).
const ARGUMENTS_MAX: usize = 256 << 10;

/// How many lines in a row may be refused.
const REFUSED_MAX: u32 = 100;

/// How long the last lines of an agent that has exited are read.
const LAST_LINES: Duration = Duration::from_secs(1);

/// What a conversation is ordered to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Go on.
    Talk,
    /// Tell the agent to end within this time.
    Stop(Duration),
    /// The agent has exited.
    Exited,
}

/// What a conversation is made of.
pub(crate) struct TalkParts<R, W> {
    pub(crate) from: R,
    pub(crate) to: W,
    pub(crate) session: Session,
    pub(crate) input: Option<Arc<Value>>,
    pub(crate) long_lines: LongLines,
    pub(crate) deltas: Deltas,
    pub(crate) observer: Observer,
    pub(crate) orders: watch::Receiver<Order>,
}

/// How a conversation ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Talked {
    pub(crate) why: TalkEnd,
    /// What the agent gave with its `bye`.
    pub(crate) result: Option<Value>,
}

/// Why a conversation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TalkEnd {
    /// The agent has nothing more to ask, or has exited.
    Over,
    /// A line was longer or slower than allowed.
    Line(String),
    /// It has sent nothing that is understood for too long.
    Protocol(String),
}

/// A conversation.
pub(crate) struct Talk<R, W> {
    lines: Lines<R>,
    line: u64,
    refused: RefusedInARow,
    out: Outgoing<W>,
    session: Session,
    input: Option<Arc<Value>>,
    hello: Hello,
    deltas: Deltas,
    following: Option<Following>,
    observer: Observer,
    orders: watch::Receiver<Order>,
    known: Known,
    turns: Turns,
    apart: Apart,
    /// Calls of a line for which there is no room yet.
    held: VecDeque<Result<AskedCall, Refused>>,
    /// Why no more calls are taken.
    closed: Option<Closed>,
    /// Whether no more lines come.
    input_is_over: bool,
    result: Option<Value>,
}

/// Why an agent makes no more calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// It has said so.
    Bye,
    /// It was told to end.
    Stopped,
}

/// Lines that were refused since the last one that was understood.
#[derive(Debug, Default)]
struct RefusedInARow {
    count: u32,
    /// What was wrong with the first one.
    first: String,
}

/// What happens next in a conversation.
enum Next {
    Ordered,
    NobodyOrders,
    Wrote,
    Ended(Outcome),
    Delta(CallId, String),
    Line(Result<Ask, Refused>),
    NoMoreLines,
    BadLine(LineError),
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Talk<R, W> {
    pub(crate) fn new(parts: TalkParts<R, W>) -> Self {
        let TalkParts { from, to, session, input, long_lines, deltas, observer, orders } = parts;
        Self {
            lines: Lines::new(from, &long_lines),
            line: 0,
            refused: RefusedInARow::default(),
            out: Outgoing::new(to),
            turns: Turns::new(session.clone(), observer.clone()),
            apart: Apart::new(session.clone(), observer.clone()),
            session,
            input,
            hello: Hello::default(),
            deltas,
            following: None,
            observer,
            orders,
            known: Known::default(),
            held: VecDeque::new(),
            closed: None,
            input_is_over: false,
            result: None,
        }
    }

    /// Talks until the agent has exited, or is given up. `asks_nothing` is told once, when the agent has nothing more to ask
    /// and all is answered; its input is closed when it has read that, and what it still says is heard for its bye.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the calls that run.
    pub(crate) async fn run(mut self, asks_nothing: impl FnOnce()) -> Talked {
        let mut asks_nothing = Some(asks_nothing);
        let why = loop {
            // Whatever has been answered has left its room.
            if let Err(why) = self.take_held() {
                break why;
            }
            if self.is_over() {
                if let Some(tell) = asks_nothing.take() {
                    tell();
                }
                if self.out.is_empty() {
                    self.out.close();
                }
            }
            let next = self.next().await;
            match self.step(next).await {
                Ok(true) => {}
                Ok(false) => break TalkEnd::Over,
                Err(why) => break why,
            }
        };
        Talked { why, result: self.result }
    }

    /// Whether the agent asks nothing more, and all is answered.
    fn is_over(&self) -> bool {
        let asks_nothing = self.input_is_over || self.closed.is_some();
        asks_nothing && self.held.is_empty() && self.known.open() == 0
    }

    async fn next(&mut self) -> Next {
        let may_answer = self.out.has_room();
        self.turns.fill(may_answer);
        self.apart.fill(may_answer);
        let may_read = !self.input_is_over && self.held.is_empty() && self.out.has_room_for_replies();
        if !may_read {
            self.lines.rest();
        }
        tokio::select! {
            biased;
            changed = self.orders.changed() => match changed {
                Ok(()) => Next::Ordered,
                Err(_) => Next::NobodyOrders,
            },
            () = self.out.write(), if !self.out.is_empty() => Next::Wrote,
            outcome = self.turns.next_ended(), if may_answer => Next::Ended(outcome),
            outcome = self.apart.next_ended(), if may_answer => Next::Ended(outcome),
            (id, text) = next_delta(&mut self.following), if may_answer => Next::Delta(id, text),
            line = self.lines.next(), if may_read => {
                match line {
                    Ok(Some(line)) => {
                        self.line += 1;
                        match line.iter().all(u8::is_ascii_whitespace) {
                            true => Next::Wrote,
                            false => Next::Line(ask(line)),
                        }
                    }
                    Ok(None) => Next::NoMoreLines,
                    Err(error) => Next::BadLine(error),
                }
            }
        }
    }

    /// Takes one step. Returns `false` if the agent has exited.
    async fn step(&mut self, next: Next) -> Result<bool, TalkEnd> {
        match next {
            Next::Wrote => {}
            Next::Ended(outcome) => {
                self.tell_deltas();
                self.answered(&outcome, Outgoing::tell);
            }
            // Tools name the calls that they make themselves as they like.
            Next::Delta(id, text) if self.known.is_open(&id) => {
                self.out.tell(&Tell::Delta { tool_call_id: &id, text: &text });
            }
            Next::Delta(..) => {}
            Next::Line(asked) => self.asked(asked)?,
            Next::NoMoreLines | Next::BadLine(LineError::Broken(_)) => self.input_is_over = true,
            Next::BadLine(error) => return Err(TalkEnd::Line(error.to_string())),
            Next::NobodyOrders => {
                self.exited().await;
                return Ok(false);
            }
            Next::Ordered => {
                let order = *self.orders.borrow_and_update();
                match order {
                    Order::Talk => {}
                    Order::Stop(grace) => self.stop(grace),
                    Order::Exited => {
                        self.exited().await;
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Does what a line asks.
    fn asked(&mut self, asked: Result<Ask, Refused>) -> Result<(), TalkEnd> {
        match asked {
            Err(refused) => return self.refuse(&refused),
            Ok(Ask::Calls(calls)) => {
                self.held.extend(calls);
                return self.take_held();
            }
            Ok(Ask::Cancel(id)) if self.known.is_open(&id) => {
                let cancelled = self.apart.cancel(&id).or_else(|| self.turns.cancel(&id));
                if let Some(call) = cancelled {
                    self.give_up(&call, cancelled_early());
                }
            }
            // It has just been answered, or never was.
            Ok(Ask::Cancel(id)) if self.known.knows(&id) || self.closed.is_some() => {}
            Ok(Ask::Cancel(id)) => {
                let refused = Refused::new(format!("no call '{}' has been sent", shown(id.as_str())));
                return self.refuse(&refused.of("cancel", Some(id)));
            }
            Ok(Ask::TurnEnd) => self.turns.end_turn(),
            Ok(Ask::Hello(hello)) => self.welcome(hello),
            Ok(Ask::Bye(result)) => {
                self.result = result;
                self.closed.get_or_insert(Closed::Bye);
            }
        }
        self.refused = RefusedInARow::default();
        Ok(())
    }

    /// Takes calls of the last line, as many as there is room for.
    fn take_held(&mut self) -> Result<(), TalkEnd> {
        while self.known.has_room()
            && let Some(call) = self.held.pop_front()
        {
            self.call(call)?;
        }
        Ok(())
    }

    /// Takes a call.
    fn call(&mut self, asked: Result<AskedCall, Refused>) -> Result<(), TalkEnd> {
        let AskedCall { call, after, wrong } = match asked {
            Ok(asked) => asked,
            Err(refused) => return self.refuse(&refused),
        };
        let unknown = after.iter().flatten().find(|id| **id == call.id || !self.known.knows(id)).cloned();
        let bytes = call.arguments.size();
        if !self.known.begins(&call.id, bytes) {
            let id = shown(call.id.as_str());
            let why = format!("a tool call with the id '{id}' has not been answered yet");
            return self.refuse(&Refused::new(why).of("tool_call", Some(call.id)));
        }
        self.refused = RefusedInARow::default();
        self.observer.asked();
        match (after, unknown, wrong, self.closed) {
            (.., Some(closed)) => self.give_up(&call, closed.error()),
            _ if bytes > ARGUMENTS_MAX => {
                let why = format!("the arguments have {bytes} bytes; {ARGUMENTS_MAX} are the most");
                self.give_up(&call, CallError::new(ErrorKind::InvalidInput, why));
            }
            (_, _, Some(why), _) => self.give_up(&call, CallError::new(ErrorKind::InvalidInput, why)),
            (_, Some(unknown), ..) => {
                let why =
                    format!("'after' names '{}', which is no call that is known", shown(unknown.as_str()));
                let error = CallError::new(ErrorKind::InvalidInput, why);
                self.give_up(&call, error.with_advice("Name calls that were sent before this one."));
            }
            (None, ..) => self.turns.take(call),
            (Some(after), ..) => {
                let waits = after.iter().filter_map(|id| self.known.in_flight(id)).collect();
                self.apart.take(call, waits);
            }
        }
        Ok(())
    }

    /// Answers a call that does not reach the engine.
    fn give_up(&mut self, call: &Call, error: CallError) {
        let outcome = Outcome::new(call, Routing::ShortCircuit, Err(error.not_started()));
        self.observer.denied(&outcome);
        self.answered(&outcome, Outgoing::reply);
    }

    /// A call has its outcome.
    fn answered(&mut self, outcome: &Outcome, add: fn(&mut Outgoing<W>, &Tell<'_>)) {
        self.known.ends(&outcome.call_id);
        self.apart.answered(&outcome.call_id);
        self.observer.answered(outcome);
        add(&mut self.out, &Tell::Response { outcome, meta: self.hello.meta });
    }

    fn refuse(&mut self, refused: &Refused) -> Result<(), TalkEnd> {
        if self.is_over() {
            return Ok(()); // it is not heard for what it asks any more
        }
        self.observer.refused();
        self.out.reply(&Tell::Error { refused, line: self.line });
        let row = &mut self.refused;
        row.count += 1;
        if row.count == 1 {
            row.first = format!("line {}: {refused}", self.line);
        }
        match row.count < REFUSED_MAX {
            true => Ok(()),
            false => Err(TalkEnd::Protocol(format!(
                "{REFUSED_MAX} lines in a row were refused; the first: {}",
                row.first
            ))),
        }
    }

    /// Tells what has come of deltas: before the answers of their calls.
    fn tell_deltas(&mut self) {
        while let Some((id, text)) = self.following.as_mut().and_then(Following::try_next) {
            if self.known.is_open(&id) {
                self.out.tell(&Tell::Delta { tool_call_id: &id, text: &text });
            }
        }
    }

    fn welcome(&mut self, hello: Hello) {
        self.hello = hello;
        match hello.deltas {
            true if self.following.is_none() => self.following = Some(self.deltas.follow(&self.session)),
            true => {}
            false => self.following = None,
        }
        let entries = self.session.definitions();
        let tools: Vec<ToolSpec> = entries.iter().map(|entry| self.session.shown_spec(entry)).collect();
        let (agent, input) = (self.session.agent(), self.input.as_deref());
        self.out.reply(&Tell::Welcome(Welcome { agent, input, tools: &tools }));
    }

    /// Tells the agent to end, and cancels what it has asked for.
    fn stop(&mut self, grace: Duration) {
        self.out.reply(&Tell::Shutdown { grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX) });
        self.closed = Some(Closed::Stopped);
        let waiting = self.apart.stop().into_iter().chain(self.turns.stop());
        for call in waiting.collect::<Vec<_>>() {
            self.give_up(&call, cancelled_early());
        }
    }

    /// The agent has exited: its calls are cancelled, and what it wrote last is still looked at for its result.
    async fn exited(&mut self) {
        let held =
            std::mem::take(&mut self.held).into_iter().filter_map(|held| held.ok().map(|held| held.call));
        let waiting = self.apart.leave().into_iter().chain(self.turns.leave()).chain(held);
        for call in waiting.collect::<Vec<_>>() {
            let outcome = Outcome::new(&call, Routing::ShortCircuit, Err(cancelled_early().not_started()));
            self.observer.denied(&outcome);
        }
        let last_lines = async {
            while let Ok(Some(line)) = self.lines.next().await {
                if let Ok(Ask::Bye(result)) = ask(line) {
                    self.result = result;
                }
            }
        };
        let _ = timeout(LAST_LINES, last_lines).await; // somebody else may hold its output open
    }
}

impl Closed {
    /// Why a call ends that comes too late.
    fn error(self) -> CallError {
        CallError::new(
            ErrorKind::Cancelled,
            match self {
                Self::Bye => "the agent has said bye",
                Self::Stopped => "the agent was told to end",
            },
        )
    }
}

/// Why a call ends that was cancelled before it was begun.
fn cancelled_early() -> CallError {
    CallError::new(ErrorKind::Cancelled, "the call was cancelled before it started")
}

async fn next_delta(following: &mut Option<Following>) -> (CallId, String) {
    match following {
        Some(following) => following.next().await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
