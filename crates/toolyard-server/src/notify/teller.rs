//! Sends what is in the outbox.

use super::{
    Notify,
    note::Note,
    outbox::{Counts, Outbox, Outcome},
    secret::WebhookSecret,
};
use crate::{front::Front, wall};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use futures::{StreamExt as _, stream};
use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use toolyard::RetryPolicy;
use toolyard_egress::{CallFailed, NotSent, SetupError, Webhook};

/// How many questions are told of at once, so that one that is not taken does not keep the others.
const AT_ONCE: usize = 8;

/// Tells of questions until the server stops.
pub(crate) struct Teller {
    waiting: mpsc::Receiver<Note>,
    post: Post,
}

/// How it is told, and to whom.
struct Post {
    hook: Webhook,
    secret: WebhookSecret,
    link: Option<String>,
    attempt_timeout: Duration,
    retry: RetryPolicy,
    counts: Arc<Counts>,
}

/// Why an attempt did not do it.
enum Missed {
    /// It may the next time.
    Passing(String),
    /// It will not.
    Lasting(String),
}

impl Teller {
    /// One that tells as it is configured to, with the outbox that it empties.
    ///
    /// # Errors
    /// The address cannot be spoken to.
    pub(crate) fn new(notify: &Notify, counts: &Arc<Counts>) -> Result<(Self, Outbox), SetupError> {
        let (outbox, waiting) = Outbox::new(notify.queue_max, counts.clone());
        let post = Post {
            hook: notify.webhook()?,
            secret: notify.secret.clone(),
            link: notify.link.clone(),
            attempt_timeout: notify.attempt_timeout,
            retry: notify.retry,
            counts: counts.clone(),
        };
        Ok((Self { waiting, post }, outbox))
    }

    /// Tells of each question, with a link as it is configured, or else like this one.
    pub(crate) async fn run(self, front: Front, link: String, stop: CancellationToken) {
        let Self { mut waiting, post } = self;
        let link = post.link.clone().unwrap_or(link);
        let notes = stream::poll_fn(move |cx| waiting.poll_recv(cx));
        let telling = notes.for_each_concurrent(AT_ONCE, |note| {
            let (post, front, link) = (&post, &front, &link);
            async move { post.counts.count(post.tell(&note, front, link).await) }
        });
        tokio::select! {
            () = stop.cancelled() => {}
            () = telling => {}
        }
    }
}

impl Post {
    /// Tells of a question, as often as it takes while that is of use.
    async fn tell(&self, note: &Note, front: &Front, link: &str) -> Outcome {
        let document = note.document(link);
        let mut ended = 0;
        loop {
            // Nobody need be told of a question that has its answer.
            if !front.questions().is_open(note.question()) {
                return Outcome::Outdated;
            }
            let missed = match self.attempt(note, &document).await {
                Ok(()) => return Outcome::Delivered,
                Err(missed) => missed,
            };
            ended += 1;
            match missed {
                Missed::Passing(why) if ended < self.retry.max_attempts().get() => {
                    tracing::debug!(question = %note.question(), %why, "a question is told of again");
                    sleep(self.retry.delay(ended, chance())).await;
                }
                Missed::Passing(why) | Missed::Lasting(why) => {
                    tracing::warn!(question = %note.question(), %why, "nobody was told of a question");
                    return Outcome::Failed;
                }
            }
        }
    }

    async fn attempt(&self, note: &Note, document: &str) -> Result<(), Missed> {
        let headers = self.headers(&note.id(), wall::now_ms() / 1000, document);
        let posting = self.hook.post(&headers, document.to_owned());
        let posted = timeout(self.attempt_timeout, posting).await;
        let posted = posted.map_err(|_| Missed::Passing("there was no answer in time".to_owned()))?;
        match posted {
            Ok(200..=299) => Ok(()),
            Ok(status @ (408 | 425 | 429 | 500..)) => {
                Err(Missed::Passing(format!("the answer was status {status}")))
            }
            Ok(status) => Err(Missed::Lasting(format!("the answer was status {status}"))),
            Err(CallFailed::NotSent(error @ (NotSent::Refused { .. } | NotSent::Untrusted { .. }))) => {
                Err(Missed::Lasting(error.to_string()))
            }
            Err(error) => Err(Missed::Passing(error.to_string())),
        }
    }

    fn headers(&self, id: &str, timestamp: u64, document: &str) -> HeaderMap {
        let signature = self.secret.signature(id, timestamp, document);
        let all = [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", signature),
        ];
        let header = |(name, value): (&'static str, String)| {
            let value = HeaderValue::try_from(value).expect("ids, numbers and base64 are visible ASCII");
            (HeaderName::from_static(name), value)
        };
        all.map(header).into_iter().collect()
    }
}

/// A random number in `0.0..1.0`, of the machine's own randomness: it only spreads the attempts.
fn chance() -> f64 {
    let bits = RandomState::new().hash_one(0) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}
