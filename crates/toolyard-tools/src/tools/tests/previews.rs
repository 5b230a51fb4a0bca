//! The preview of a change that the approver is shown (PO-4).

use super::*;

impl Fixture {
    fn preview(&self, tool: &str, args: Value) -> String {
        builtin(tool).unwrap().preview(&args, &self.parts.resources).unwrap()
    }
}

/// PO-4: a preview shows the diff from the current content to the future one, and changes nothing.
#[test]
fn a_preview_is_a_short_diff() {
    let fixture = Fixture::new();
    let write = |content: &str| fixture.preview("write_file", json!({"path": "a/b", "content": content}));
    assert_eq!(write("one\ntwo\n"), "new file\n+one\n+two");
    assert_eq!(fixture.call("list_dir", json!({})).unwrap().to_text(), "[the directory is empty]");
    fixture.call("write_file", json!({"path": "a/b", "content": "one\ntwo\n"})).unwrap();
    assert_eq!(write("one\ntwo\n"), "no change");
    assert_eq!(write("one\n2\n"), "@@ -1,2 +1,2 @@\n one\n-two\n+2");
    let patch = |old: &str| fixture.preview("patch_file", json!({"path": "a/b", "old": old, "new": "2"}));
    assert_eq!(patch("two"), "@@ -1,2 +1,2 @@\n one\n-two\n+2");
    assert_eq!(patch("three"), "would fail: the text to replace does not occur in 'a/b'");
    assert_eq!(fixture.call("read_file", json!({"path": "a/b"})).unwrap().to_text(), "one\ntwo\n");
}

/// PO-4: a preview that cannot compare says so briefly.
#[test]
fn a_preview_says_what_it_cannot_show() {
    let fixture = Fixture::new();
    let workspace = fixture.parts.resources.get::<Workspace>().unwrap();
    let write = |path: &str| fixture.preview("write_file", json!({"path": path, "content": "x"}));
    workspace.write_bytes("binary", [0xff, 0xfe]).unwrap();
    assert_eq!(write("binary"), "replaces a file that is not text");
    workspace.write("dir/file", "").unwrap();
    assert_eq!(write("dir"), "no preview: 'dir' is a directory, not a file");
    std::fs::write(fixture._dir.path().join("large"), vec![b'x'; (8 << 20) + 1]).unwrap();
    assert_eq!(write("large"), "replaces a file of 8388609 bytes, too large to show");
}

/// PO-2, PO-4: a preview reads nothing outside the workspace either.
#[test]
fn a_preview_stays_in_the_workspace() {
    let fixture = Fixture::new();
    let escape = "Path '../x' escapes workspace boundary";
    let write = fixture.preview("write_file", json!({"path": "../x", "content": ""}));
    assert_eq!(write, format!("no preview: {escape}"));
    let patch = fixture.preview("patch_file", json!({"path": "../x", "old": "a", "new": "b"}));
    assert_eq!(patch, format!("would fail: {escape}"));
}

#[test]
fn what_changes_nothing_has_no_preview() {
    let fixture = Fixture::new();
    let read = builtin("read_file").unwrap();
    assert_eq!(read.preview(&json!({"path": "a"}), &fixture.parts.resources), None);
    let write = builtin("write_file").unwrap();
    assert_eq!(write.preview(&json!({"path": 3}), &fixture.parts.resources), None);
    assert_eq!(write.preview(&json!({"path": "a", "content": ""}), &Resources::new()), None);
}

/// PO-3: an answer of "always" holds for one file, whatever is written to it.
#[test]
fn what_is_always_allowed_is_bound_to_a_path() {
    use toolyard_core::{ApprovalPattern, SessionId};
    let of = |tool: &str, args: Value| {
        ApprovalPattern::of(&builtin(tool).unwrap().spec(), &args, &SessionId::from("s"))
    };
    let write = |path: &str, content: &str| of("write_file", json!({"path": path, "content": content}));
    assert_eq!(write("a", "1"), write("a", "2"));
    assert_ne!(write("a", "1"), write("b", "1"));
    let patch = |path: &str, old: &str| of("patch_file", json!({"path": path, "old": old, "new": "x"}));
    assert_eq!(patch("a", "1"), patch("a", "2"));
    assert_ne!(patch("a", "1"), patch("b", "1"));
}
