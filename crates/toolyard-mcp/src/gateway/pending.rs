//! The calls that clients wait for: their pending notifications, and the request behind each.

use super::notes::Notes;
use parking_lot::{Mutex, MutexGuard};
use rmcp::{
    RoleServer,
    model::{LoggingMessageNotificationParam, ProgressNotificationParam, RequestId},
    service::Peer,
};
use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};
use tokio::{sync::Notify, time::sleep};
use toolyard::{CallId, SessionId};

/// Minimum time between two notifications of a call's output.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(100);

/// Identifies a call among those of all clients.
type Key = (SessionId, CallId);

/// The calls that clients wait for.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingCalls(Arc<Mutex<HashMap<Key, Arc<Entry>>>>);

impl PendingCalls {
    fn calls(&self) -> MutexGuard<'_, HashMap<Key, Arc<Entry>>> {
        self.0.lock()
    }

    fn get(&self, session: &SessionId, call: &CallId) -> Option<Arc<Entry>> {
        self.calls().get(&(session.clone(), call.clone())).cloned()
    }

    /// Adds output of this call.
    pub(super) fn add_text(&self, session: &SessionId, call: &CallId, text: &str) {
        self.add(session, call, |notes| notes.add_text(text));
    }

    /// Adds a server's progress with this call.
    pub(super) fn add_step(&self, session: &SessionId, call: &CallId, step: ProgressNotificationParam) {
        self.add(session, call, |notes| notes.add_step(step));
    }

    /// Adds a line that a server logs during this call.
    pub(super) fn add_log(&self, session: &SessionId, call: &CallId, log: LoggingMessageNotificationParam) {
        self.add(session, call, |notes| notes.add_log(log));
    }

    fn add(&self, session: &SessionId, call: &CallId, add: impl FnOnce(&mut Notes)) {
        if let Some(call) = self.get(session, call) {
            add(&mut call.notes.lock());
            call.added.notify_one();
        }
    }

    /// The id of the request that made this call.
    pub(super) fn request(&self, session: &SessionId, call: &CallId) -> Option<RequestId> {
        self.get(session, call).map(|call| call.request.clone())
    }

    /// Registers a call until the returned value is dropped.
    pub(super) fn register(
        &self,
        session: &SessionId,
        call: &CallId,
        request: RequestId,
        notes: Notes,
    ) -> PendingCall {
        let key = (session.clone(), call.clone());
        let call = Arc::new(Entry { request, notes: Mutex::new(notes), added: Notify::new() });
        self.calls().insert(key.clone(), call.clone());
        PendingCall { pending: self.clone(), key, call }
    }
}

/// A call: its request, and its pending notifications.
#[derive(Debug)]
struct Entry {
    request: RequestId,
    notes: Mutex<Notes>,
    added: Notify,
}

/// A call that its client waits for; unregistered on drop.
#[derive(Debug)]
pub(super) struct PendingCall {
    pending: PendingCalls,
    key: Key,
    call: Arc<Entry>,
}

impl PendingCall {
    /// Sends notifications while the call runs, and the remaining ones when it has ended.
    pub(super) async fn notify_during<T>(self, peer: &Peer<RoleServer>, call: impl Future<Output = T>) -> T {
        let ended = tokio::select! {
            biased;
            ended = call => ended,
            never = self.notify(peer) => match never {},
        };
        self.notify_new(peer).await;
        ended
    }

    async fn notify(&self, peer: &Peer<RoleServer>) -> Infallible {
        loop {
            self.call.added.notified().await;
            if self.notify_new(peer).await {
                sleep(OUTPUT_INTERVAL).await;
            }
        }
    }

    /// Sends what is new; returns whether the call itself had output. Errors are ignored: the client is gone then.
    async fn notify_new(&self, peer: &Peer<RoleServer>) -> bool {
        while let Some(log) = self.take(Notes::next_log) {
            let _ = peer.notify_logging_message(log).await;
        }
        while let Some(step) = self.take(Notes::next_step) {
            let _ = peer.notify_progress(step).await;
        }
        let Some(output) = self.take(Notes::output) else { return false };
        let _ = peer.notify_progress(output).await;
        true
    }

    fn take<T>(&self, take: impl FnOnce(&mut Notes) -> Option<T>) -> Option<T> {
        take(&mut self.call.notes.lock())
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let mut calls = self.pending.calls();
        // Another call may have taken the same id.
        if calls.get(&self.key).is_some_and(|call| Arc::ptr_eq(call, &self.call)) {
            calls.remove(&self.key);
        }
    }
}
