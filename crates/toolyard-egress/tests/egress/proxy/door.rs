//! A proxy that is open, and programs that speak to it.

use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
};
use toolyard_egress::{Observer, Proxy, Visit};

/// A proxy, open until it is dropped.
pub(crate) struct Open {
    pub(crate) port: u16,
    visits: UnboundedReceiver<Visit>,
    /// Ended when it is dropped.
    _task: JoinSet<()>,
}

struct Told(UnboundedSender<Visit>);

impl Observer for Told {
    fn visited(&self, visit: &Visit) {
        // The test may be over.
        let _ = self.0.send(visit.clone());
    }
}

impl Open {
    pub(crate) async fn new(proxy: Proxy) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (told, visits) = unbounded_channel();
        let proxy = proxy.observer(Arc::new(Told(told)));
        let mut task = JoinSet::new();
        task.spawn(async move { match proxy.serve(listener).await {} });
        Self { port, visits, _task: task }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// All that a program reads that sends this and waits for the end.
    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> String {
        let mut program = self.connect().await;
        program.write_all(request.as_ref()).await.unwrap();
        read_all(&mut program).await
    }

    /// The next connection that has ended.
    pub(crate) async fn visit(&mut self) -> Visit {
        self.visits.recv().await.unwrap()
    }

    /// A connection that has ended by now.
    pub(crate) fn try_visit(&mut self) -> Option<Visit> {
        self.visits.try_recv().ok()
    }

    /// Closes it at once; what the observer is told then.
    pub(crate) async fn close(self) -> Vec<Visit> {
        let Self { mut visits, _task, .. } = self;
        drop(_task);
        let mut all = Vec::new();
        while let Some(visit) = visits.recv().await {
            all.push(visit);
        }
        all
    }
}

/// All that is still to be read.
pub(crate) async fn read_all(program: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    program.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The head of an answer, with its empty line.
pub(crate) async fn read_head(program: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(program.read_u8().await.unwrap());
    }
    String::from_utf8(bytes).unwrap()
}
