//! The calls that a server has, and from what it says to the call that it is about.
//!
//! A call's [`Sink`] travels with its request to the transport, which notes it under the request's id and token before the
//! request is written; so nothing comes too early, and it comes in the order of the lines.

use super::{
    caller::{Caller, End, InAir, Sink},
    clean,
};
use crate::Clients;
use rmcp::{
    model::{LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestId},
    service::InboundStreamOrigin,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use toolyard::SessionId;

/// The most characters of a message.
const MESSAGE_MAX: usize = 1000;

/// How long a server may still be at a call that it was told to stop, or that nobody waits for any more: so long, what it
/// asks may belong to that one.
const LEFT_FOR: Duration = Duration::from_secs(60);

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

/// The calls that a server has.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    calls: HashMap<RequestId, Entry>,
    by_token: HashMap<ProgressToken, Weak<InAir>>,
}

/// A call that was sent and has no answer yet.
struct Entry {
    session: SessionId,
    call: Weak<InAir>,
    end: End,
}

impl Entry {
    fn in_air(&self) -> Option<Arc<InAir>> {
        in_air(&self.call)
    }

    /// Whether its server may still be at it.
    fn may_run(&self) -> bool {
        self.end.at().is_none_or(|at| at.elapsed() < LEFT_FOR)
    }
}

impl Calls {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call that is about to be sent. Calls that are over go.
    pub(super) fn note(&self, id: RequestId, token: Option<ProgressToken>, sink: &Sink) {
        let mut noted = self.noted();
        let (session, call, end) =
            (sink.0.context.session().clone(), Arc::downgrade(&sink.0), sink.0.end.clone());
        if noted.calls.len() == noted.calls.capacity() {
            noted.calls.retain(|_, entry| entry.may_run());
        }
        if noted.by_token.len() == noted.by_token.capacity() {
            noted.by_token.retain(|_, call| in_air(call).is_some());
        }
        if let Some(token) = token {
            noted.by_token.insert(token, call.clone());
        }
        noted.calls.insert(id, Entry { session, call, end });
    }

    /// Notes that a call was answered: nothing more belongs to it.
    pub(super) fn answered(&self, id: &RequestId) {
        self.noted().calls.remove(id);
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
    pub(super) fn log(&self, mut log: LoggingMessageNotificationParam) {
        log.logger = log.logger.map(|logger| clean::text(&logger, clean::NAME_MAX));
        log.data = clean::value(log.data, MESSAGE_MAX);
        tracing::debug!(level = ?log.level, data = %log.data, "an MCP server logs");
        let Ok(caller) = self.caller(None) else { return };
        if let Some(clients) = caller.call.context.resource::<Clients>() {
            clients.log(&caller.call.context, log);
        }
    }

    /// The call to which something belongs that came on this stream. Over stdio, and on a stream that belongs to no
    /// request, it is one of those that the server has: that is clear only where one client has made them all.
    ///
    /// # Errors
    /// [`Unclear`] where it is not.
    pub(super) fn caller(&self, origin: Option<&InboundStreamOrigin>) -> Result<Caller, Unclear> {
        let noted = self.noted();
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            let call = noted.calls.get(id).and_then(Entry::in_air).ok_or(Unclear::Nobody)?;
            return Ok(Sink(call).caller());
        }
        let may_run: Vec<&Entry> = noted.calls.values().filter(|entry| entry.may_run()).collect();
        let calls: Vec<_> = may_run.iter().filter_map(|entry| entry.in_air()).collect();
        let is_left = calls.len() < may_run.len();
        let mut caller = Caller::of(calls).ok_or(Unclear::Nobody)?;
        if may_run.iter().any(|entry| entry.session != *caller.call.context.session()) {
            return Err(Unclear::Several);
        }
        caller.is_certain &= !is_left;
        Ok(caller)
    }
}

fn in_air(call: &Weak<InAir>) -> Option<Arc<InAir>> {
    call.upgrade().filter(|call| call.end.at().is_none())
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
    use super::{super::caller::Landing, *};
    use tokio::time::advance;
    use toolyard::{ContextParts, ToolContext};

    /// A call of this session in the air.
    fn send(calls: &Calls, id: i64, session: &str) -> (Sink, Landing) {
        let mut parts = ContextParts::detached("t");
        parts.session = SessionId::from(session);
        let (sink, landing) = Sink::of(&ToolContext::new(parts));
        calls.note(RequestId::Number(id), None, &sink);
        (sink, landing)
    }

    /// Whose a question is held to be, and whether it is clear of which call.
    fn asked(calls: &Calls, origin: Option<InboundStreamOrigin>) -> Result<(String, bool), Unclear> {
        let said = |caller: Caller| (caller.call.context.session().to_string(), caller.is_certain);
        calls.caller(origin.as_ref()).map(said)
    }

    fn of(session: &str, is_certain: bool) -> Result<(String, bool), Unclear> {
        Ok((session.to_owned(), is_certain))
    }

    /// A question without a mark of its call is that of the one client whose calls the server has; with one it is that
    /// call's; and it is nobody's where it may be another's.
    #[test]
    fn a_question_goes_to_the_client_whose_it_must_be() {
        let calls = Calls::default();
        assert_eq!(asked(&calls, None), Err(Unclear::Nobody));
        let _one = send(&calls, 1, "a");
        assert_eq!(asked(&calls, None), of("a", true));
        let _two = send(&calls, 2, "a");
        assert_eq!(asked(&calls, Some(InboundStreamOrigin::Unassociated)), of("a", false));
        let _other = send(&calls, 3, "b");
        assert_eq!(asked(&calls, None), Err(Unclear::Several));
        let marked = |id| Some(InboundStreamOrigin::OutboundRequest(RequestId::Number(id)));
        assert_eq!(asked(&calls, marked(3)), of("b", true));
        assert_eq!(asked(&calls, marked(4)), Err(Unclear::Nobody));
        calls.answered(&RequestId::Number(3));
        assert_eq!(asked(&calls, None), of("a", false));
    }

    /// A server may still be at a call that nobody waits for: what it asks then is not put to another client.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_may_still_ask() {
        let calls = Calls::default();
        let given_up = send(&calls, 1, "a");
        drop(given_up);
        assert_eq!(asked(&calls, None), Err(Unclear::Nobody));
        let _other = send(&calls, 2, "b");
        assert_eq!(asked(&calls, None), Err(Unclear::Several));
        advance(LEFT_FOR).await;
        assert_eq!(asked(&calls, None), of("b", true));
        let _again = send(&calls, 3, "b");
        drop(_again);
        assert_eq!(asked(&calls, None), of("b", false));
    }
}
