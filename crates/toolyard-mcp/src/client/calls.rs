//! The calls that a server has, and from what it says to the call that it is about.
//!
//! A call's [`Sink`] travels with its request to the transport, which notes it under the request's id and token before the
//! request is written; so nothing comes too early, and it comes in the order of the lines.

use super::clean;
use crate::Clients;
use rmcp::{
    model::{LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestId},
    service::InboundStreamOrigin,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolyard::ToolContext;

/// The most characters of a message.
const MESSAGE_MAX: usize = 1000;

/// The way back to a call, as long as it is in the air.
#[derive(Clone)]
pub(super) struct Sink(Arc<InAir>);

/// A call in the air.
pub(super) struct InAir {
    pub(super) context: ToolContext,
    /// Fires when it is that no more.
    over: CancellationToken,
}

impl Sink {
    /// That of a call, which is in the air until the guard is dropped.
    pub(super) fn of(context: &ToolContext) -> (Self, DropGuard) {
        let over = CancellationToken::new();
        let guard = over.clone().drop_guard();
        (Self(Arc::new(InAir { context: context.clone(), over })), guard)
    }

    /// The call alone, for what belongs to it without a doubt.
    pub(super) fn caller(&self) -> Caller {
        Caller::of(vec![self.0.clone()])
    }
}

/// Of whom something is asked.
pub(super) struct Caller {
    /// The call, or one of those that one client has made.
    pub(super) call: Arc<InAir>,
    over: Vec<CancellationToken>,
}

impl Caller {
    /// Of at least one.
    fn of(mut calls: Vec<Arc<InAir>>) -> Self {
        let over = calls.iter().map(|call| call.over.clone()).collect();
        Self { call: calls.swap_remove(0), over }
    }

    /// Waits until none of the calls is in the air.
    pub(super) async fn over(&self) {
        for over in &self.over {
            over.cancelled().await;
        }
    }
}

/// Why nobody can be told whose call something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unclear {
    /// There is none.
    #[error("there is no call that this could belong to")]
    Nobody,
    /// It may be that of one client or of another.
    #[error("there are calls of several clients, and nothing says to which of them this belongs")]
    Several,
}

/// The calls in the air.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    by_id: HashMap<RequestId, Weak<InAir>>,
    by_token: HashMap<ProgressToken, Weak<InAir>>,
}

impl Calls {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call that is about to be sent. Calls that are over go.
    pub(super) fn note(&self, id: RequestId, token: Option<ProgressToken>, sink: &Sink) {
        let mut noted = self.noted();
        let call = Arc::downgrade(&sink.0);
        if noted.by_id.len() == noted.by_id.capacity() {
            noted.by_id.retain(|_, call| is_in_air(call));
            noted.by_token.retain(|_, call| is_in_air(call));
        }
        if let Some(token) = token {
            noted.by_token.insert(token, call.clone());
        }
        noted.by_id.insert(id, call);
    }

    /// Hands progress to its call, if that is still in the air.
    pub(super) fn tell(&self, progress: &ProgressNotificationParam) {
        let call = self.noted().by_token.get(&progress.progress_token).and_then(in_air);
        let Some(call) = call else { return };
        let mut shown = progress.clone();
        shown.message = shown.message.map(|message| clean::text(&message, MESSAGE_MAX));
        let text = text(&shown);
        // First: of what a client is told in this way it is not told by the output that follows.
        if let Some(clients) = call.context.resource::<Clients>() {
            clients.step(&call.context, shown);
        }
        call.context.emit(&text);
    }

    /// Hands a line of the server's log to the client whose calls alone it has, if there is one.
    pub(super) fn log(&self, log: LoggingMessageNotificationParam) {
        tracing::debug!(level = ?log.level, data = %clean::text(&log.data.to_string(), MESSAGE_MAX), "an MCP server logs");
        let Ok(caller) = self.caller(None) else { return };
        if let Some(clients) = caller.call.context.resource::<Clients>() {
            clients.log(&caller.call.context, log);
        }
    }

    /// The call to which something belongs that came on this stream. Over stdio, and on a stream that belongs to no
    /// request, it is one of those in the air: that is clear only where one client has made them all.
    ///
    /// # Errors
    /// [`Unclear`] where it is not.
    pub(super) fn caller(&self, origin: Option<&InboundStreamOrigin>) -> Result<Caller, Unclear> {
        let noted = self.noted();
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            let call = noted.by_id.get(id).and_then(in_air).ok_or(Unclear::Nobody)?;
            return Ok(Caller::of(vec![call]));
        }
        let calls: Vec<_> = noted.by_id.values().filter_map(in_air).collect();
        let Some(first) = calls.first() else { return Err(Unclear::Nobody) };
        let session = first.context.session();
        if calls.iter().any(|call| call.context.session() != session) {
            return Err(Unclear::Several);
        }
        Ok(Caller::of(calls))
    }
}

fn in_air(call: &Weak<InAir>) -> Option<Arc<InAir>> {
    call.upgrade().filter(|call| !call.over.is_cancelled())
}

fn is_in_air(call: &Weak<InAir>) -> bool {
    in_air(call).is_some()
}

/// One line, such as `2/5 copying`.
fn text(progress: &ProgressNotificationParam) -> String {
    let done = progress.progress;
    let count = progress.total.map_or_else(|| done.to_string(), |total| format!("{done}/{total}"));
    match &progress.message {
        Some(message) => format!("{count} {message}\n"),
        None => count + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{ContextParts, SessionId};

    fn call(session: &str) -> (Sink, DropGuard) {
        let mut parts = ContextParts::detached("t");
        parts.session = SessionId::from(session);
        Sink::of(&ToolContext::new(parts))
    }

    fn said(calls: &Calls, origin: Option<InboundStreamOrigin>) -> Result<String, Unclear> {
        calls.caller(origin.as_ref()).map(|caller| caller.call.context.session().to_string())
    }

    /// A question without a mark of its call is that of the one client whose calls the server has; with one it is that
    /// call's; and it is nobody's where it may be another's.
    #[test]
    fn a_question_goes_to_the_client_whose_it_must_be() {
        let calls = Calls::default();
        assert_eq!(said(&calls, None), Err(Unclear::Nobody));
        let ((one, first), (two, _second), (other, third)) = (call("a"), call("a"), call("b"));
        calls.note(RequestId::Number(1), None, &one);
        calls.note(RequestId::Number(2), None, &two);
        assert_eq!(said(&calls, None).as_deref(), Ok("a"));
        calls.note(RequestId::Number(3), None, &other);
        assert_eq!(said(&calls, None), Err(Unclear::Several));
        let of = |id| Some(InboundStreamOrigin::OutboundRequest(RequestId::Number(id)));
        assert_eq!(said(&calls, of(3)).as_deref(), Ok("b"));
        drop(first);
        assert_eq!(said(&calls, of(1)), Err(Unclear::Nobody));
        drop(third);
        assert_eq!(said(&calls, Some(InboundStreamOrigin::Unassociated)).as_deref(), Ok("a"));
    }
}
