//! From a server's progress to the calls that make it.
//!
//! A call's [`Sink`] travels with its request to the transport, which notes it under the request's token before the
//! request is written; so no progress comes too early, and it comes in the order of the lines.

use super::clean;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use toolyard::ToolContext;

/// The most characters of a message.
const MESSAGE_MAX: usize = 1000;

/// Where the progress of a call goes, as long as its call is in the air.
#[derive(Clone)]
pub(super) struct Sink(pub(super) Arc<ToolContext>);

/// The calls in the air, by token.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<HashMap<ProgressToken, Weak<ToolContext>>>>);

impl Calls {
    /// Notes a call that is about to be sent. Calls that are over go.
    pub(super) fn note(&self, token: ProgressToken, sink: &Sink) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() == calls.capacity() {
            calls.retain(|_, call| call.strong_count() > 0);
        }
        calls.insert(token, Arc::downgrade(&sink.0));
    }

    /// Hands progress to its call, if that is still in the air.
    pub(super) fn tell(&self, progress: &ProgressNotificationParam) {
        let call = {
            let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            calls.get(&progress.progress_token).and_then(Weak::upgrade)
        };
        if let Some(call) = call {
            call.emit(&text(progress));
        }
    }
}

/// One line, such as `2/5 copying`.
fn text(progress: &ProgressNotificationParam) -> String {
    let done = progress.progress;
    let count = progress.total.map_or_else(|| done.to_string(), |total| format!("{done}/{total}"));
    match progress.message.as_deref() {
        Some(message) => format!("{count} {}\n", clean::text(message, MESSAGE_MAX)),
        None => count + "\n",
    }
}
