//! SB-10: what a request to a server is dialled by.

use crate::web::{
    server::{Web, plain},
    yard::Yard,
};
use serde_json::json;
use std::process::Command;
use toolyard_mcp::ServerConfig;

/// A server that is named by an address of this machine, or as `localhost`, needs no permission.
#[tokio::test]
async fn a_server_of_this_machine_is_called() {
    let web = Web::open(plain).await;
    for host in ["127.0.0.1", "localhost", "0x7f.1"] {
        let url = format!("http://{host}:{}/mcp", web.port);
        let yard = Yard::open(vec![ServerConfig::http("s", url).trusted(true)]).await;
        assert_eq!(yard.text("s__echo", json!({})).await, "echo", "{host}");
        yard.servers.shutdown().await;
    }
}

/// A proxy that the environment names is not used. The test is run again where there is one.
#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let mut again = Command::new(std::env::current_exe().unwrap());
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, "http://127.0.0.1:1");
    }
    again.env_remove("no_proxy").env_remove("NO_PROXY");
    let output = again.args(["--exact", "web::guard::a_server_of_this_machine_is_called"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// A name that leads into this machine's networks, and does not say so, is refused by a sentence that says what to do;
/// nothing is sent. The name of this machine is one, where it has an address.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    let web = Web::open(plain).await;
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let is_inside = |found: std::vec::IntoIter<std::net::SocketAddr>| {
        found.into_iter().all(|at| toolyard_egress::Addresses::Public.check(at.ip()).is_err())
    };
    let found = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), web.port));
    if name.starts_with("localhost") || !found.is_ok_and(is_inside) {
        println!("skipped: '{name}', the name of this machine, leads to no address inside of it");
        return;
    }
    let config = ServerConfig::http("s", format!("http://{name}:{}/mcp", web.port));
    let said = toolyard_mcp::Servers::start(vec![config]).await.err().unwrap().to_string();
    assert!(said.contains("set allow_private = true if it is meant to be reached"), "{said}");
    assert!(web.seen.lock().unwrap().is_empty());
}
