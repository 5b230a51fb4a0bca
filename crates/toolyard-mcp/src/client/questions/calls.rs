//! The calls that a server may be running, and how to find the call that one of its messages is about.
//!
//! A call's [`CallLink`] travels with its request to the transport, which records it under the request's id and token
//! before the request is written. So no message arrives before its call is known, and messages are handled in order.

use super::caller::{CallInFlight, CallLink, Caller, End};
use crate::{client::text::clean, gateway::Clients};
use parking_lot::{Mutex, MutexGuard};
use rmcp::{
    model::{LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestId},
    service::InboundStreamOrigin,
};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};
use toolyard::SessionId;

/// Maximum number of characters of a message.
const MESSAGE_MAX: usize = 1000;

/// How long a server may continue with a call that was cancelled or is no longer waited for. For that long, its
/// questions may belong to that call.
const LINGER_MAX: Duration = Duration::from_secs(60);

/// Why it is unclear whose call something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unclear {
    /// There is no call.
    #[error("no call is running that this could belong to")]
    Nobody,
    /// It may belong to one client or to another.
    #[error("calls of several clients are running, and it is unclear which of them this belongs to")]
    Several,
}

/// The calls that a server may be running.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Tracked>>);

#[derive(Default)]
struct Tracked {
    calls: HashMap<RequestId, Entry>,
    by_token: HashMap<ProgressToken, Weak<CallInFlight>>,
}

/// A call that was sent and has no answer yet.
struct Entry {
    session: SessionId,
    call: Weak<CallInFlight>,
    end: End,
}

impl Entry {
    fn in_flight(&self) -> Option<Arc<CallInFlight>> {
        in_flight(&self.call)
    }

    /// Whether its server may still be running it.
    fn may_run(&self) -> bool {
        self.end.at().is_none_or(|at| at.elapsed() < LINGER_MAX)
    }
}

impl Calls {
    fn tracked(&self) -> MutexGuard<'_, Tracked> {
        self.0.lock()
    }

    /// Records a call that is about to be sent. Sweeps out calls that are over when a map needs room.
    pub(crate) fn track(&self, id: RequestId, token: Option<ProgressToken>, link: &CallLink) {
        let mut tracked = self.tracked();
        let (session, call, end) =
            (link.0.context.session().clone(), Arc::downgrade(&link.0), link.0.end.clone());
        if tracked.calls.len() == tracked.calls.capacity() {
            tracked.calls.retain(|_, entry| entry.may_run());
        }
        if tracked.by_token.len() == tracked.by_token.capacity() {
            tracked.by_token.retain(|_, call| in_flight(call).is_some());
        }
        if let Some(token) = token {
            tracked.by_token.insert(token, call.clone());
        }
        tracked.calls.insert(id, Entry { session, call, end });
    }

    /// Removes a call that was answered: nothing more belongs to it.
    pub(crate) fn answered(&self, id: &RequestId) {
        self.tracked().calls.remove(id);
    }

    /// Passes progress to its call, if that is still in flight.
    pub(crate) fn progress(&self, progress: &ProgressNotificationParam) {
        let call = self.tracked().by_token.get(&progress.progress_token).and_then(in_flight);
        let Some(call) = call else { return };
        let mut shown = progress.clone();
        shown.message = shown.message.map(|message| clean::text(&message, MESSAGE_MAX));
        let text = text(&shown);
        // This comes first, so that the client does not get the output below as progress, too.
        if let Some(clients) = call.context.resource::<Clients>() {
            clients.step(&call.context, shown);
        }
        call.context.emit(&text);
    }

    /// Passes a line of the server's log to the client whose calls it has, if that is only one.
    pub(crate) fn log(&self, mut log: LoggingMessageNotificationParam) {
        log.logger = log.logger.map(|logger| clean::text(&logger, clean::NAME_MAX));
        log.data = clean::value(log.data, MESSAGE_MAX);
        tracing::debug!(level = ?log.level, data = %log.data, "an MCP server sent a log message");
        let Ok(caller) = self.caller(None) else { return };
        if let Some(clients) = caller.call.context.resource::<Clients>() {
            clients.log(&caller.call.context, log);
        }
    }

    /// The caller that something on this stream belongs to. Over stdio, and on a stream that belongs to no request, it
    /// may belong to any of the calls, so this is clear only if one client has made them all.
    ///
    /// # Errors
    /// [`Unclear`] if it is not clear.
    pub(crate) fn caller(&self, origin: Option<&InboundStreamOrigin>) -> Result<Caller, Unclear> {
        let tracked = self.tracked();
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            let call = tracked.calls.get(id).and_then(Entry::in_flight).ok_or(Unclear::Nobody)?;
            return Ok(CallLink(call).caller());
        }
        let may_run: Vec<&Entry> = tracked.calls.values().filter(|entry| entry.may_run()).collect();
        let calls: Vec<_> = may_run.iter().filter_map(|entry| entry.in_flight()).collect();
        let some_linger = calls.len() < may_run.len();
        let mut caller = Caller::of(calls).ok_or(Unclear::Nobody)?;
        if may_run.iter().any(|entry| entry.session != *caller.call.context.session()) {
            return Err(Unclear::Several);
        }
        caller.is_certain &= !some_linger;
        Ok(caller)
    }
}

fn in_flight(call: &Weak<CallInFlight>) -> Option<Arc<CallInFlight>> {
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
    use super::*;
    use crate::client::questions::caller::EndGuard;
    use tokio::time::advance;
    use toolyard::{ContextParts, ToolContext};

    /// A call of this session in flight.
    fn send(calls: &Calls, id: i64, session: &str) -> (CallLink, EndGuard) {
        let mut parts = ContextParts::detached("t");
        parts.session = SessionId::from(session);
        let (link, guard) = CallLink::of(&ToolContext::new(parts));
        calls.track(RequestId::Number(id), None, &link);
        (link, guard)
    }

    /// The session that a question is attributed to, and whether its call is certain.
    fn asked(calls: &Calls, origin: Option<InboundStreamOrigin>) -> Result<(String, bool), Unclear> {
        let describe = |caller: Caller| (caller.call.context.session().to_string(), caller.is_certain);
        calls.caller(origin.as_ref()).map(describe)
    }

    fn of(session: &str, is_certain: bool) -> Result<(String, bool), Unclear> {
        Ok((session.to_owned(), is_certain))
    }

    /// A question that is marked with its call belongs to that call. Without a mark it belongs to the one client whose
    /// calls the server has, and to nobody if there are several.
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

    /// A server may still be running a call that was given up: its questions are not put to another client.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_may_still_ask() {
        let calls = Calls::default();
        let given_up = send(&calls, 1, "a");
        drop(given_up);
        assert_eq!(asked(&calls, None), Err(Unclear::Nobody));
        let _other = send(&calls, 2, "b");
        assert_eq!(asked(&calls, None), Err(Unclear::Several));
        advance(LINGER_MAX).await;
        assert_eq!(asked(&calls, None), of("b", true));
        let _again = send(&calls, 3, "b");
        drop(_again);
        assert_eq!(asked(&calls, None), of("b", false));
    }
}
