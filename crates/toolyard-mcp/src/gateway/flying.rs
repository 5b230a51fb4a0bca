//! The requests of a connection that are not answered yet, by their ids: a second under an id would take the answer of the
//! first.
//!
//! An id is free again when its answer goes out. To a request that is cancelled rmcp gives no answer any more, but as long
//! as it is at work it would give that to another request under the id. So a cancelled request keeps its id, which costs
//! nobody anything: MCP has every id used once in a session. What is kept of such is bounded, and the oldest goes first.

use rmcp::{
    RoleServer,
    model::{ClientNotification, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The most bytes that the ids of cancelled requests take: about a thousand numbers.
const CANCELLED_BYTES_MAX: usize = 64 << 10;

/// The requests of one connection. Cheap to clone; clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Open(Arc<Mutex<Ids>>);

#[derive(Debug, Default)]
struct Ids {
    /// Those that are taken, and by which request.
    taken: HashMap<RequestId, u64>,
    entered: u64,
    cancelled: VecDeque<(RequestId, u64)>,
    cancelled_bytes: usize,
}

impl Open {
    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a message that has come, which is a request or says that one is cancelled, or is nothing of these.
    ///
    /// # Errors
    /// The id of a request that another has.
    pub(super) fn has_come(
        &self,
        message: &RxJsonRpcMessage<RoleServer>,
    ) -> Result<Option<Flight>, RequestId> {
        match message {
            JsonRpcMessage::Request(request) => {
                let number = self.ids().enter(&request.id).ok_or_else(|| request.id.clone())?;
                return Ok(Some(Flight { open: self.clone(), id: request.id.clone(), number }));
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.ids().cancel(id);
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// The request that this message answers.
    pub(super) fn answered(&self, message: &TxJsonRpcMessage<RoleServer>) -> Option<Flight> {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        }?;
        let number = *self.ids().taken.get(id)?;
        Some(Flight { open: self.clone(), id: id.clone(), number })
    }
}

impl Ids {
    fn enter(&mut self, id: &RequestId) -> Option<u64> {
        if self.taken.contains_key(id) {
            return None;
        }
        self.entered += 1;
        self.taken.insert(id.clone(), self.entered);
        Some(self.entered)
    }

    fn leave(&mut self, id: &RequestId, number: u64) {
        if self.taken.get(id) == Some(&number) {
            self.taken.remove(id);
        }
    }

    fn cancel(&mut self, id: &RequestId) {
        let Some(number) = self.taken.get(id).copied() else { return };
        if self.cancelled.iter().any(|(_, cancelled)| *cancelled == number) {
            return;
        }
        self.cancelled_bytes += bytes(id);
        self.cancelled.push_back((id.clone(), number));
        while self.cancelled_bytes > CANCELLED_BYTES_MAX
            && let Some((id, number)) = self.cancelled.pop_front()
        {
            self.cancelled_bytes -= bytes(&id);
            self.leave(&id, number);
        }
    }
}

fn bytes(id: &RequestId) -> usize {
    let text = match id {
        RequestId::String(text) => text.len(),
        RequestId::Number(_) => 0,
    };
    size_of::<(RequestId, u64)>() * 2 + text
}

/// A request that has its id, until it lands.
#[derive(Debug)]
pub(super) struct Flight {
    open: Open,
    id: RequestId,
    number: u64,
}

impl Flight {
    /// Its answer is where it belongs: the id is free, unless another request has it already.
    pub(super) fn land(&self) {
        self.open.ids().leave(&self.id, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn come(open: &Open, message: Value) -> Result<Option<Flight>, RequestId> {
        open.has_come(&serde_json::from_value(message).unwrap())
    }

    fn ping(open: &Open, id: Value) -> Result<Option<Flight>, RequestId> {
        come(open, json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    }

    fn cancel(open: &Open, id: Value) {
        let params = json!({"requestId": id});
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert!(come(open, cancel).unwrap().is_none());
    }

    /// Who lands late takes nothing from who has the id by then.
    #[test]
    fn a_request_frees_its_own_id_alone() {
        let open = Open::default();
        let first = ping(&open, json!(1)).unwrap().unwrap();
        assert!(ping(&open, json!(1)).is_err() && ping(&open, json!("1")).is_ok());
        first.land();
        let second = ping(&open, json!(1.0)).unwrap().unwrap();
        first.land();
        assert!(ping(&open, json!(1)).is_err());
        second.land();
        assert!(ping(&open, json!(1)).is_ok());
    }

    /// A cancelled request keeps its id, those that were cancelled last at least; one whose answer goes all the same does
    /// not.
    #[test]
    fn what_is_kept_of_cancelled_requests_is_bounded() {
        let open = Open::default();
        for id in 0..10_000 {
            ping(&open, json!(id)).unwrap();
            cancel(&open, json!(id));
            cancel(&open, json!(id));
        }
        let kept = open.ids().taken.len();
        assert!((500..1500).contains(&kept), "{kept}");
        assert!(ping(&open, json!(0)).is_ok() && ping(&open, json!(9999)).is_err());
        let long = "x".repeat(CANCELLED_BYTES_MAX);
        let flight = ping(&open, json!(long)).unwrap().unwrap();
        cancel(&open, json!(long));
        assert!(open.ids().cancelled.is_empty());
        assert_eq!(open.ids().cancelled_bytes, 0);
        flight.land();
        let flight = ping(&open, json!(1)).unwrap().unwrap();
        cancel(&open, json!(1));
        flight.land();
        assert!(ping(&open, json!(1)).is_ok());
        cancel(&open, json!("nobody"));
    }
}
