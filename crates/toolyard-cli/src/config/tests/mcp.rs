//! `[mcp.NAME]` as it is read.

use super::{read, refused};
use std::time::Duration;
use toolyard_mcp::{Pinning, ServerConfig};

#[test]
fn every_key_of_a_server_is_read() {
    let config = read(
        r#"
        [mcp.git]
        command = "bin/git-server"
        args = ["--repository", "."]
        env = { LEVEL = "1" }
        cwd = "work"
        trust = true
        prefix = "g"
        required = false
        may_ask = false
        pin = "mcp.lock"
        startup_timeout = "5s"
        [mcp.time]
        command = "mcp-server-time"
        pin = true
        "#,
    )
    .unwrap();
    let git = ServerConfig::new("git", "conf/bin/git-server")
        .args(["--repository", "."])
        .env("LEVEL", "1")
        .cwd("conf/work")
        .trusted(true)
        .prefix("g")
        .required(false)
        .pinning(Pinning::File("conf/mcp.lock".into()))
        .startup_timeout(Duration::from_secs(5));
    let time = ServerConfig::new("time", "mcp-server-time").may_ask(true).pinning(Pinning::Process);
    assert_eq!(config.servers, [git, time]);
}

/// A value `$NAME` is taken from the environment, so that no secret stands in the file.
#[test]
fn a_variable_may_be_the_programs_own() {
    let config = read("[mcp.a]\ncommand = \"a\"\nenv = { P = \"$PATH\" }").unwrap();
    let path = std::env::var("PATH").unwrap();
    assert_eq!(config.servers, [ServerConfig::new("a", "a").may_ask(true).env("P", path)]);
    let what = "[mcp.\"a\"] env P: there is no variable NO_SUCH_VARIABLE in the environment";
    refused("[mcp.a]\ncommand = \"a\"\nenv = { P = \"$NO_SUCH_VARIABLE\" }", 3, what);
}

#[test]
fn a_server_that_makes_no_sense_is_refused() {
    refused("[mcp.a]\ntrust = true", 1, "[mcp.a] needs a command, the program that is the server");
    refused(
        "[mcp.\"a b\"]\ncommand = \"a\"",
        1,
        "'a b' is no name of an MCP server: letters, digits, '-', '_' and '.' make one",
    );
    refused("[mcp.a]\ncommand = \"a\"\nprefix = \"a b\"", 3, "[mcp.\"a\"] prefix must have no white space");
    refused(
        "[mcp.a]\ncommand = \"a\"\nargs = [1]",
        3,
        "[mcp.\"a\"] args must be a list of texts, not a number",
    );
}

/// Settings of a server's tools are read before it is known which it has; those of no server's tool are refused.
#[test]
fn a_servers_tools_have_settings() {
    let mcp = "[mcp.git]\ncommand = \"a\"\n";
    let config =
        read(&format!("{mcp}[tools.git__add]\nside_effects = \"write\"\nconcurrency = \"on\"")).unwrap();
    assert!(config.tools.contains_key("git__add"));
    read(&format!("{mcp}[confirmation]\nper_tool = {{ git__add = \"auto\" }}")).unwrap();
    assert!(read(&format!("{mcp}[tools.gut__add]\nidempotent = true")).is_err());
}

/// A server over HTTP is read where the program speaks to such, and else refused with what is missing.
#[test]
fn a_server_over_http_is_read_by_a_program_that_speaks_to_it() {
    let text = "[mcp.a]\nurl = \"http://localhost/mcp\"\nbearer = \"abc\"\ntrust = true";
    #[cfg(feature = "mcp-http")]
    {
        let server =
            ServerConfig::http("a", "http://localhost/mcp").bearer("abc").trusted(true).may_ask(true);
        assert_eq!(read(text).unwrap().servers, [server]);
        let https = "[mcp.\"a\"] url must begin with http://: nothing is encrypted";
        refused("[mcp.a]\nurl = \"https://localhost/mcp\"", 2, https);
    }
    #[cfg(not(feature = "mcp-http"))]
    refused(
        text,
        2,
        "[mcp.\"a\"] url: this program speaks to no server over HTTP, it was built without the feature mcp-http",
    );
}
