//! Reading `[mcp.NAME]`.

use super::{read, refused};
use std::time::Duration;
use toolyard_mcp::{ClientLimits, Pinning, ServerConfig, ServerConfinement, ServerLimits};

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

/// SB-5: what a confined server reaches is read, relative to the file; what reaches nothing is refused.
#[test]
fn what_a_confined_server_reaches_is_read() {
    let here = env!("CARGO_MANIFEST_DIR");
    let config = read(&format!(
        "[mcp.a]\ncommand = \"a\"\nsandbox = \"process\"\n\
         files = [\"{here}/src\", \"r:{here}\", \"rw:{here}/tests\"]\nhosts = [\"*.example.com:443\"]"
    ));
    let reached =
        ServerConfinement::new().read(format!("{here}/src")).read(here).write(format!("{here}/tests"));
    let reached = reached.hosts(["*.example.com:443".parse().unwrap()]);
    assert_eq!(config.unwrap().servers, [ServerConfig::new("a", "a").may_ask(true).confined(reached)]);
    let mcp = "[mcp.a]\ncommand = \"a\"\n";
    let what = "[mcp.\"a\"] files is for a confined server: set sandbox = \"process\" too";
    refused(&format!("{mcp}files = [\"/\"]"), 1, what);
    let what = "[mcp.\"a\"] files: there is no '/no/such/file'";
    refused(&format!("{mcp}sandbox = \"process\"\nfiles = [\"rw:/no/such/file\"]"), 4, what);
    let what = "[mcp.\"a\"] sandbox must be one of 'host', 'process', not 'wasm'";
    refused(&format!("{mcp}sandbox = \"wasm\""), 3, what);
    read(&format!("{mcp}sandbox = \"host\"")).unwrap();
}

/// SB-5: the limits of a confined server are read in the words of those of calls; one of CPU time is none of them.
#[test]
fn the_limits_of_a_confined_server_are_read() {
    let mcp = "[mcp.a]\ncommand = \"a\"\n";
    let limits = "memory = \"512MiB\"\nmemory_per_process = \"1GiB\"\nprocesses = 20\nopen_files = 64";
    let config = read(&format!("{mcp}sandbox = \"process\"\n{limits}")).unwrap();
    let expect = ServerLimits {
        memory: Some(512 << 20),
        memory_per_process: Some(1 << 30),
        processes: Some(20),
        open_files: Some(64),
    };
    assert_eq!(config.servers[0].confinement().unwrap().limits(), expect);
    let what = "[mcp.\"a\"] processes is for a confined server: set sandbox = \"process\" too";
    refused(&format!("{mcp}processes = 20"), 1, what);
    assert!(read(&format!("{mcp}sandbox = \"process\"\ncpu_time = \"1s\"")).is_err());
}

/// SB-5: what is started elsewhere is not confined here.
#[cfg(feature = "mcp-http")]
#[test]
fn a_server_over_http_has_no_sandbox() {
    let what = "[mcp.\"a\"] sandbox is for a server that is started here, and this one has a url";
    refused("[mcp.a]\nurl = \"http://h/\"\nsandbox = \"process\"", 1, what);
}

/// What clients may send is read, with bounds that leave room for some of the largest messages.
#[test]
fn the_limits_of_clients_are_read() {
    let text = "[gateway]\nmessage_max = \"256KiB\"\nin_flight_max = \"8MiB\"";
    let limits = ClientLimits::default().message_bytes(256 << 10).in_flight_bytes(8 << 20);
    assert_eq!(read(text).unwrap().clients, limits);
    assert_eq!(read("").unwrap().clients, ClientLimits::default());
    refused("[gateway]\nmessage_max = \"1KiB\"", 2, "[gateway] message_max must be at least 4096B");
    let what = "[gateway] in_flight_max must be at least 16 times message_max";
    refused("[gateway]\nmessage_max = \"8MiB\"", 2, what);
    refused("[gateway]\nmessage_max = \"1MiB\"\nin_flight_max = \"2MiB\"", 3, what);
    refused("[gateway]\nin_flight_max = \"4GiB\"", 2, "[gateway] in_flight_max must be less than 4GiB");
}

/// A value `$NAME` is read from the environment, so that the file holds no secret.
#[test]
fn a_variable_may_be_the_programs_own() {
    let config = read("[mcp.a]\ncommand = \"a\"\nenv = { P = \"$PATH\" }").unwrap();
    let path = std::env::var("PATH").unwrap();
    assert_eq!(config.servers, [ServerConfig::new("a", "a").may_ask(true).env("P", path)]);
    let config = read("[mcp.a]\ncommand = \"a\"\nenv = { P = \"$CARGO_MANIFEST_DIR\" }").unwrap();
    let value = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    assert_eq!(config.servers, [ServerConfig::new("a", "a").may_ask(true).secret_env("P", value)]);
    let what = "[mcp.\"a\"] env P: the environment variable NO_SUCH_VARIABLE is not set";
    refused("[mcp.a]\ncommand = \"a\"\nenv = { P = \"$NO_SUCH_VARIABLE\" }", 3, what);
}

/// I15: the value of a variable that a server is given is a secret, and shown nowhere. A path of every process is none.
#[test]
fn a_servers_variables_are_redacted() {
    let config =
        read("[mcp.a]\ncommand = \"a\"\nenv = { P = \"$PATH\", S = \"$CARGO_MANIFEST_DIR\" }").unwrap();
    let shown = |name: &str| config.redactor.text(&std::env::var(name).unwrap()).into_owned();
    assert_eq!(shown("PATH"), std::env::var("PATH").unwrap());
    assert_ne!(shown("CARGO_MANIFEST_DIR"), std::env::var("CARGO_MANIFEST_DIR").unwrap());
}

/// A key that is nearly `command` is reported, and not the command as missing besides.
#[test]
fn a_mistyped_command_is_reported_as_such() {
    let what = "unknown key 'comand' in [mcp.\"a\"]; did you mean 'command'?";
    refused("[mcp.a]\ncomand = \"a\"\nargs = [\"b\"]", 2, what);
    refused("[mcp.a]\ncommand = 1", 2, "[mcp.\"a\"] command must be a string, not a number");
}

#[test]
fn a_server_that_makes_no_sense_is_refused() {
    refused("[mcp.a]\ntrust = true", 1, "[mcp.a] needs a command: the program to run as the server");
    refused(
        "[mcp.\"a b\"]\ncommand = \"a\"",
        1,
        "'a b' is not a name for an MCP server: use letters, digits, '-', '_' and '.'",
    );
    refused(
        "[mcp.a]\ncommand = \"a\"\nprefix = \"a b\"",
        3,
        "[mcp.\"a\"] prefix must not contain white space",
    );
    refused(
        "[mcp.a]\ncommand = \"a\"\nargs = [1]",
        3,
        "[mcp.\"a\"] args must be a list of strings, not a number",
    );
}

/// A server's tools can be configured before they are known; settings for a tool of no server are refused.
#[test]
fn a_servers_tools_have_settings() {
    let mcp = "[mcp.git]\ncommand = \"a\"\n";
    let config =
        read(&format!("{mcp}[tools.git__add]\nside_effects = \"write\"\nconcurrency = \"on\"")).unwrap();
    assert!(config.tools.contains_key("git__add"));
    read(&format!("{mcp}[confirmation]\nper_tool = {{ git__add = \"auto\" }}")).unwrap();
    assert!(read(&format!("{mcp}[tools.gut__add]\nidempotent = true")).is_err());
}

/// A server over HTTP is accepted if the program supports HTTP; its token comes from the environment alone.
#[cfg(feature = "mcp-http")]
#[test]
fn a_server_over_http_is_read_by_a_program_that_speaks_to_it() {
    let text = r#"
        [mcp.a]
        url = "http://localhost/mcp"
        token_env = "PATH"
        headers = { X-Team = "tools", X-Key = "$HOME" }
        ca = "ours.pem"
        allow_private = true
        trust = true
        "#;
    let variable = |name| std::env::var(name).unwrap();
    let server = ServerConfig::http("a", "http://localhost/mcp").bearer(variable("PATH")).ca("conf/ours.pem");
    let server =
        server.header("X-Team", "tools").secret_header("X-Key", variable("HOME")).trusted(true).may_ask(true);
    let server = server.allow_private(true);
    let config = read(text).unwrap();
    assert_eq!(config.servers, [server]);
    let shown = config.redactor.text(&format!("the token is {}", variable("PATH"))).into_owned();
    assert!(!shown.contains(&variable("PATH")), "{shown}");

    let mcp = "[mcp.a]\nurl = \"http://h/\"\n";
    let none = "[mcp.\"a\"] token_env: the environment variable is not set, or empty";
    refused(&format!("{mcp}token_env = \"NO_SUCH_VARIABLE\""), 3, none);
    let here = "[mcp.\"a\"] headers Authorization must not be written here: name an environment variable, \
                \"$NAME\", or use token_env";
    refused(&format!("{mcp}headers = {{ Authorization = \"Bearer abc\" }}"), 3, here);
    refused("[mcp.a]\nurl = \"h/mcp\"", 2, "[mcp.\"a\"] url must begin with https:// or http://");
}

/// An error about a missing feature names that feature.
#[test]
fn a_missing_feature_is_reported() {
    #[cfg(not(feature = "mcp-http"))]
    refused(
        "[mcp.a]\nurl = \"http://localhost/mcp\"",
        2,
        "[mcp.\"a\"] url: this program was built without the feature mcp-http and cannot connect over HTTP",
    );
    let https = read("[mcp.a]\nurl = \"https://localhost/mcp\"");
    assert_eq!(https.is_ok(), cfg!(feature = "mcp-https"));
}
