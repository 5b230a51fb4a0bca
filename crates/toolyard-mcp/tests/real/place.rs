//! Where the servers are installed.

use std::{
    env,
    path::{Path, PathBuf},
};
use toolyard_mcp::ServerConfig;

/// The path of an installed file; `None` if it is not there.
fn installed(file: &str) -> Option<String> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers");
    let path = env::var_os("TOOLYARD_MCP_SERVERS").map_or(default, PathBuf::from).join(file);
    if path.exists() {
        return Some(path.to_str().unwrap().to_owned());
    }
    let absent = format!("no server at {}: fill TOOLYARD_MCP_SERVERS with .ci/mcp-servers", path.display());
    assert!(env::var("CI").as_deref() != Ok("true"), "{absent}");
    println!("skipped: {absent}");
    None
}

/// The script of a server that runs in node.
pub(crate) fn script(name: &str) -> Option<String> {
    installed(&format!("node/node_modules/@modelcontextprotocol/server-{name}/dist/index.js"))
}

/// The program of a server that runs in Python.
pub(crate) fn program(name: &str) -> Option<String> {
    installed(&format!("py/bin/mcp-server-{name}"))
}

/// A server that runs in node.
pub(crate) fn node(name: &str, args: &[&str]) -> Option<ServerConfig> {
    let script = script(name)?;
    let args = std::iter::once(script.as_str()).chain(args.iter().copied());
    Some(ServerConfig::new(name, "node").args(args).trusted(true))
}

/// A server that runs in Python.
pub(crate) fn python(name: &str, args: &[&str]) -> Option<ServerConfig> {
    Some(ServerConfig::new(name, program(name)?).args(args.iter().copied()).trusted(true))
}
