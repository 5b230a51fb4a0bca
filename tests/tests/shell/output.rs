//! The output of commands, streamed and kept.

use super::{supervised, yard, yard_with};
use toolyard_process::{DELTA_BYTES_MAX, DELTAS_BYTES_MAX};
use toolyard_tools::shell::Shell;

/// Output arrives in the order it was written, stdout and stderr interleaved, in whole lines.
#[tokio::test]
async fn output_is_streamed_in_whole_lines_and_in_order() {
    let yard = yard().await;
    let text = yard.run("for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf tail").await.to_text();
    assert_eq!(text, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\ntail");
    let deltas = yard.deltas();
    assert_eq!(deltas.concat(), text);
    let (last, lines) = deltas.split_last().unwrap();
    assert!(last.ends_with("tail") && lines.iter().all(|delta| delta.ends_with('\n')), "{deltas:?}");
    yard.events.check();
}

/// Characters stay whole even if written in pieces; bytes that are not UTF-8 are replaced.
#[tokio::test]
async fn characters_are_whole_and_all_else_is_replaced() {
    let yard = yard().await;
    let command =
        r"printf '\342'; sleep 0.1; printf '\202\254|'; printf '\377|\342\202|'; printf '\360\237\230'";
    assert_eq!(yard.run(command).await.to_text(), "€|\u{FFFD}|\u{FFFD}|\u{FFFD}");
    assert_eq!(yard.deltas().concat(), "€|\u{FFFD}|\u{FFFD}|\u{FFFD}");
}

/// Of a long output, head and tail are kept and the bytes between are counted; streamed output is bounded too.
#[tokio::test]
async fn a_cut_in_long_output_is_marked() {
    let yard = yard_with(Shell::new(supervised()).output_bytes(20), |builder| builder).await;
    let text = yard.run("seq 1 200000").await.to_text();
    assert_eq!(text, "1\n2\n3\n4\n5\n[… 1288878 bytes left out …]\n200000\n");
    let deltas = yard.deltas();
    assert!(deltas.iter().all(|delta| delta.len() <= DELTA_BYTES_MAX));
    let (last, streamed) = deltas.split_last().unwrap();
    assert!(streamed.concat().len() <= DELTAS_BYTES_MAX && streamed.concat().starts_with("1\n2\n"));
    assert!(last.contains("not streamed"), "{last}");
}

/// An output of 50 MB in a single line is cut like any other.
#[tokio::test]
async fn an_endless_line_is_cut() {
    let yard = yard().await;
    let text = yard.run("head -c 50000000 /dev/zero | tr '\\0' x").await.to_text();
    assert!(text.len() < (64 << 10) + 100 && text.contains("\n[… 49934464 bytes left out …]\n"));
    assert!(yard.deltas().iter().all(|delta| delta.len() <= DELTA_BYTES_MAX));
}
