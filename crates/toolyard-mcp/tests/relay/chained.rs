//! A gateway behind a gateway, over HTTP, where a question arrives on the stream of its call.

use crate::relay::client::{Client, PIPE};
use serde_json::{Value, json};
use tokio::{io::split, net::TcpListener};
use tokio_util::sync::CancellationToken;
use toolyard::{Answer, Engine, ToolContext, ToolSpec, tool_fn};
use toolyard_mcp::{Clients, Gateway, HttpOptions, ServerConfig, Servers};

/// The address of a gateway over HTTP with a tool that needs its clients' approval.
async fn asking(stop: &CancellationToken) -> String {
    let pay = tool_fn(ToolSpec::execute("pay"), |args: Value, _: ToolContext| async move { Ok(args) });
    let clients = Clients::default();
    let engine = Engine::builder().tool(pay).approver(clients.clone()).build().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (gateway, stop) = (Gateway::new(engine, clients), stop.clone());
    tokio::spawn(async move { gateway.serve_http(listener, HttpOptions::default(), stop).await });
    url
}

/// A client of this gateway that can be asked.
async fn client(gateway: &Gateway) -> Client {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let gateway = gateway.clone();
    tokio::spawn(async move {
        let (read, write) = split(ours);
        gateway.serve(read, write, CancellationToken::new()).await
    });
    Client::connect(theirs, json!({"elicitation": {}})).await
}

/// PO-4: of calls of several clients in flight at one server, each is asked about at its own client.
#[tokio::test]
async fn each_client_is_asked_about_its_own_call() {
    let stop = CancellationToken::new();
    let behind = ServerConfig::http("b", asking(&stop).await).prefix("").may_ask(true);
    let servers = Servers::start(vec![behind]).await.unwrap();
    let clients = Clients::default();
    let builder = Engine::builder().tools(servers.tools()).approver(Answer::allow("ada"));
    let engine = builder.resource(clients.clone()).build().await.unwrap();
    let gateway = Gateway::new(engine, clients);
    let mut all = [client(&gateway).await, client(&gateway).await, client(&gateway).await];
    for (n, client) in all.iter_mut().enumerate() {
        client.call(1, "pay", json!({"amount": n}), json!({})).await;
    }
    let mut asked = Vec::new();
    for (n, client) in all.iter_mut().enumerate() {
        let question = client.received("elicitation/create").await;
        let shown = question["params"]["message"].as_str().unwrap();
        assert!(shown.contains(&format!(r#""amount": {n}"#)), "{n}: {shown}");
        asked.push(question["id"].clone());
    }
    let yes = json!({"action": "accept", "content": {"answer": "yes"}});
    for (n, (client, id)) in all.iter_mut().zip(asked).enumerate() {
        client.send(json!({"jsonrpc": "2.0", "id": id, "result": yes})).await;
        assert_eq!(client.answer(1).await["result"]["structuredContent"], json!({"amount": n}));
    }
    servers.shutdown().await;
    stop.cancel();
}
