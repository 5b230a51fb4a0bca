//! Files that go in, and what comes back of them.

use super::{Yard, shell};
use toolyard_vm::{CallFile, Change, End};

fn file(path: &str, content: impl Into<Vec<u8>>) -> CallFile {
    CallFile { path: path.into(), content: content.into(), is_executable: false }
}

/// SB-1: what was changed where that was granted comes back, and nothing else.
#[tokio::test]
async fn what_was_changed_where_it_may_be_comes_back() {
    let Some(yard) = Yard::new() else { return };
    let script = "echo more >> /w/changed; rm /w/removed; rm -r /w/gone; mkdir /w/new; echo x > /w/new/x; \
                  ln -s /etc /w/link; mkfifo /w/pipe; echo no > /r/same; echo no > /w/../r/other; ls /w; cat /w/same";
    let call = shell(script).directory("/w/gone").directory("/w/empty");
    let names = ["/w/changed", "/w/removed", "/w/gone/a", "/w/same", "/r/same"];
    let call = names.iter().fold(call, |call, name| call.file(file(name, "text\n"))).returned("/w");
    let ended = yard.run(call).await;
    assert_eq!(ended.end, End::Exited(0), "{ended:?}");
    let mut changes = ended.changes.unwrap();
    changes.sort_by_key(|change| format!("{change:?}"));
    let written = |path: &str, content: &[u8]| Change::File { path: path.into(), content: content.to_vec() };
    let expect = [
        Change::Directory("/w/new".into()),
        written("/w/changed", b"text\nmore\n"),
        written("/w/new/x", b"x\n"),
        Change::Removed("/w/gone".into()),
        Change::Removed("/w/gone/a".into()),
        Change::Removed("/w/removed".into()),
    ];
    assert_eq!(changes, expect);
    assert_eq!(ended.output.into_text(), "changed\nempty\nlink\nnew\npipe\nsame\ntext\n");
}

/// SB-4: files that do not fit are no call; those that fit arrive whole, and come back whole up to the limit.
#[tokio::test]
async fn many_bytes_arrive_whole() {
    let Some(yard) = Yard::new() else { return };
    let content: Vec<u8> = (0..8 << 20).map(|at: u32| (at % 251) as u8).collect();
    let call = || shell("cat /w/a /w/a > /w/b").file(file("/w/a", content.clone())).returned("/w");
    let ended = yard.run(call()).await;
    let whole = Change::File { path: "/w/b".into(), content: content.repeat(2) };
    assert!(ended.changes.unwrap() == [whole], "another content");
    let ended = yard.run(call().returned_bytes(content.len() as u64)).await;
    assert_eq!(ended.end, End::Exited(0));
    assert_eq!(ended.changes.unwrap_err(), "it wrote more bytes of files than are taken back");
    let ended = yard.run(shell("true").file(file("/tmp/a", vec![1; 128 << 20]))).await;
    assert!(matches!(&ended.end, End::NotStarted(why) if why.contains("No space left")), "{:?}", ended.end);
}

/// A program that was sent is executed.
#[tokio::test]
async fn a_program_that_was_sent_is_executed() {
    let Some(yard) = Yard::new() else { return };
    let script = CallFile { is_executable: true, ..file("/opt/tool", "#!/bin/sh\necho $0 $#\n") };
    let call = toolyard_vm::Call::new("/opt/tool").arguments(["a", "b c"]).file(script);
    let ended = yard.run(call).await;
    assert_eq!((ended.end, ended.output.into_text()), (End::Exited(0), "/opt/tool 2\n".to_owned()));
}
