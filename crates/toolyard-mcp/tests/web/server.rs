//! A server over HTTP whose answers a test defines.

use futures::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    header::{CONTENT_TYPE, HeaderMap},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use toolyard_mcp::ServerConfig;

/// A request to the server.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) http: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) message: Value,
}

impl Asked {
    /// The method of the message, or of HTTP if there is no message.
    pub(crate) fn what(&self) -> &str {
        self.message["method"].as_str().unwrap_or(&self.http)
    }

    /// The tool that is called.
    pub(crate) fn tool(&self) -> &str {
        self.message["params"]["name"].as_str().unwrap_or_default()
    }

    /// A successful answer to it.
    pub(crate) fn result(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result})
    }

    pub(crate) fn refusal(&self, code: i64) -> Value {
        let error = json!({"code": code, "message": "no such method"});
        json!({"jsonrpc": "2.0", "id": self.message["id"], "error": error})
    }
}

pub(crate) type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// An answer with this status, content type and text.
pub(crate) fn reply(status: u16, kind: &str, text: impl Into<Bytes>) -> Reply {
    let body = Full::new(text.into()).boxed_unsync();
    Response::builder().status(status).header(CONTENT_TYPE, kind).body(body).unwrap()
}

pub(crate) fn json_of(message: &Value) -> Reply {
    reply(200, "application/json", message.to_string())
}

/// An answer of this content type that is sent in pieces.
pub(crate) fn pieces(kind: &str, pieces: impl Stream<Item = Bytes> + Send + 'static) -> Reply {
    let body = StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync();
    Response::builder().header(CONTENT_TYPE, kind).body(body).unwrap()
}

/// An answer with this start and 100 MiB after it. `taken` counts the pieces of 1 MiB that were taken.
pub(crate) fn flood(kind: &str, begin: &'static str, taken: &Arc<AtomicUsize>) -> Reply {
    let taken = taken.clone();
    let xs = stream::iter(0..100).map(move |_| {
        taken.fetch_add(1, Ordering::Relaxed);
        Bytes::from(vec![b'x'; 1 << 20])
    });
    pieces(kind, stream::iter([Bytes::from(begin)]).chain(xs))
}

/// A well-behaved server of the older way: each of its tools answers with its own name.
pub(crate) fn plain(asked: &Asked) -> Reply {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    match asked.what() {
        "initialize" => {
            let info = json!({"name": "web", "version": "1"});
            let version = &asked.message["params"]["protocolVersion"];
            let all = json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info});
            json_of(&asked.result(all))
        }
        "tools/list" => json_of(&asked.result(json!({"tools": [tool("echo"), tool("odd")]}))),
        "tools/call" => json_of(&asked.result(json!({"content": [{"type": "text", "text": asked.tool()}]}))),
        "GET" | "DELETE" => reply(405, "text/plain", ""),
        method if method.starts_with("notifications/") => reply(202, "text/plain", ""),
        _ => json_of(&asked.refusal(-32601)),
    }
}

/// A server, running until it is dropped.
pub(crate) struct Web {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Web {
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
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, noted) = (Arc::new(answer), seen.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (first, answer, noted) = (first(stream), answer.clone(), noted.clone());
                tokio::spawn(async move {
                    let Some(stream) = first.await else { return };
                    let service = service_fn(|request| heard(request, &*answer, &noted));
                    // A client that hangs up needs no answer.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { port, seen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(crate) fn config(&self, name: &str) -> ServerConfig {
        ServerConfig::http(name, self.url()).trusted(true)
    }

    /// How many requests of this kind it got.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|asked| asked.what() == what).count()
    }
}

async fn heard(
    request: Request<Incoming>,
    answer: &(dyn Fn(&Asked) -> Reply + Send + Sync),
    noted: &Mutex<Vec<Asked>>,
) -> Result<Reply, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let (http, path) = (head.method.to_string(), head.uri.path().to_owned());
    let asked = Asked { http, path, headers: head.headers, message };
    noted.lock().unwrap().push(asked.clone());
    Ok(answer(&asked))
}
