//! PO-1b, PO-2: paths and hosts named by calls, compared with the grants of their agents.

use serde_json::{Value, json};
use std::sync::Arc;
use toolyard::{
    Call, Capabilities, ErrorKind, ForkPolicy, FsGrant, FsMode, Session, SessionOptions, ToolSpec,
};
use toolyard_tests::{Yard, kinds, scripted, shape, yard};
use toolyard_tools::Workspace;

struct Desk {
    yard: Yard,
    root: tempfile::TempDir,
}

impl Desk {
    /// A workspace with `docs/a.md`, `out/`, `secret/key`, and links from `docs` to `secret` and out of the workspace.
    async fn open() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["docs", "out", "secret"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        std::fs::write(root.path().join("docs/a.md"), "a").unwrap();
        std::fs::write(root.path().join("secret/key"), "k").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink("../secret", root.path().join("docs/in")).unwrap();
            symlink("/etc", root.path().join("docs/away")).unwrap();
        }
        let look = ToolSpec::read("look").requires_fs(FsMode::Read, "path");
        let edit = ToolSpec::write("edit").requires_fs(FsMode::ReadWrite, "path");
        let fetch = ToolSpec::read("fetch").requires_net("url");
        let yard = yard(|builder, log| {
            builder.tool(scripted(look, log)).tool(scripted(edit, log)).tool(scripted(fetch, log))
        })
        .await;
        Self { yard, root }
    }

    fn session(&self, name: &str, capabilities: Capabilities) -> Session {
        let workspace = Arc::new(Workspace::open(self.root.path()).unwrap());
        let options = SessionOptions::default().workspace(workspace).capabilities(capabilities);
        self.yard.engine.session_with(name, options)
    }
}

fn fs(grants: &[(FsMode, &str)]) -> Capabilities {
    Capabilities::default().fs(grants.iter().map(|(mode, path)| FsGrant::new(*mode, path).unwrap()))
}

fn net(patterns: &[&str]) -> Capabilities {
    Capabilities::default().net(patterns.iter().map(|pattern| pattern.parse().unwrap()))
}

async fn kind(session: &Session, tool: &str, args: Value) -> Option<ErrorKind> {
    kinds(&[session.call(Call::new("c", tool, args)).await])[0]
}

/// PO-1b, PO-2: a path is allowed if it leads into a granted one, in the granted mode; a missing grant is
/// `fs_denied`, an escape from the workspace `permission_denied`.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_path_is_granted_by_where_it_leads() {
    let desk = Desk::open().await;
    let session = desk.session("s", fs(&[(FsMode::Read, "docs"), (FsMode::ReadWrite, "out")]));
    use ErrorKind::{FsDenied, PermissionDenied};
    for (tool, path, expected) in [
        ("look", "docs/a.md", None),
        ("look", "./docs/../docs/a.md", None),
        ("look", "docs", None),
        ("look", "out/new", None),
        ("edit", "out/new", None),
        ("edit", "docs/a.md", Some(FsDenied)),
        ("look", "secret/key", Some(FsDenied)),
        ("look", "docs/../secret/key", Some(FsDenied)),
        ("look", "docs/in/key", Some(FsDenied)),
        ("look", ".", Some(FsDenied)),
        ("look", "docs-private/x", Some(FsDenied)),
        ("look", "docs/away/passwd", Some(PermissionDenied)),
        ("look", "../docs/a.md", Some(PermissionDenied)),
        ("look", "/etc/passwd", Some(PermissionDenied)),
    ] {
        assert_eq!(kind(&session, tool, json!({"path": path})).await, expected, "{tool} {path}");
    }
    let denied = session.call(Call::new("c", "edit", json!({"path": "docs/a.md"}))).await;
    assert_eq!(super::message(&denied), "This agent may not read and write 'docs/a.md'");
    let escaped = session.call(Call::new("c", "look", json!({"path": "../x"}))).await;
    assert_eq!(super::message(&escaped), "Path '../x' escapes workspace boundary");
    desk.yard.events.check();
}

/// PO-1b: a path argument that is missing, null or an empty list leaves the choice to the tool, which requires a
/// grant of the whole workspace; each path of a list is checked; anything else is `invalid_input`.
#[tokio::test(start_paused = true)]
async fn a_path_argument_may_be_anything() {
    let desk = Desk::open().await;
    let some = desk.session("some", fs(&[(FsMode::Read, "docs")]));
    let all = desk.session("all", fs(&[(FsMode::Read, ".")]));
    let free = desk.session("free", Capabilities::default());
    use ErrorKind::{FsDenied, InvalidInput, PermissionDenied};
    for (args, of_some, of_all, of_free) in [
        (json!({}), Some(FsDenied), None, None),
        (json!({"path": null}), Some(FsDenied), None, None),
        (json!({"path": ["docs/a.md", "docs"]}), None, None, None),
        (json!({"path": ["docs/a.md", "out"]}), Some(FsDenied), None, None),
        (
            json!({"path": ["docs", "../x"]}),
            Some(PermissionDenied),
            Some(PermissionDenied),
            Some(PermissionDenied),
        ),
        (json!({"path": []}), Some(FsDenied), None, None),
        (json!({"path": [["docs"]]}), Some(InvalidInput), Some(InvalidInput), Some(InvalidInput)),
        (json!({"path": 7}), Some(InvalidInput), Some(InvalidInput), Some(InvalidInput)),
        (json!({"path": {"path": "docs"}}), Some(InvalidInput), Some(InvalidInput), Some(InvalidInput)),
        (json!({"path": true}), Some(InvalidInput), Some(InvalidInput), Some(InvalidInput)),
    ] {
        let kinds = [&some, &all, &free].map(|session| kind(session, "look", args.clone()));
        assert_eq!(futures::future::join_all(kinds).await, [of_some, of_all, of_free], "{args}");
    }
    desk.yard.events.check();
}

/// PO-1b: without a workspace, grants of paths grant nothing, even to a tool that needs no workspace.
#[tokio::test(start_paused = true)]
async fn grants_of_paths_grant_nothing_without_a_workspace() {
    let mut spec = ToolSpec::read("look").requires_fs(FsMode::Read, "path");
    spec.requires_workspace = false;
    let yard = yard(|builder, log| builder.tool(scripted(spec, log))).await;
    let options = SessionOptions::default();
    let bounded = yard.engine.session_with("s", options.clone().capabilities(fs(&[(FsMode::Read, "docs")])));
    let free = yard.engine.session_with("t", options);
    for args in [json!({"path": "/etc/passwd"}), json!({"path": "docs/a.md"}), json!({})] {
        assert_eq!(kind(&bounded, "look", args.clone()).await, Some(ErrorKind::FsDenied), "{args}");
        assert_eq!(kind(&free, "look", args.clone()).await, None, "{args}");
    }
    yard.events.check();
}

/// PO-1b: a host is compared the way a client reads it; a missing grant, a text that names no host and a missing
/// argument are `net_denied`.
#[tokio::test(start_paused = true)]
async fn a_host_is_granted_by_its_canonical_form() {
    let desk = Desk::open().await;
    let session = desk.session("s", net(&["*.example.com", "127.0.0.1", "api.test:443"]));
    use ErrorKind::{InvalidInput, NetDenied};
    for (url, expected) in [
        (json!("https://a.example.com/x"), None),
        (json!("A.EXAMPLE.COM."), None),
        (json!("2130706433"), None),
        (json!("http://0177.0.0.1:8080/"), None),
        (json!("https://api.test/"), None),
        (json!("http://api.test/"), Some(NetDenied)),
        (json!("example.com"), Some(NetDenied)),
        (json!("https://evil.com/?u=a.example.com"), Some(NetDenied)),
        (json!("https://a.example.com@evil.com/"), Some(NetDenied)),
        (json!("http://evil.com\\@a.example.com"), Some(NetDenied)),
        (json!("2886794753"), Some(NetDenied)),
        (json!("http://[::1]/"), Some(NetDenied)),
        (json!("not a host"), Some(NetDenied)),
        (json!(""), Some(NetDenied)),
        (json!(null), Some(NetDenied)),
        (json!([]), Some(NetDenied)),
        (json!(["a.example.com", "b.example.com"]), None),
        (json!(["a.example.com", "evil.com"]), Some(NetDenied)),
        (json!(2_130_706_433), Some(InvalidInput)),
    ] {
        assert_eq!(kind(&session, "fetch", json!({ "url": url })).await, expected, "{url}");
    }
    let any = desk.session("any", net(&["*"]));
    assert_eq!(kind(&any, "fetch", json!({})).await, None);
    let free = desk.session("free", Capabilities::default());
    assert_eq!(kind(&free, "fetch", json!({"url": "not a host"})).await, None, "nothing is bounded");
    desk.yard.events.check();
}

/// PO-5: the grants of all ancestors of an agent apply.
#[tokio::test(start_paused = true)]
async fn grants_of_a_fork_are_within_its_parents() {
    let desk = Desk::open().await;
    let parent = desk.session("s", fs(&[(FsMode::Read, "docs")]));
    let wider = fs(&[(FsMode::ReadWrite, "."), (FsMode::Read, "secret")]);
    let fork = parent.fork(ForkPolicy::default().capabilities(wider)).unwrap();
    let paths = ["docs/a.md", "out/x", "secret/key"];
    let batch: Vec<_> = paths.iter().map(|path| Call::new(*path, "look", json!({"path": path}))).collect();
    let outcomes = fork.dispatch(batch).await;
    assert_eq!(shape(&outcomes), "docs/a.md ok, out/x fs_denied, secret/key fs_denied");
    let edit = fork.call(Call::new("e", "edit", json!({"path": "docs/a.md"}))).await;
    assert_eq!(shape(&[edit]), "e fs_denied");
    desk.yard.events.check();
}

/// PO-1b, PO-2: under a grant of one directory, no payload of kind `path` runs unless it leads into that directory;
/// every refusal is that of a path.
#[tokio::test(start_paused = true)]
async fn hostile_paths_find_no_way_through_a_grant() {
    let Some(file) = toolyard_tests::data_file("hostile-paths/payloads.jsonl") else { return };
    let text = std::fs::read_to_string(file).unwrap();
    let desk = Desk::open().await;
    let session = desk.session("s", fs(&[(FsMode::Read, "docs")]));
    let (mut seen, mut ran) = (0, 0);
    for line in text.lines() {
        let payload: Value = serde_json::from_str(line).unwrap();
        if payload["kind"] != "path" {
            continue;
        }
        let raw = payload["payload"].as_str().unwrap();
        for path in [raw.to_owned(), format!("docs/{raw}"), format!("docs/../{raw}")] {
            seen += 1;
            match kind(&session, "look", json!({"path": path})).await {
                None => {
                    ran += 1;
                    let workspace = Workspace::open(desk.root.path()).unwrap();
                    let leads_to = toolyard::PathScope::resolve(&workspace, &path).unwrap();
                    assert!(leads_to.starts_with("docs"), "{path:?} leads to {leads_to:?}");
                }
                Some(ErrorKind::FsDenied | ErrorKind::PermissionDenied) => {}
                Some(other) => panic!("{path:?}: {other}"),
            }
        }
    }
    assert!(seen > 1000 && ran > 0, "{seen} forms, {ran} of them inside");
}
