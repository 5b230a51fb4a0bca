//! A gateway in front of an engine with one server.

use crate::relay::{
    client::{Client, PIPE},
    server::odd,
};
use serde_json::Value;
use tokio::io::split;
use tokio_util::sync::CancellationToken;
use toolyard::{Answer, Engine, Redactor};
use toolyard_mcp::{Clients, Gateway, Servers};

/// A secret that no client may see.
pub(crate) const SECRET: &str = "correct horse battery";

/// A gateway with a server behind it.
pub(crate) struct Yard {
    gateway: Gateway,
    pub(crate) servers: Servers,
}

impl Yard {
    pub(crate) async fn open(may_ask: bool) -> Self {
        let servers = Servers::start(vec![odd("s", "well").prefix("").may_ask(may_ask)]).await.unwrap();
        let clients = Clients::default();
        let engine = Engine::builder()
            .tools(servers.tools())
            .approver(Answer::allow("ada"))
            .events(clients.clone())
            .resource(clients.clone())
            .redact(Redactor::new().with_secret(SECRET).unwrap())
            .build()
            .await
            .unwrap();
        Self { gateway: Gateway::new(engine, clients), servers }
    }

    /// A client with these capabilities.
    pub(crate) async fn client(&self, capabilities: Value) -> Client {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let gateway = self.gateway.clone();
        tokio::spawn(async move {
            let (read, write) = split(ours);
            gateway.serve(read, write, CancellationToken::new()).await
        });
        Client::connect(theirs, capabilities).await
    }
}
