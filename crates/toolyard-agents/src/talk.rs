//! One agent's conversation: its lines in, its answers out, its calls through its session (AG-2, AG-3).
//!
//! ```text
//!   lines ─► Ask ─┬─ call ────────────────► turn: the open batch of a Turn ─────► ends ─┐
//!                 │   └ the batch is over ─► queue, until all of it is answered         ├─► answers ─► outgoing
//!                 ├─ call with `after` ────► apart: waits for those, a Turn of its own ─┘
//!                 └─ refused: an error, which does nothing
//! ```
//!
//! It is one task, which drives the engine's batches too: a call goes to the task of its handler and back, and nothing else
//! is woken on the way. It reads on until a call comes that has no room beside [`CALLS_OPEN_MAX`] others, and a little further,
//! so that an agent may send that many before it reads, and cancel them. It begins no call while the agent does not read,
//! and keeps few of the results that come meanwhile: an agent holds back itself and nobody else.

mod apart;
mod end;
mod held;
mod known;
mod outgoing;
mod turn;
mod unread;

use crate::{
    deltas::{Deltas, Following},
    lines::{LineError, Lines, LongLines},
    observe::Observer,
    protocol::{Ask, AskedCall, Hello, Refused, Tell, Welcome, ask, shown},
    recorded::Recorded,
};
use apart::Apart;
use end::{Closed, cancelled_early};
use held::{Held, Waits};
use known::Known;
use outgoing::Outgoing;
use serde_json::Value;
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};
use toolyard::{Call, CallError, CallId, ErrorKind, Outcome, Routing, Session, ToolSpec};
use turn::Turns;
pub(crate) use unread::AnswersRoom;
use unread::Unread;

/// The most calls of an agent that have no answer.
pub(crate) const CALLS_OPEN_MAX: usize = 1_000;

/// The most bytes of the arguments of a call, which is what the engine takes (CC-4).
const ARGUMENTS_MAX: usize = 256 << 10;

/// How many lines in a row may be refused.
const REFUSED_MAX: u32 = 100;

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
    pub(crate) answers: AnswersRoom,
    pub(crate) deltas: Deltas,
    pub(crate) observer: Observer,
    /// What it was answered in earlier lives.
    pub(crate) recorded: Option<Arc<dyn Recorded>>,
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
    /// How many lines were read.
    line: u64,
    /// The number of the line that is being done.
    at: u64,
    refused: RefusedInARow,
    out: Outgoing<W>,
    unread: Unread,
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
    /// Calls for which there is no room yet, and what is behind them.
    held: Held,
    /// Why no more calls are taken.
    closed: Option<Closed>,
    /// Whether no more lines come.
    input_is_over: bool,
    result: Option<Value>,
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
    /// With its length.
    Line(Result<Ask, Refused>, usize),
    NoMoreLines,
    BadLine(LineError),
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Talk<R, W> {
    pub(crate) fn new(parts: TalkParts<R, W>) -> Self {
        let TalkParts { from, to, session, input, long_lines, answers, deltas, observer, recorded, orders } =
            parts;
        Self {
            lines: Lines::new(from, &long_lines),
            line: 0,
            at: 0,
            refused: RefusedInARow::default(),
            out: Outgoing::new(to),
            unread: Unread::new(answers),
            turns: Turns::new(session.clone(), observer.clone(), recorded.clone()),
            apart: Apart::new(session.clone(), observer.clone(), recorded),
            session,
            input,
            hello: Hello::default(),
            deltas,
            following: None,
            observer,
            orders,
            known: Known::default(),
            held: Held::default(),
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
            self.tell_unread();
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
        // Looked at first and waited for last: to wait for them takes a lock, and mostly something else is there already.
        if self.orders.has_changed().unwrap_or(true) {
            return next_order(&mut self.orders).await;
        }
        let may_answer = self.out.has_room();
        let calls_max = if may_answer && self.unread.is_empty() { self.unread.calls_max() } else { 0 };
        self.turns.fill(calls_max.saturating_sub(self.apart.running()));
        self.apart.fill(calls_max.saturating_sub(self.turns.running()));
        let may_read = !self.input_is_over && self.held.reads_on() && self.out.has_room_for_replies();
        if !may_read {
            self.lines.rest();
        }
        tokio::select! {
            biased;
            () = self.out.write(), if !self.out.is_empty() => Next::Wrote,
            outcome = self.turns.next_ended() => Next::Ended(outcome),
            outcome = self.apart.next_ended() => Next::Ended(outcome),
            (id, text) = next_delta(&mut self.following), if may_answer => Next::Delta(id, text),
            line = next_line(&mut self.lines, !self.held.is_empty()), if may_read => {
                match line {
                    Ok(Some(line)) => {
                        self.line += 1;
                        match line.iter().all(u8::is_ascii_whitespace) {
                            true => Next::Wrote,
                            false => Next::Line(ask(line), line.len()),
                        }
                    }
                    Ok(None) => Next::NoMoreLines,
                    Err(error) => Next::BadLine(error),
                }
            }
            order = next_order(&mut self.orders) => order,
        }
    }

    /// Takes one step. Returns `false` if the agent has exited.
    async fn step(&mut self, next: Next) -> Result<bool, TalkEnd> {
        match next {
            Next::Wrote => {}
            Next::Ended(outcome) => {
                self.unread.came(&outcome);
                match self.unread.is_empty() && self.out.has_room() {
                    true => self.tell_outcome(&outcome),
                    false => self.unread.keep(outcome),
                }
            }
            // Tools name the calls that they make themselves as they like.
            Next::Delta(id, text) if self.known.is_open(&id) => {
                self.out.tell(&Tell::Delta { tool_call_id: &id, text: &text });
            }
            Next::Delta(..) => {}
            Next::Line(Ok(Ask::Cancel(id)), _) if !self.held.is_empty() && self.cancels_ahead(&id) => {}
            Next::Line(asked, bytes) => {
                self.held.push(asked, self.line, bytes);
                self.take_held()?;
            }
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
            // Calls are held one by one.
            Ok(Ask::Calls(_)) => {}
            Ok(Ask::Cancel(id)) if self.known.is_open(&id) => self.cancel(&id),
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

    /// Cancels a call that has no answer.
    fn cancel(&mut self, id: &CallId) {
        if let Some(call) = self.apart.cancel(id).or_else(|| self.turns.cancel(id)) {
            self.give_up(&call, cancelled_early());
        }
    }

    /// Cancels a call in flight, or one that is held, before what is in front of the line that says so. Returns whether
    /// there is one.
    fn cancels_ahead(&mut self, id: &CallId) -> bool {
        if self.known.is_open(id) {
            self.cancel(id);
        } else if let Some(AskedCall { call, .. }) = self.held.cancel(id) {
            self.known.begins(id, 0);
            self.observer.asked();
            self.give_up(&call, cancelled_early());
        } else {
            return false;
        }
        self.refused = RefusedInARow::default();
        true
    }

    /// Does what waits, as far as there is room for its calls.
    fn take_held(&mut self) -> Result<(), TalkEnd> {
        while let Some((waits, line)) = self.held.next(self.known.has_room()) {
            self.at = line;
            match waits {
                Waits::Call(call) => self.call(*call)?,
                Waits::Line(asked) => self.asked(*asked)?,
            }
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

    /// Tells answers that have waited, as far as the agent reads them.
    fn tell_unread(&mut self) {
        while self.out.has_room()
            && let Some(outcome) = self.unread.next()
        {
            self.tell_outcome(&outcome);
        }
    }

    fn tell_outcome(&mut self, outcome: &Outcome) {
        self.tell_deltas();
        self.answered(outcome, Outgoing::tell);
    }

    fn refuse(&mut self, refused: &Refused) -> Result<(), TalkEnd> {
        if self.is_over() {
            return Ok(()); // it is not heard for what it asks any more
        }
        self.observer.refused();
        self.out.reply(&Tell::Error { refused, line: self.at });
        let row = &mut self.refused;
        row.count += 1;
        if row.count == 1 {
            row.first = format!("line {}: {refused}", self.at);
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
}

/// The next line. While others are held, that is a short one.
async fn next_line<R: AsyncRead + Unpin>(
    lines: &mut Lines<R>,
    is_ahead: bool,
) -> Result<Option<&[u8]>, LineError> {
    match is_ahead {
        true => lines.next_short().await,
        false => lines.next().await,
    }
}

async fn next_order(orders: &mut watch::Receiver<Order>) -> Next {
    match orders.changed().await {
        Ok(()) => Next::Ordered,
        Err(_) => Next::NobodyOrders,
    }
}

async fn next_delta(following: &mut Option<Following>) -> (CallId, String) {
    match following {
        Some(following) => following.next().await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
