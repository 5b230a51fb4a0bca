//! Between rmcp and HTTP: sends messages, reads what is answered within bounds, bounds the wait for it, and says what is
//! wrong when it fails.

mod body;
mod events;
mod meter;
mod post;
mod refusal;
mod request;
mod streams;

use crate::client::protocol::{RequestError, WebError};

use super::tail::{Events, Tail};
use crate::{
    client::protocol::{AnswerTimeouts, Disconnect, Intake, answer, describe, line, unanswered},
    frame::LINE_BYTES_MAX,
};
use futures::StreamExt;
use request::{Address, Headers};
use reqwest::{Client, StatusCode};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{StreamableHttpClient, StreamableHttpPostResponse as Answer},
};
use sse_stream::Sse;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use streams::CutOff;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// The reason given when a server does not answer.
const NO_ANSWER: &str = "it did not answer";

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    client: Client,
    timeouts: AnswerTimeouts,
    disconnect: Disconnect,
    /// Notified when the list of tools may have changed.
    changed: Arc<Notify>,
    intake: Intake,
    cut_off: CutOff,
    was_greeted: Arc<AtomicBool>,
}

/// The kind of a message, by how long its answer is waited for.
enum Kind {
    /// The newer greeting: without an answer, the older one is next.
    Discover(RequestId),
    /// The older greeting.
    Initialize(RequestId),
    /// A request that can be answered at once.
    Request(RequestId),
    /// A request with its own time limit, such as a call.
    Long(RequestId),
    /// A message that has no answer.
    Note,
}

impl Web {
    pub(crate) fn new(
        client: Client,
        timeouts: AnswerTimeouts,
        disconnect: Disconnect,
        changed: Arc<Notify>,
        intake: Intake,
    ) -> Self {
        let (cut_off, was_greeted) = (CutOff::default(), Arc::default());
        Self { client, timeouts, disconnect, changed, intake, cut_off, was_greeted }
    }

    /// Notes a greeting. A server that is greeted once more has forgotten the session, as after a restart: its tools
    /// may have changed.
    fn greeted(&self) {
        if self.was_greeted.swap(true, Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    fn deadline(&self, kind: &Kind) -> Option<Instant> {
        let timeout = match kind {
            Kind::Discover(_) => self.timeouts.discover,
            Kind::Long(_) => return None,
            Kind::Initialize(_) | Kind::Request(_) | Kind::Note => self.timeouts.any,
        };
        Some(Instant::now() + timeout)
    }

    /// Makes the answer in place of one that is lost. Also records why a greeting failed, which rmcp only logs.
    fn fallback(&self, kind: Kind) -> Option<impl Fn(&str) -> ServerJsonRpcMessage + Send + 'static> {
        let (id, is_discover, disconnect) = match kind {
            Kind::Discover(id) => (id, true, None),
            Kind::Initialize(id) => (id, false, Some(self.disconnect.clone())),
            Kind::Request(id) | Kind::Long(id) => (id, false, None),
            Kind::Note => return None,
        };
        Some(move |why: &str| {
            if let Some(disconnect) = &disconnect {
                disconnect.record(why);
            }
            if is_discover { unanswered(id.clone()) } else { answer::lost_answer(id.clone(), why) }
        })
    }

    async fn post(
        &self,
        to: Address,
        message: ClientJsonRpcMessage,
        event_bytes_max: usize,
    ) -> Result<Answer, RequestError> {
        let kind = kind(&message);
        if matches!(kind, Kind::Initialize(_)) {
            self.greeted();
        }
        let is_greeting = matches!(kind, Kind::Discover(_) | Kind::Initialize(_));
        let deadline = self.deadline(&kind);
        let fallback = self.fallback(kind);
        let sent = post::post(&self.client, to, &message, event_bytes_max, &self.intake);
        let sent = match deadline {
            None => Ok(sent.await),
            Some(deadline) => timeout_at(deadline, sent).await,
        };
        match (sent, fallback) {
            (Err(_), Some(fallback)) => Ok(Answer::Json(fallback(NO_ANSWER), None)),
            (Err(_), None) => Err(RequestError::UnexpectedServerResponse(NO_ANSWER.into())),
            (Ok(Ok(Answer::Sse(events, session))), Some(fallback)) => {
                let events = bounded(events);
                let deadline = deadline.filter(|_| is_greeting);
                Ok(Answer::Sse(Tail::new(events, deadline, fallback).into_events(), session))
            }
            // The answer to anything else may arrive on the separate stream.
            (Ok(Ok(Answer::Accepted)), Some(fallback)) if is_greeting => {
                Ok(Answer::Json(fallback("its answer is empty"), None))
            }
            (Ok(Err(error)), _) if is_greeting => {
                self.disconnect.record(describe::http(&error));
                Err(error)
            }
            (Ok(sent), _) => sent,
        }
    }

    async fn stream(
        &self,
        to: Address,
        last_event: Option<String>,
        event_bytes_max: usize,
    ) -> Result<Events, RequestError> {
        let (client, intake) = (&self.client, &self.intake);
        let events = streams::open(client, to, last_event, event_bytes_max, intake, &self.cut_off).await?;
        Ok(bounded(events))
    }
}

/// The events without what would take too much memory when it is parsed.
fn bounded(events: Events) -> Events {
    let bounded = |mut event: Sse| {
        event.data = event.data.and_then(line::bounded);
        event
    };
    events.map(move |event| event.map(bounded)).boxed()
}

fn kind(message: &ClientJsonRpcMessage) -> Kind {
    let JsonRpcMessage::Request(request) = message else { return Kind::Note };
    let id = request.id.clone();
    match request.request {
        ClientRequest::DiscoverRequest(_) => Kind::Discover(id),
        ClientRequest::InitializeRequest(_) => Kind::Initialize(id),
        // A subscription is answered only when it ends.
        ClientRequest::CallToolRequest(_) | ClientRequest::SubscriptionsListenRequest(_) => Kind::Long(id),
        _ => Kind::Request(id),
    }
}

impl StreamableHttpClient for Web {
    type Error = WebError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Answer, RequestError> {
        self.post(Address { uri, session, token, headers }, message, LINE_BYTES_MAX).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> Result<Answer, RequestError> {
        self.post(Address { uri, session, token, headers }, message, event_bytes_max).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), RequestError> {
        let to = Address { uri, session: Some(session), token, headers };
        let request = self.client.delete(&*to.uri);
        let answer = to.send(request).await?;
        // Some servers do not know how to.
        match answer.status() {
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            _ => answer.error_for_status().map(drop).map_err(request::http),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, RequestError> {
        self.stream(Address { uri, session, token, headers }, last_event, LINE_BYTES_MAX).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> Result<Events, RequestError> {
        self.stream(Address { uri, session, token, headers }, last_event, event_bytes_max).await
    }
}
