//! Machines of one snapshot, side by side.

use super::{Yard, shell};
use toolyard_vm::{Change, End};

/// SB-7, SB-8: two machines that were restored from one snapshot do not see each other, and have random numbers of their
/// own.
#[tokio::test]
async fn two_restored_machines_do_not_see_each_other() {
    let Some(yard) = Yard::new() else { return };
    let script = |name: &str| {
        let script = format!(
            "echo mine > /tmp/{name}; cat /proc/sys/kernel/random/uuid; head -c 16 /dev/urandom | md5sum; \
             ls /tmp"
        );
        shell(&script)
    };
    let (one, other) = tokio::join!(yard.run(script("one")), yard.run(script("other")));
    assert_eq!((&one.end, &other.end), (&End::Exited(0), &End::Exited(0)), "{one:?} {other:?}");
    let (one, other) = (one.output.into_text(), other.output.into_text());
    assert!(one.contains("one\n") && !one.contains("other"), "{one}");
    assert!(other.contains("other\n") && !other.contains("one\n"), "{other}");
    for (one, other) in one.lines().zip(other.lines()).take(2) {
        assert_ne!(one, other);
    }
}

/// What one call leaves, the next does not find.
#[tokio::test]
async fn nothing_stays_for_the_next_call() {
    let Some(yard) = Yard::new() else { return };
    let script = "ls /tmp /bin/left; echo left > /tmp/left; echo left > /bin/left; echo left > /work/left";
    for _ in 0..2 {
        let ended = yard.run(shell(script).directory("/work").returned("/work")).await;
        assert_eq!(ended.output.into_text(), "/tmp:\n");
        let left = Change::File { path: "/work/left".into(), content: b"left\n".to_vec() };
        assert_eq!(ended.changes.unwrap(), [left]);
    }
}
