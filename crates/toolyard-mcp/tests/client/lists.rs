//! What becomes of a server's list of tools.

use crate::client::{server::odd, yard::Yard};
use serde_json::json;
use toolyard::{ErrorKind, SideEffects};
use toolyard_mcp::{Pinning, Servers, StartError};

/// A bad tool is refused by name, with the reason; the others are taken, with their texts made fit to be seen.
#[tokio::test]
async fn a_bad_tool_is_refused_and_the_others_are_taken() {
    let yard = Yard::open(vec![odd("s", "bad_tools")]).await;
    assert_eq!(yard.names(), ["s__good", "s__wordy"]);
    let spec = |name| yard.engine.registry().get(name).unwrap().spec().clone();
    assert_eq!(spec("s__good").description, "reads[2J a file\n");
    assert_eq!(spec("s__wordy").description.chars().count(), 8192);
    let refused = yard.servers.status().remove(0).refused;
    let said: Vec<(&str, &str)> = refused.iter().map(|one| (one.tool.as_str(), one.why.as_str())).collect();
    let endless = format!("s__{}…", "n".repeat(199));
    for ((tool, why), (name, part)) in said.into_iter().zip([
        ("number 1", "it has no name"),
        ("number 2", "it is not an object"),
        ("s__untyped", "its inputSchema is not an object"),
        (endless.as_str(), "its name is 10000 bytes long"),
        ("s__network", "refers outside itself"),
        ("s__deep", "malformed"),
        ("s__large", "more than the limit of 262144"),
        ("s__a b", "is not a valid tool name"),
        ("s__redaer", "'s__re\\u{202e}daer' is not a valid tool name"),
        ("s__good", "is already registered"),
    ]) {
        assert!(tool == name && why.contains(part), "{tool}: {why}");
    }
    assert_eq!(refused.len(), 10);
    yard.servers.shutdown().await;
}

#[tokio::test]
async fn a_list_in_pages_is_read_to_its_end() {
    let yard = Yard::open(vec![odd("s", "pages")]).await;
    assert_eq!(yard.names(), ["s__first", "s__second"]);
    yard.servers.shutdown().await;
}

/// CL-1, PO-5: the same hint counts for a trusted server, and not for another.
#[tokio::test]
async fn the_class_is_the_servers_word_only_when_it_is_trusted() {
    let yard = Yard::open(vec![odd("t", "plain"), odd("u", "plain").trusted(false)]).await;
    let effects = |name| yard.engine.registry().get(name).unwrap().spec().side_effects;
    assert_eq!(effects("t__echo"), SideEffects::Read);
    assert_eq!(effects("u__echo"), SideEffects::Execute);
    assert_eq!(effects("t__hang"), SideEffects::Execute);
    yard.servers.shutdown().await;
}

/// CL-8: what a server lists after a change is what the engine has: tools are added, removed and replaced.
#[tokio::test]
async fn a_changed_list_is_taken_over() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    assert!(yard.names().contains(&"s__echo".to_owned()));
    yard.text("s__change", json!({})).await;
    yard.until("the new tool is there", |yard| yard.engine.registry().has("s__new")).await;
    assert_eq!(yard.call("s__echo", json!({})).await.status.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(yard.engine.registry().get("s__change").unwrap().spec().description, "changed");
    yard.servers.shutdown().await;
}

/// A pinned tool that changes is removed; new tools and unchanged ones are kept.
#[tokio::test]
async fn a_pinned_tool_that_changes_is_taken_away() {
    let yard = Yard::open(vec![odd("s", "plain").pinning(Pinning::Process)]).await;
    yard.text("s__change", json!({})).await;
    yard.until("the new tool is there", |yard| yard.engine.registry().has("s__new")).await;
    assert!(!yard.engine.registry().has("s__change"));
    assert!(!yard.engine.registry().has("s__typed"), "what it gives back has changed");
    assert!(yard.engine.registry().has("s__hang"));
    let refused = yard.servers.status().remove(0).refused;
    let refused: Vec<(&str, &str)> =
        refused.iter().map(|one| (one.tool.as_str(), one.why.as_str())).collect();
    let why = "its definition has changed since the start: restart to approve it";
    assert_eq!(refused, [("s__change", why), ("s__typed", why)]);
    yard.servers.shutdown().await;
}

/// Without prefixes names may clash, which is reported before anything runs.
#[tokio::test]
async fn names_that_clash_are_told() {
    let servers = vec![odd("a", "pages").prefix(""), odd("b", "pages").prefix("")];
    let Err(clash) = Servers::start(servers).await else { panic!("two tools of one name") };
    let wanted = StartError::Clash { tool: "first".into(), one: "a".into(), other: "b".into() };
    assert_eq!(clash, wanted);
    let yard = Yard::open(vec![odd("a", "pages").prefix(""), odd("b", "pages").prefix("x")]).await;
    assert_eq!(yard.names(), ["first", "second", "x__first", "x__second"]);
    yard.servers.shutdown().await;
}
