//! Published attack lists, and links that are swapped during use, against the workspace and its tools.
//!
//! ```text
//!   a temporary directory
//!     canary.txt, outside/canary.txt     must stay unread and untouched
//!     ws/                                the workspace, with links in, out, up and in a loop
//! ```
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod arena;
mod payloads;
mod swap;

use arena::{Arena, CANARY, Tally};
use serde_json::{Value, json};
use toolyard_core::{PathScope as _, ToolFactory};
use toolyard_tools::{Workspace, WorkspaceError, builtin};

/// Every operation on one path. No result may contain anything from outside.
fn attack(arena: &Arena, path: &str, tally: &mut Tally) {
    let workspace = &arena.workspace;
    for operation in OPERATIONS {
        let result = operation(workspace, path);
        arena.assert_innocent(path, &format!("{result:?}"));
        tally.count(path, &result);
    }
    if workspace.check(path).is_err() {
        let refused = workspace.exists(path);
        let reason_is_clear =
            matches!(refused, Err(WorkspaceError::Escape(_) | WorkspaceError::BadPath { .. }));
        assert!(reason_is_clear, "{path:?}: {refused:?}");
    }
}

type Operation = fn(&Workspace, &str) -> Result<String, WorkspaceError>;

const OPERATIONS: [Operation; 9] = [
    |ws, path| ws.exists(path).map(|found| found.to_string()),
    |ws, path| ws.read(path),
    |ws, path| ws.read_bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    |ws, path| ws.list(path).map(|listing| format!("{listing:?}")),
    |ws, path| ws.patch(path, CANARY, "patched").map(|size| size.to_string()),
    |ws, path| ws.append(path, "appended").map(|()| String::new()),
    |ws, path| ws.write(path, "written").map(|()| String::new()),
    |ws, path| ws.write_bytes(path, b"bytes").map(|()| String::new()),
    |ws, path| ws.delete(path).map(|()| String::new()),
];

/// Like [`attack`], through the tools.
async fn attack_by_tools(arena: &Arena, tools: &[Box<dyn ToolFactory>; 4], path: &str) {
    let arguments: [Value; 4] = [
        json!({"path": path}),
        json!({"path": path}),
        json!({"path": path, "content": "written"}),
        json!({"path": path, "old": CANARY, "new": "patched"}),
    ];
    for (tool, args) in tools.iter().zip(arguments) {
        let result = tool.create().execute(&args, &arena.context()).await;
        arena.assert_innocent(path, &format!("{result:?}"));
    }
}

#[test]
fn published_attacks_reach_nothing_outside() {
    let Some(payloads) = payloads::paths() else { return };
    let arena = Arena::new();
    let mut tally = Tally::default();
    let variants = payloads::variants(&payloads, arena.root());
    for path in &variants {
        attack(&arena, path, &mut tally);
    }
    arena.assert_untouched();
    println!("{} payloads, {} paths with their variants: {tally}", payloads.len(), variants.len());
    assert!(tally.refused > 0 && tally.done > 0, "the lists did not bite");
}

#[tokio::test(flavor = "current_thread")]
async fn published_attacks_reach_nothing_outside_through_the_tools() {
    let Some(payloads) = payloads::paths() else { return };
    let arena = Arena::new();
    let tool = |name: &str| -> Box<dyn ToolFactory> { Box::new(builtin(name).unwrap()) };
    let tools = ["read_file", "list_dir", "write_file", "patch_file"].map(tool);
    let variants = payloads::variants(&payloads, arena.root());
    for path in &variants {
        attack_by_tools(&arena, &tools, path).await;
    }
    arena.assert_untouched();
    println!("through the tools: {} calls, 0 escapes", variants.len() * tools.len());
}

#[test]
fn links_out_of_the_workspace_lead_nowhere() {
    let arena = Arena::new();
    let mut tally = Tally::default();
    for link in ["canary", "canary_absolute", "etc", "up", "outside", "chain", "deep/up2", "in/../up"] {
        for below in ["", "/", "/canary.txt", "/passwd", "/outside/canary.txt", "/../canary.txt", "/new/file"]
        {
            attack(&arena, &format!("{link}{below}"), &mut tally);
        }
    }
    arena.assert_untouched();
    println!("links: {tally}");
}

#[test]
fn loops_of_links_end_and_links_inside_work() {
    let arena = Arena::new();
    let workspace = &arena.workspace;
    for path in ["loop", "ping", "ping/x", "self/self/self/loop"] {
        assert!(workspace.read(path).is_err(), "{path}");
        assert!(workspace.write(path, "x").is_err(), "{path}");
    }
    assert_eq!(workspace.read("in/file.txt").unwrap(), "inside");
    assert_eq!(workspace.read("self/self/dir/file.txt").unwrap(), "inside");
    arena.assert_untouched();
}

#[test]
fn naughty_strings_are_mere_names_and_contents() {
    let Some(strings) = payloads::naughty() else {
        return;
    };
    let arena = Arena::new();
    let workspace = &arena.workspace;
    let mut names = 0;
    for (number, text) in strings.iter().enumerate() {
        let path = format!("contents/{number}");
        workspace.write(&path, text).unwrap();
        assert_eq!(workspace.read(&path).unwrap(), *text);
        let directory = format!("names/{number}");
        let Ok(()) = workspace.write(format!("{directory}/{text}"), text) else {
            continue;
        };
        assert_eq!(workspace.read(format!("{directory}/{text}")).unwrap(), *text);
        if !text.contains('/') {
            assert_eq!(workspace.list(&directory).unwrap().entries[0].name, *text);
        }
        names += 1;
    }
    arena.assert_untouched();
    println!("{} strings: {} as contents, {names} as names", strings.len(), strings.len());
    assert!(names * 10 > strings.len() * 9, "only {names} were taken as names");
}
