//! What calls put out while they run, on its way to the client as progress.

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::sleep};
use toolyard::{CallId, SessionId};

/// The time between two notifications of a call.
const EVERY: Duration = Duration::from_millis(100);

/// The most characters that wait to be told of one call: of more, the last ones are.
const WAITING_MAX: usize = 4096;

/// A call, among those of all clients.
type Key = (SessionId, CallId);

/// The calls that want their progress told.
#[derive(Debug, Clone, Default)]
pub(super) struct Outputs(Arc<Mutex<Calls>>);

type Calls = HashMap<Key, Arc<Output>>;

impl Outputs {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what this call put out, if somebody wants it.
    pub(super) fn add(&self, session: &SessionId, call: &CallId, text: &str) {
        let output = self.calls().get(&(session.clone(), call.clone())).cloned();
        if let Some(output) = output {
            output.add(text);
        }
    }

    /// Tells what a call puts out from now on, as long as what this gives is there.
    pub(super) fn tell(&self, session: &SessionId, call: &CallId, to: Listener) -> Told {
        let (key, output) = ((session.clone(), call.clone()), Arc::<Output>::default());
        self.calls().insert(key.clone(), output.clone());
        Told { outputs: self.clone(), key, output, to }
    }
}

/// What one call has put out and nobody has been told of.
#[derive(Debug, Default)]
struct Output {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    text: VecDeque<char>,
    /// All characters there ever were: progress that only grows.
    total: u64,
    told: u64,
}

impl Output {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, text: &str) {
        let mut waiting = self.waiting();
        for c in text.chars() {
            if waiting.text.len() == WAITING_MAX {
                waiting.text.pop_front();
            }
            waiting.text.push_back(c);
            waiting.total += 1;
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// What is new, and how much there was in all.
    fn take(&self) -> Option<(String, u64)> {
        let mut waiting = self.waiting();
        if waiting.total == waiting.told {
            return None;
        }
        waiting.told = waiting.total;
        Some((waiting.text.drain(..).collect(), waiting.total))
    }
}

/// Who wants progress, and under which token.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) peer: Peer<RoleServer>,
    pub(super) token: ProgressToken,
}

/// A call of which progress is told.
#[derive(Debug)]
pub(super) struct Told {
    outputs: Outputs,
    key: Key,
    output: Arc<Output>,
    to: Listener,
}

impl Told {
    /// Tells progress, at a bounded rate, until `call` has ended, and what is left then.
    pub(super) async fn during<T>(self, call: impl Future<Output = T>) -> T {
        let ended = tokio::select! {
            biased;
            ended = call => ended,
            never = self.tell() => match never {},
        };
        self.tell_new().await;
        ended
    }

    async fn tell(&self) -> std::convert::Infallible {
        loop {
            self.output.filled.notified().await;
            self.tell_new().await;
            sleep(EVERY).await;
        }
    }

    async fn tell_new(&self) {
        let Some((text, total)) = self.output.take() else { return };
        #[allow(clippy::cast_precision_loss, reason = "what a call puts out is counted in far fewer digits")]
        let progress = ProgressNotificationParam::new(self.to.token.clone(), total as f64).with_message(text);
        // A client that is gone is told of nothing.
        let _ = self.to.peer.notify_progress(progress).await;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let mut calls = self.outputs.calls();
        // Another call may have come under the same id.
        if calls.get(&self.key).is_some_and(|output| Arc::ptr_eq(output, &self.output)) {
            calls.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a call that puts out more than is told, the last is kept, and progress counts all.
    #[test]
    fn what_waits_is_bounded_and_progress_grows() {
        let output = Output::default();
        output.add(&"a".repeat(WAITING_MAX));
        output.add("bc");
        let (text, total) = output.take().unwrap();
        assert_eq!((text.len(), total), (WAITING_MAX, WAITING_MAX as u64 + 2));
        assert!(text.ends_with("abc"));
        assert!(output.take().is_none());
    }
}
