//! `Idempotency-Key`: a request that comes twice is done once (HT-1).
//!
//! ```text
//!   token, path, key ─┬─ new ─────────────────────► done, and its answer kept
//!                     ├─ seen, the same body ─────► that answer, or the wait for it
//!                     └─ seen, another body ──────► 422
//! ```

use super::extract::admit;
use crate::{app::App, problem::Problem};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, response},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use tokio::sync::watch;
use tower::Service as _;

/// How many answers are kept.
const ANSWERS_MAX: usize = 10_000;

/// How many bytes of answers are kept.
const BYTES_MAX: usize = 64 << 20;

/// The longest key, in characters.
const KEY_CHARS_MAX: usize = 255;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Whose request it is, at which path, under which key.
type Place = [u8; 32];

/// The answers to requests with keys, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Answered(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    /// Those of requests that are being done are among them, of which there are no more than requests at once.
    by_place: HashMap<Place, Known>,
    /// Those that are there, the oldest first, each with its size in bytes.
    order: VecDeque<(Place, usize)>,
    bytes: usize,
    /// How many are kept no longer.
    forgotten: u64,
}

#[derive(Debug, Clone)]
struct Known {
    /// Of what was asked for.
    body: [u8; 32],
    answer: watch::Receiver<Option<Arc<Answer>>>,
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn response(&self) -> Response {
        let mut response = (self.status, self.body.clone()).into_response();
        *response.headers_mut() = self.headers.clone();
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
        response
    }

    /// Whether it says what came of the request, and not only that it was not looked at.
    fn is_final(&self) -> bool {
        let refused = [401, 403, 408, 413, 429];
        !self.status.is_server_error() && !refused.contains(&self.status.as_u16())
    }
}

enum Found {
    Known(Known),
    New(watch::Sender<Option<Arc<Answer>>>),
}

impl Answered {
    fn find(&self, place: Place, body: [u8; 32]) -> Found {
        let mut state = self.0.lock();
        if let Some(known) = state.by_place.get(&place) {
            return Found::Known(known.clone());
        }
        let (tell, answer) = watch::channel(None);
        state.by_place.insert(place, Known { body, answer });
        Found::New(tell)
    }

    /// Keeps an answer, unless the request may be sent again.
    fn keep(&self, place: Place, answer: &Answer) {
        let mut state = self.0.lock();
        if answer.is_final() {
            // Its size stands with it: it may be kept no longer before it has been told.
            state.order.push_back((place, answer.body.len()));
            state.bytes += answer.body.len();
            state.shrink();
        } else {
            state.by_place.remove(&place);
        }
    }

    /// How many answers are kept, and how many are kept no longer.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.order.len() as u64, state.forgotten)
    }

    /// Forgets a request that broke off.
    fn forget(&self, place: &Place) {
        self.0.lock().by_place.remove(place);
    }
}

impl Answers {
    fn shrink(&mut self) {
        while self.order.len() > ANSWERS_MAX || (self.bytes > BYTES_MAX && self.order.len() > 1) {
            let Some((oldest, bytes)) = self.order.pop_front() else { return };
            self.by_place.remove(&oldest);
            self.bytes -= bytes;
            self.forgotten += 1;
        }
    }
}

/// Whether a request has a key that counts.
pub(super) fn has_key(request: &Request) -> bool {
    request.method() == Method::POST && request.headers().contains_key(HEADER)
}

/// Does a request with a key once.
pub(super) async fn once(app: App, request: Request, routes: Router) -> Response {
    remembered(app, request, routes).await.unwrap_or_else(Problem::into_response)
}

async fn remembered(app: App, request: Request, mut routes: Router) -> Result<Response, Problem> {
    let key = key(request.headers())?.to_owned();
    let caller = app.access.caller(request.headers())?;
    admit(request.extensions(), &app, &caller)?;
    let (parts, body) = request.into_parts();
    let content_type = parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if content_type.to_ascii_lowercase().trim_ascii_start().starts_with(b"text/event-stream") {
        return Err(Problem::malformed(
            "a streamed body cannot have an Idempotency-Key: it is not known before its end",
        ));
    }
    let body = app.bodies.read(body).await?;
    let query = parts.uri.query().unwrap_or_default();
    let place = hash(&[caller.0.name().as_bytes(), parts.uri.path().as_bytes(), key.as_bytes()]);
    let asked = hash(&[content_type, query.as_bytes(), &body]);
    match app.answered.find(place, asked) {
        Found::Known(known) if known.body != asked => {
            let detail = "this Idempotency-Key was used for another request: use a new one";
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch", detail))
        }
        Found::Known(mut known) => {
            let answered = known.answer.wait_for(Option::is_some).await;
            let answer = answered.ok().and_then(|answer| answer.clone());
            answer.map(|answer| answer.response()).ok_or_else(not_answered)
        }
        Found::New(tell) => {
            let request = Request::from_parts(parts, Body::from(body));
            // In a task of its own: who asked may go, and come back for the answer (HT-2).
            let keeping = app.clone();
            let doing = tokio::spawn(async move {
                let response = routes.call(request).await.unwrap_or_else(|never| match never {});
                keep(&keeping, place, tell, response).await
            });
            doing.await.map_err(|_| {
                app.answered.forget(&place);
                not_answered()
            })?
        }
    }
}

async fn keep(
    app: &App,
    place: Place,
    tell: watch::Sender<Option<Arc<Answer>>>,
    response: Response,
) -> Result<Response, Problem> {
    let (response::Parts { status, headers, .. }, body) = response.into_parts();
    // An answer that is made here is no longer than the results that are kept.
    let body = axum::body::to_bytes(body, usize::MAX).await.map_err(|_| not_answered())?;
    let answer = Arc::new(Answer { status, headers: headers.clone(), body: body.clone() });
    app.answered.keep(place, &answer);
    let _ = tell.send(Some(answer)); // nobody may wait for it
    let mut response = (status, body).into_response();
    *response.headers_mut() = headers;
    Ok(response)
}

fn not_answered() -> Problem {
    let detail = "the first request with this key broke off without an answer: look at what it has done";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "not_answered", detail)
}

/// The key of a request that is passed on, if it has one.
pub(crate) fn key_of(headers: &HeaderMap) -> Option<String> {
    headers.contains_key(HEADER).then(|| key(headers).ok().map(str::to_owned)).flatten()
}

/// The key, quoted or bare.
fn key(headers: &HeaderMap) -> Result<&str, Problem> {
    let bad =
        || Problem::malformed("an Idempotency-Key has 1 to 255 visible ASCII characters, quoted or bare");
    let mut given = headers.get_all(HEADER).iter();
    let (Some(key), None) = (given.next(), given.next()) else { return Err(bad()) };
    let key = key.to_str().map_err(|_| bad())?.trim();
    let bare = key.strip_prefix('"').map_or(Some(key), |rest| rest.strip_suffix('"'));
    let bare = bare.filter(|key| (1..=KEY_CHARS_MAX).contains(&key.len()));
    bare.filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')).ok_or_else(bad)
}

/// A hash of parts, each of which ends where it ends.
fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let part =
        |hash: Sha256, part: &&[u8]| hash.chain_update((part.len() as u64).to_be_bytes()).chain_update(part);
    parts.iter().fold(Sha256::new(), part).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: usize) -> Place {
        hash(&[&number.to_be_bytes()])
    }

    fn answer(bytes: usize) -> Answer {
        Answer { status: StatusCode::OK, headers: HeaderMap::new(), body: vec![0; bytes].into() }
    }

    /// Does a request under a new key, up to its answer, which is not told yet.
    fn done(answered: &Answered, number: usize, bytes: usize) -> watch::Sender<Option<Arc<Answer>>> {
        let Found::New(tell) = answered.find(place(number), [0; 32]) else { panic!("{number} is known") };
        answered.keep(place(number), &answer(bytes));
        tell
    }

    fn is_known(answered: &Answered, number: usize) -> bool {
        answered.0.lock().by_place.contains_key(&place(number))
    }

    /// HT-1: of more than 10 000 answers the oldest are kept no longer, which is counted; a request that is still being
    /// done is not forgotten.
    #[test]
    fn answers_are_kept_within_their_number() {
        let answered = Answered::default();
        let Found::New(_being_done) = answered.find(place(0), [0; 32]) else { panic!("it is new") };
        (1..=ANSWERS_MAX).for_each(|number| drop(done(&answered, number, 10)));
        assert_eq!(answered.counts(), (ANSWERS_MAX as u64, 0));
        (1..=5).for_each(|number| drop(done(&answered, ANSWERS_MAX + number, 10)));
        assert_eq!(answered.counts(), (ANSWERS_MAX as u64, 5));
        assert!(is_known(&answered, 0) && !is_known(&answered, 5) && is_known(&answered, 6));
        let state = answered.0.lock();
        assert_eq!((state.by_place.len(), state.bytes), (ANSWERS_MAX + 1, 10 * ANSWERS_MAX));
    }

    /// HT-1: an answer that is kept no longer before it was told is told to whoever waits for it, and takes no room.
    #[tokio::test]
    async fn an_answer_may_be_forgotten_before_it_is_told() {
        let answered = Answered::default();
        let first = done(&answered, 1, BYTES_MAX / 2 + 1);
        let Found::Known(mut waiting) = answered.find(place(1), [0; 32]) else { panic!("it is known") };
        drop(done(&answered, 2, BYTES_MAX / 2 + 1));
        assert!(!is_known(&answered, 1) && is_known(&answered, 2));
        assert_eq!(answered.0.lock().bytes, BYTES_MAX / 2 + 1);
        first.send(Some(Arc::new(answer(7)))).unwrap();
        let told = waiting.answer.wait_for(Option::is_some).await.unwrap().clone();
        assert_eq!(told.unwrap().body.len(), 7);
    }

    /// HT-1: a key may be quoted, and is bounded.
    #[test]
    fn a_key_is_quoted_or_bare() {
        let read = |text: &str| {
            let headers: HeaderMap = [(HEADER, text.parse().unwrap())].into_iter().collect();
            key(&headers).map(str::to_owned).ok()
        };
        assert_eq!((read("\"a-1\""), read("a-1")), (Some("a-1".into()), Some("a-1".into())));
        for bad in ["", "\"\"", "\"a", "a\"", "a b", &"x".repeat(256)] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
