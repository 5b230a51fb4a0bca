//! Servers whose behaviour a test defines, and services that are called.

use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response,
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::Instant,
};
use toolyard_core::{Call, ContextParts, Service, ToolContext, async_trait};
use toolyard_egress::{CallFailed, Egress, RemoteService, Resolver};
use toolyard_program::{Answered, Given};

/// A request that a server got.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) uri: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// An answer with this status and text.
pub(crate) fn reply(status: u16, text: impl Into<Bytes>) -> Reply {
    Response::builder().status(status).body(Full::new(text.into()).boxed_unsync()).unwrap()
}

/// A server, running until it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Mutex<Vec<Asked>>>,
    /// How many connections it has accepted.
    pub(crate) accepted: Arc<AtomicUsize>,
    /// Ended when it is dropped.
    _task: JoinSet<()>,
}

impl Server {
    /// A server that answers like this.
    pub(crate) async fn open(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::behind(answer, |stream| async { Some(stream) }).await
    }

    /// A server whose connections are wrapped first, for example in TLS.
    pub(crate) async fn behind<S, F>(
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
        first: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = Option<S>> + Send + 'static,
    {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, noted) = (Arc::new(answer), seen.clone());
        let raw = Self::raw(move |stream| {
            let (first, answer, noted) = (first(stream), answer.clone(), noted.clone());
            async move {
                let Some(stream) = first.await else { return };
                let service = service_fn(|request| heard(request, &*answer, &noted));
                // A client that hangs up needs no answer.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            }
        });
        Self { seen, ..raw.await }
    }

    /// A server that does this with each connection.
    pub(crate) async fn raw<F>(with: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(with(stream));
            }
        });
        Self { port, seen: Arc::default(), accepted, _task: task }
    }

    /// A service at this server.
    pub(crate) fn service(&self) -> Service {
        let mut service = Service::new(format!("http://127.0.0.1:{}/tool?key=value", self.port));
        service.allow_private = true;
        service
    }

    /// The only request it got.
    pub(crate) fn only(&self) -> Asked {
        let seen = self.seen.lock().unwrap();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

async fn heard(
    request: Request<Incoming>,
    answer: &(dyn Fn(&Asked) -> Reply + Send + Sync),
    noted: &Mutex<Vec<Asked>>,
) -> Result<Reply, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let asked =
        Asked { method: head.method.to_string(), uri: head.uri.to_string(), headers: head.headers, body };
    noted.lock().unwrap().push(asked.clone());
    Ok(answer(&asked))
}

/// A resolver with one answer after another; the last one stays.
pub(crate) struct Scripted {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Scripted {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self { answers: answers.iter().map(parse).collect(), asked: AtomicUsize::new(0) })
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Resolver for Scripted {
    async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        let at = self.asked.fetch_add(1, Ordering::Relaxed).min(self.answers.len() - 1);
        Ok(self.answers[at].clone())
    }
}

/// The context of a call with this key.
pub(crate) fn context(key: Option<&str>) -> ToolContext {
    let mut parts = ContextParts::detached("count");
    parts.call = Call::new("call_7", "count", Value::Null);
    parts.call.idempotency_key = key.map(Into::into);
    ToolContext::new(parts)
}

/// Calls a service once, in the simplest way.
pub(crate) async fn call(service: &Service) -> Result<Answered, CallFailed> {
    call_by(&Egress::new(), service).await
}

/// Calls a service once, by this way out.
pub(crate) async fn call_by(egress: &Egress, service: &Service) -> Result<Answered, CallFailed> {
    let (cx, arguments) = (context(None), json!({"text": "a b"}));
    let given = Given::new(&arguments, &cx, Instant::now());
    RemoteService::new(service, egress).unwrap().call(&given, None).await
}
