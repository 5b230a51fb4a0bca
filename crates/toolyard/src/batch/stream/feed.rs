//! Takes the calls of an open batch in, a piece at a time.

use super::{
    super::intake::{Dispatch, Order, Origin, StreamPrefix},
    calls::StreamCalls,
    player,
};
use crate::{
    call::{BatchState, CallGone, CallRef, Entered, Stop, TurnOf, index},
    record::Pending,
};
use futures::channel::mpsc;
use parking_lot::Mutex;
use std::{collections::HashSet, sync::Arc};
use toolyard_core::{Batch, Call};
use tracing::Span;

/// How many waiting calls are taken in together, at most.
const PIECE_MAX: usize = 256;

/// What the task of an open batch knows.
pub(super) struct Stream {
    pub(super) calls: Arc<StreamCalls>,
    pub(super) turn: TurnOf,
    pub(super) order: Order,
    /// The call whose handler opened it.
    pub(super) caller: Result<Option<CallRef>, CallGone>,
    /// The span it was opened in.
    pub(super) span: Span,
    /// Whether it can be resumed in another life of the engine (SM-10).
    pub(super) may_be_resumed: bool,
    /// Who is told of each call's end.
    pub(super) ends: Mutex<Option<mpsc::UnboundedSender<CallRef>>>,
}

/// Takes calls in and plays their runs, until the input ends and every call has ended.
pub(super) async fn play(stream: Arc<Stream>) {
    let (to_player, pieces) = mpsc::unbounded();
    let intake = async {
        let to_player = to_player; // dropped at the end of the input, which ends the player
        let mut earlier = stream.prefix();
        loop {
            let piece = stream.calls.next_piece(PIECE_MAX).await;
            if piece.is_empty() {
                break;
            }
            let _ = to_player.unbounded_send(stream.accept(piece, &mut earlier).await);
        }
        stream.record_closed(earlier.calls)
    };
    // In this order: what is taken in begins in the same poll, and so does the end.
    let (closed, ()) = tokio::join!(biased; intake, player::play_runs(&stream, pieces));
    stream.calls.announce_end();
    if stream.calls.session.engine.recorder.is_some() {
        stream.recorded(closed).await;
    }
}

impl Stream {
    fn prefix(&self) -> StreamPrefix {
        StreamPrefix {
            number: self.calls.number,
            ids: HashSet::default(),
            latest_ids: Vec::new(),
            calls: 0,
            last_run: None,
            holds: Arc::default(),
            foundation: self.calls.foundation(),
            may_be_resumed: self.may_be_resumed,
            ends: None,
        }
    }

    /// Enters a dispatch for calls to be pushed, unless one stands for earlier ones that have not been taken in yet.
    pub(super) fn enter_ahead(&self) -> Option<Entered> {
        let caller = self.caller.as_ref().ok()?.as_ref()?;
        if self.calls.has_ahead() {
            return None;
        }
        Entered::new(caller).ok() // otherwise the calls are refused when they are taken in
    }

    /// Takes calls in, as one piece.
    async fn accept(&self, calls: Vec<Call>, earlier: &mut StreamPrefix) -> Arc<BatchState> {
        earlier.ids.extend(earlier.latest_ids.drain(..));
        let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
        let entered = match &self.caller {
            Ok(caller) => caller.as_ref().map(Entered::new),
            Err(CallGone) => Some(Err(Stop::Orphaned)),
        };
        let (origin, refused) = match &entered {
            None => (Origin::Outside, None),
            Some(Ok(entered)) => (Origin::Nested(entered), None),
            Some(Err(why)) => (Origin::Refused(*why), Some(*why)),
        };
        if let Some(Ok(entered)) = &entered {
            // What has been stopped does not start and need not wait; it may itself be what others wait for.
            entered.parking().until_dropped_settled_or(|| self.calls.stopped().is_some()).await;
        }
        earlier.ends = self.ends.lock().clone();
        let (session, turn) = (&self.calls.session, self.turn.clone());
        let (order, span) = (self.order, self.span.clone());
        let dispatch = Dispatch { session, turn, order, watch: None, origin, span, can_be_resumed: true };
        let batch = dispatch.launch(Batch::new(calls), Some(earlier)).await;
        earlier.latest_ids = ids;
        earlier.calls += index(batch.slots.len());
        earlier.last_run = batch.last_run();
        drop(self.calls.ahead_of(batch.slots.len()));
        if let Some(Ok(entered)) = &entered {
            entered.park();
        }
        self.calls.add(&batch, entered.and_then(Result::ok), refused);
        batch
    }

    /// Gives the record that all calls have been taken, unless the stream has been given up.
    fn record_closed(&self, count: u32) -> Option<Pending> {
        let calls = &self.calls;
        if calls.is_left() {
            return None;
        }
        let request = calls.request();
        calls.session.record_closed(calls.turn, calls.number, count, request.as_deref())
    }

    /// Waits until the results may be given, for a bounded time. What is not durable by then is marked in its result: if
    /// the end of the batch is not, that is all of them.
    async fn recorded(&self, closed: Option<Pending>) {
        let engine = &self.calls.session.engine;
        let until = engine.reply_until(!matches!(self.caller, Ok(None)));
        let pieces = self.calls.pieces();
        for batch in &pieces {
            batch.ends_recorded(until).await;
        }
        if let Some(closed) = closed
            && !engine.recorded_for_reply(closed, until).await
        {
            pieces.iter().for_each(|batch| batch.mark_unrecorded());
        }
    }
}
