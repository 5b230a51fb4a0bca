//! The unanswered requests of a connection, by id. A second request under the same id would get the first one's answer.
//!
//! An id is free again when its answer is sent. rmcp does not answer a cancelled request, but as long as that request
//! still runs, rmcp would give its answer to another request under the same id. So a cancelled request keeps its id,
//! which costs clients nothing, because MCP requires each id to be used only once in a session. The memory for such ids
//! is bounded, and the oldest is freed first.

use parking_lot::{Mutex, MutexGuard};
use rmcp::{
    RoleServer,
    model::{ClientNotification, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Maximum memory for the ids of cancelled requests, in bytes: about a thousand numbers.
const CANCELLED_BYTES_MAX: usize = 64 << 10;

/// The unanswered requests of one connection. Cheap to clone; clones share their state.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Arc<Mutex<Ids>>);

#[derive(Debug, Default)]
struct Ids {
    /// The ids in use, each with the number of its request.
    taken: HashMap<RequestId, u64>,
    last_number: u64,
    cancelled: VecDeque<(RequestId, u64)>,
    cancelled_bytes: usize,
}

impl InFlight {
    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock()
    }

    /// Notes a message that arrived: a request takes its id, a cancellation is recorded, others have no effect.
    ///
    /// # Errors
    /// The id of the request, if another request has it.
    pub(super) fn received(
        &self,
        message: &RxJsonRpcMessage<RoleServer>,
    ) -> Result<Option<TakenId>, RequestId> {
        match message {
            JsonRpcMessage::Request(request) => {
                let number = self.ids().take(&request.id).ok_or_else(|| request.id.clone())?;
                return Ok(Some(TakenId { in_flight: self.clone(), id: request.id.clone(), number }));
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
    pub(super) fn answered(&self, message: &TxJsonRpcMessage<RoleServer>) -> Option<TakenId> {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        }?;
        let number = *self.ids().taken.get(id)?;
        Some(TakenId { in_flight: self.clone(), id: id.clone(), number })
    }
}

impl Ids {
    fn take(&mut self, id: &RequestId) -> Option<u64> {
        if self.taken.contains_key(id) {
            return None;
        }
        self.last_number += 1;
        self.taken.insert(id.clone(), self.last_number);
        Some(self.last_number)
    }

    fn release(&mut self, id: &RequestId, number: u64) {
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
            self.release(&id, number);
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

/// The id of an unanswered request, which it keeps until [`release`](Self::release).
#[derive(Debug)]
pub(super) struct TakenId {
    in_flight: InFlight,
    id: RequestId,
    number: u64,
}

impl TakenId {
    /// Frees the id, unless another request has taken it since.
    pub(super) fn release(&self) {
        self.in_flight.ids().release(&self.id, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn receive(in_flight: &InFlight, message: Value) -> Result<Option<TakenId>, RequestId> {
        in_flight.received(&serde_json::from_value(message).unwrap())
    }

    fn ping(in_flight: &InFlight, id: Value) -> Result<Option<TakenId>, RequestId> {
        receive(in_flight, json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    }

    fn cancel(in_flight: &InFlight, id: Value) {
        let params = json!({"requestId": id});
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert!(receive(in_flight, cancel).unwrap().is_none());
    }

    /// An id that is released late stays with a later request that has taken it since.
    #[test]
    fn a_request_frees_its_own_id_alone() {
        let in_flight = InFlight::default();
        let first = ping(&in_flight, json!(1)).unwrap().unwrap();
        assert!(ping(&in_flight, json!(1)).is_err() && ping(&in_flight, json!("1")).is_ok());
        first.release();
        let second = ping(&in_flight, json!(1.0)).unwrap().unwrap();
        first.release();
        assert!(ping(&in_flight, json!(1)).is_err());
        second.release();
        assert!(ping(&in_flight, json!(1)).is_ok());
    }

    /// Cancelled requests keep their ids, at least the most recently cancelled ones, unless their answers are sent
    /// after all.
    #[test]
    fn what_is_kept_of_cancelled_requests_is_bounded() {
        let in_flight = InFlight::default();
        for id in 0..10_000 {
            ping(&in_flight, json!(id)).unwrap();
            cancel(&in_flight, json!(id));
            cancel(&in_flight, json!(id));
        }
        let kept = in_flight.ids().taken.len();
        assert!((500..1500).contains(&kept), "{kept}");
        assert!(ping(&in_flight, json!(0)).is_ok() && ping(&in_flight, json!(9999)).is_err());
        let long = "x".repeat(CANCELLED_BYTES_MAX);
        let taken_id = ping(&in_flight, json!(long)).unwrap().unwrap();
        cancel(&in_flight, json!(long));
        assert!(in_flight.ids().cancelled.is_empty());
        assert_eq!(in_flight.ids().cancelled_bytes, 0);
        taken_id.release();
        let taken_id = ping(&in_flight, json!(1)).unwrap().unwrap();
        cancel(&in_flight, json!(1));
        taken_id.release();
        assert!(ping(&in_flight, json!(1)).is_ok());
        cancel(&in_flight, json!("nobody"));
    }
}
