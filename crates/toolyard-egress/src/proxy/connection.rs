//! One connection of a program: one request, and what comes of it.

use super::{
    Doors,
    hand_on::{HandedBack, To, hand_on},
    meter::{Meter, Metered},
    quota::Begun,
    refusal::{Kind, Refusal},
    visit::{Door, Verdict, Visit},
    wish::Wish,
};
use crate::{
    address::Addresses,
    exchange::{HEAD_BYTES_MAX, HEADERS_MAX, causes},
    origin::Destination,
};
use futures::future::{Either, select};
use http::{HeaderValue, Request, Response, header::CONNECTION};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::{convert::Infallible, pin::pin, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional},
    net::TcpStream,
};

type Answer = Response<UnsyncBoxBody<Bytes, hyper::Error>>;

/// A tunnel that has been granted, and begins behind its answer.
struct Tunnel {
    program: OnUpgrade,
    origin: TcpStream,
}

/// A connection of a program. When it is dropped, the observer is told of it.
pub(super) struct Connection {
    doors: Arc<Doors>,
    meter: Arc<Meter>,
    visit: Mutex<Visit>,
    tunnel: Mutex<Option<Tunnel>>,
    /// Its request to an upstream, until it has ended.
    begun: Mutex<Option<Begun>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let visit = self.visit.get_mut();
        (visit.bytes_up, visit.bytes_down) = self.meter.bytes();
        if let Some(begun) = self.begun.get_mut().take() {
            begun.ended(visit.bytes_up + visit.bytes_down);
        }
        self.doors.observer.visited(visit);
    }
}

impl Connection {
    pub(super) fn new(doors: Arc<Doors>) -> Self {
        let (up, down) = (doors.budget_up.clone(), doors.budget_down.clone());
        doors.traffic.connected();
        let meter = Arc::new(Meter::new(up, down, doors.traffic.clone()));
        let visit = Visit { door: None, to: None, verdict: Verdict::Served, bytes_up: 0, bytes_down: 0 };
        Self { doors, meter, visit: Mutex::new(visit), tunnel: Mutex::new(None), begun: Mutex::new(None) }
    }

    /// Serves the connection up to its end.
    ///
    /// # Cancel safety
    /// Dropping the future ends it, and that to the origin.
    pub(super) async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let stream = Metered::new(stream, self.meter.clone());
        let ended =
            match select(pin!(self.carry(stream)), pin!(self.meter.idle(self.doors.limits.idle))).await {
                Either::Left(((), _)) => None,
                Either::Right(((), _)) => Some(Verdict::Idle),
            };
        let ended = if self.meter.is_over() { Some(Verdict::Spent) } else { ended };
        if let Some(verdict) = ended {
            self.visit.lock().verdict = verdict;
        }
    }

    async fn carry(&self, stream: Metered<impl AsyncRead + AsyncWrite + Unpin + Send + 'static>) {
        let service = service_fn(async |request| Ok::<_, Infallible>(self.answer(request).await));
        let mut http = http1::Builder::new();
        http.max_headers(HEADERS_MAX).max_header_size(HEAD_BYTES_MAX).max_buf_size(2 * HEAD_BYTES_MAX);
        http.timer(TokioTimer::new());
        let served = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        self.note_end(served.err().map(|error| causes(&error)));
        let tunnel = self.tunnel.lock().take();
        if let Some(Tunnel { program, mut origin }) = tunnel
            && let Ok(program) = program.await
        {
            // How it ends is between the two at its ends.
            let _ = copy_bidirectional(&mut TokioIo::new(program), &mut origin).await;
        }
    }

    /// Notes how a connection has ended. One that had not said what it wants was none that could be served.
    fn note_end(&self, broke: Option<String>) {
        let mut visit = self.visit.lock();
        match (&visit.verdict, &visit.door, broke) {
            (Verdict::Served, None, broke) => {
                visit.verdict = Verdict::Refused(broke.unwrap_or_else(|| "it asked for nothing".to_owned()));
            }
            (Verdict::Served, Some(_), Some(broke)) => visit.verdict = Verdict::Failed(broke),
            _ => {}
        }
    }

    /// Answers the one request of a connection: each has one verdict, and nothing is read behind it.
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let mut answer = self.carried_out_or_refused(request).await;
        if self.tunnel.lock().is_none() {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    async fn carried_out_or_refused(&self, request: Request<Incoming>) -> Answer {
        match self.carried_out(request).await {
            Ok(answer) => answer,
            Err(refusal) => {
                let why = refusal.why.clone();
                let is_failure = refusal.kind == Kind::Failed;
                self.visit.lock().verdict =
                    if is_failure { Verdict::Failed(why) } else { Verdict::Refused(why) };
                refusal.response().map(|text| Full::new(text).map_err(|never| match never {}).boxed_unsync())
            }
        }
    }

    async fn carried_out(&self, mut request: Request<Incoming>) -> Result<Answer, Refusal> {
        let program = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        let doors = self.doors.clone();
        match Wish::of(&head, &doors.upstreams)? {
            Wish::Tunnel(to) => {
                self.note(Door::Tunnel, to.to_string());
                self.tunnel(program, &to).await
            }
            Wish::Forward(origin, path) => {
                self.note(Door::Forward, origin.to_string());
                let may = self.granted(&origin.at)?;
                let to = To { origin: &origin, may, path, upstream: None };
                self.hand_on(Request::from_parts(head, body), to).await
            }
            Wish::Upstream(upstream, path) => {
                self.note(Door::Upstream(upstream.name.clone()), upstream.origin.to_string());
                let to = To { origin: &upstream.origin, may: upstream.may, path, upstream: Some(upstream) };
                self.hand_on(Request::from_parts(head, body), to).await
            }
        }
    }

    fn note(&self, door: Door, to: String) {
        let mut visit = self.visit.lock();
        (visit.door, visit.to) = (Some(door), Some(to));
    }

    /// Which addresses this host may have.
    ///
    /// # Errors
    /// [`Refusal`]: it is not granted.
    fn granted(&self, to: &Destination) -> Result<Addresses, Refusal> {
        self.doors
            .grants
            .of(to)
            .ok_or_else(|| Refusal::denied(format!("{to} is not granted to this program")))
    }

    /// Lets a connection spend the budgets.
    ///
    /// # Errors
    /// [`Refusal`]: nothing is left of them, or less than it has sent by now.
    fn admit(&self) -> Result<(), Refusal> {
        self.meter.bound().map_err(|spent| Refusal::denied(spent.to_string()))
    }

    async fn tunnel(&self, program: OnUpgrade, to: &Destination) -> Result<Answer, Refusal> {
        let may = self.granted(to)?;
        self.admit()?;
        let origin = self.doors.egress.dial(to, may).await?;
        *self.tunnel.lock() = Some(Tunnel { program, origin });
        Ok(Response::new(Full::default().map_err(|never| match never {}).boxed_unsync()))
    }

    async fn hand_on(&self, request: Request<Incoming>, to: To<'_>) -> Result<Answer, Refusal> {
        self.admit()?;
        let begun = to.upstream.map(|upstream| {
            let name = &upstream.name;
            upstream.quota.begin().map_err(|spent| Refusal::too_many(format!("'{name}': {spent}")))
        });
        let begun = begun.transpose()?;
        let back: HandedBack = hand_on(&self.doors.egress, request, to).await?;
        *self.begun.lock() = begun.map(|mut begun| {
            begun.served();
            begun
        });
        Ok(back.map(|body| body.boxed_unsync()))
    }
}
