//! The requests that are not answered yet, by their ids: a second under an id would take the answer of the first.

use rmcp::{
    RoleServer,
    model::{ClientNotification, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Those of one connection, as its messages go by.
#[derive(Debug, Default)]
pub(super) struct Open(HashSet<RequestId>);

impl Open {
    /// Takes note of a message that has come.
    ///
    /// # Errors
    /// The id of a request that another has.
    pub(super) fn has_come(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> Result<(), RequestId> {
        match message {
            JsonRpcMessage::Request(request) if !self.0.insert(request.id.clone()) => {
                return Err(request.id.clone());
            }
            // Such a request is not answered any more.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.0.remove(id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes note of a message that goes.
    pub(super) fn goes(&mut self, message: &TxJsonRpcMessage<RoleServer>) {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        id.map(|id| self.0.remove(id));
    }
}

/// A request, among those of all sessions.
type Key = (String, RequestId);

/// Those of all sessions over HTTP, where each request has a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Flying(Arc<Mutex<HashSet<Key>>>);

impl Flying {
    fn keys(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request of this session, as long as what this gives is there.
    ///
    /// # Errors
    /// The id, where another request has it.
    pub(super) fn enter(&self, session: &str, id: RequestId) -> Result<Flight, RequestId> {
        let key = (session.to_owned(), id);
        if !self.keys().insert(key.clone()) {
            return Err(key.1);
        }
        Ok(Flight { flying: self.clone(), key })
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(super) struct Flight {
    flying: Flying,
    key: Key,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flying.keys().remove(&self.key);
    }
}
