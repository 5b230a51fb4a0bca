//! Between rmcp and a client: passes messages on, and stamps calls with their place in the order.

use super::arrival::Arrivals;
use rmcp::{
    RoleServer,
    model::{ClientRequest, JsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// A transport that stamps calls with the order in which they arrive.
pub(super) struct InOrder<T> {
    inner: T,
    arrivals: Arrivals,
}

impl<T> InOrder<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, arrivals: Arrivals::default() }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for InOrder<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut message = self.inner.receive().await?;
        let is_call = |message: &RxJsonRpcMessage<RoleServer>| match message {
            JsonRpcMessage::Request(request) => matches!(request.request, ClientRequest::CallToolRequest(_)),
            _ => false,
        };
        if is_call(&message) {
            message.insert_extension(self.arrivals.next());
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
