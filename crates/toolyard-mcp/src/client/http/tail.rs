//! The events of one answer, up to its end.
//!
//! rmcp resumes a stream that broke off if its events are numbered. If they are not, it says only that the stream ended;
//! if the answer never arrives, it says nothing; if an event is too large or too slow, it would ask for it again. Then
//! an answer of ours stands in for the missing one.

use crate::client::protocol::Cut;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use rmcp::{model::ServerJsonRpcMessage, transport::streamable_http_client::SseError};
use sse_stream::Sse;
use tokio::time::{Instant, timeout_at};

/// The events of a stream from a server.
pub(crate) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The events of one answer.
pub(crate) struct Tail<F> {
    events: Events,
    deadline: Option<Instant>,
    fallback: F,
    is_numbered: bool,
    is_done: bool,
}

impl<F: Fn(&str) -> ServerJsonRpcMessage + Send + 'static> Tail<F> {
    pub(crate) fn new(events: Events, deadline: Option<Instant>, fallback: F) -> Self {
        Self { events, deadline, fallback, is_numbered: false, is_done: false }
    }

    pub(crate) fn into_events(self) -> Events {
        stream::unfold(self, |mut tail| async {
            let event = tail.next().await?;
            Some((event, tail))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        if self.is_done {
            return None;
        }
        let event = match self.deadline {
            None => self.events.next().await,
            Some(deadline) => match timeout_at(deadline, self.events.next()).await {
                Ok(event) => event,
                Err(_) => return Some(self.end("it did not answer")),
            },
        };
        match event {
            // rmcp skips such events, except in a greeting, which they make fail without a message.
            Some(Ok(event)) if self.deadline.is_some() && !is_message(&event) => {
                Some(self.end("it sent something that is not an MCP message"))
            }
            Some(Ok(event)) => {
                self.is_numbered |= event.id.is_some();
                Some(Ok(event))
            }
            Some(Err(SseError::Body(error))) if error.is::<Cut>() => Some(self.end(&error.to_string())),
            // A numbered stream is resumed, so the rest is still to come.
            event if self.is_numbered => event,
            Some(Err(error)) => Some(self.end(&format!("its answer cannot be read: {error}"))),
            None => Some(self.end("it ended its answer before it was complete")),
        }
    }

    /// Ends the stream with an answer of ours. If the answer has already arrived, that one counts.
    fn end(&mut self, why: &str) -> Result<Sse, SseError> {
        self.is_done = true;
        let answer = (self.fallback)(why);
        let data = serde_json::to_string(&answer).expect("messages of this program serialise");
        Ok(Sse { data: Some(data), ..Sse::default() })
    }
}

fn is_message(event: &Sse) -> bool {
    let data = event.data.as_deref().unwrap_or_default().trim();
    data.is_empty() || serde_json::from_str::<ServerJsonRpcMessage>(data).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::RequestId;

    async fn all(events: Vec<Result<Sse, SseError>>) -> Vec<String> {
        let lost = |why: &str| crate::client::protocol::answer::lost_answer(RequestId::Number(7), why);
        let tail = Tail::new(stream::iter(events).boxed(), None, lost);
        tail.into_events()
            .map(|event| event.map_or_else(|e| e.to_string(), |e| e.data.unwrap_or_default()))
            .collect()
            .await
    }

    fn event(id: Option<&str>) -> Result<Sse, SseError> {
        Ok(Sse { data: Some("x".to_owned()), id: id.map(str::to_owned), ..Sse::default() })
    }

    /// V5: a stream that breaks off and cannot be resumed is a lost answer.
    #[tokio::test]
    async fn what_breaks_off_for_good_is_reported() {
        let events = all(vec![event(None)]).await;
        assert!(
            events.len() == 2 && events[1].contains("before it was complete") && events[1].contains("7"),
            "{events:?}"
        );
        let events = all(vec![Err(SseError::InvalidLine), event(None)]).await;
        assert!(events.len() == 1 && events[0].contains("cannot be read: invalid line"), "{events:?}");
    }

    #[tokio::test]
    async fn what_can_be_asked_for_again_is_left_to_that() {
        assert_eq!(all(vec![event(Some("1"))]).await, ["x"]);
        assert_eq!(all(vec![event(Some("1")), Err(SseError::InvalidLine)]).await, ["x", "invalid line"]);
    }

    /// A stream without events is not waited for beyond its deadline.
    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_reported() {
        let deadline = Some(Instant::now() + std::time::Duration::from_secs(2));
        let lost = |why: &str| crate::client::protocol::answer::lost_answer(RequestId::Number(7), why);
        let mut events = Tail::new(stream::pending().boxed(), deadline, lost).into_events();
        let data = events.next().await.unwrap().unwrap().data.unwrap();
        assert!(data.contains("it did not answer"), "{data}");
        assert!(events.next().await.is_none());
    }
}
