use super::*;
use proptest::prelude::*;
use tokio::io::{AsyncWriteExt as _, duplex};

async fn all(bytes: &[u8]) -> (Vec<String>, Option<LineError>) {
    let (mut lines, mut all) = (Lines::new(bytes, &LongLines::default()), Vec::new());
    loop {
        match lines.next().await {
            Ok(Some(line)) => all.push(String::from_utf8_lossy(line).into_owned()),
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

/// AG-2: a line ends by a line feed, with or without a carriage return, or by the end of the input.
#[tokio::test]
async fn lines_end_by_a_line_feed() {
    assert_eq!(all(b"a\r\n\nb\n{half").await.0, ["a", "", "b", "{half"]);
    assert_eq!(all(b"a\n").await.0, ["a"]);
    assert_eq!(all(b"").await.0, [""; 0]);
}

/// AG-2: a line of 4 MiB is read, and one more byte is too much, whether its end has come or not.
#[tokio::test]
async fn a_line_is_bounded() {
    let longest = format!("{}\nb\n", "x".repeat(LINE_BYTES_MAX));
    let (lines, error) = all(longest.as_bytes()).await;
    assert_eq!((lines.len(), lines[0].len(), error.is_none()), (2, LINE_BYTES_MAX, true));
    for end in ["\nb\n", ""] {
        let (lines, error) = all(format!("{}{end}", "x".repeat(LINE_BYTES_MAX + 1)).as_bytes()).await;
        assert!(lines.is_empty() && matches!(error, Some(LineError::TooLong)));
    }
}

/// AG-2, AG-13: who begins a long line and does not end it is given up after 30 s, and others get its place then. Short
/// lines wait for nobody.
#[tokio::test(start_paused = true)]
async fn a_long_line_has_a_place_for_a_while() {
    let long_lines = LongLines::default();
    let begin = async || {
        let (mut ours, theirs) = duplex(1 << 20);
        ours.write_all(&vec![b'x'; SHORT_BYTES + 1]).await.unwrap();
        (ours, Lines::new(theirs, &long_lines))
    };
    let mut hung = Vec::new();
    for _ in 0..LONG_BYTES_MAX / LINE_BYTES_MAX {
        let (ours, mut lines) = begin().await;
        hung.push(tokio::spawn(async move {
            let ended = lines.next().await.map(|_| ());
            drop(ours);
            ended
        }));
    }
    tokio::task::yield_now().await;
    let began = Instant::now();
    let (mut ours, mut waits) = begin().await;
    // A wait that is given up and taken up again keeps its place.
    for _ in 0..3 {
        assert!(tokio::time::timeout(Duration::from_secs(1), waits.next()).await.is_err());
    }
    assert_eq!(Lines::new(&b"short\n"[..], &long_lines).next().await.unwrap(), Some(&b"short"[..]));
    ours.write_all(b"\n").await.unwrap();
    assert_eq!(waits.next().await.unwrap().map(<[u8]>::len), Some(SHORT_BYTES + 1));
    assert_eq!(began.elapsed(), LONG_TIME);
    for hung in hung {
        assert!(matches!(hung.await.unwrap(), Err(LineError::TooSlow)));
    }
}

/// AG-2, AG-13: the time of a long line does not run while nobody reads, and others have its place then.
#[tokio::test(start_paused = true)]
async fn a_line_is_not_late_while_nobody_reads() {
    let (mut ours, theirs) = duplex(1 << 20);
    let long_lines = LongLines::default();
    let mut lines = Lines::new(theirs, &long_lines);
    ours.write_all(&vec![b'x'; SHORT_BYTES + 1]).await.unwrap();
    let wait = async |lines: &mut Lines<_>, seconds| {
        tokio::time::timeout(Duration::from_secs(seconds), lines.next()).await.map(|next| next.map(|_| ()))
    };
    assert!(wait(&mut lines, 29).await.is_err());
    assert_eq!(long_lines.0.available_permits(), 15);
    lines.rest();
    assert_eq!(long_lines.0.available_permits(), 16);
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert!(wait(&mut lines, 29).await.is_err());
    assert!(matches!(wait(&mut lines, 5).await, Ok(Err(LineError::TooSlow))));
}

/// AG-2: lines that have been read and not given are given later, wherever nobody reads for a while.
#[tokio::test]
async fn a_rest_loses_no_line() {
    let text: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
    let mut lines = Lines::new(text.as_bytes(), &LongLines::default());
    for n in 0..5_000 {
        let line = lines.next().await.unwrap().map(<[u8]>::to_vec);
        assert_eq!(line, Some(format!("line {n}").into_bytes()));
        if n % 3 == 0 {
            lines.rest();
        }
    }
    assert_eq!(lines.next().await.unwrap(), None);
}

/// AG-13: what a long line needed is not kept.
#[tokio::test]
async fn the_memory_of_a_long_line_is_given_back() {
    let text = format!("{}\n", "x".repeat(1 << 20));
    let long_lines = LongLines::default();
    let mut lines = Lines::new(text.as_bytes(), &long_lines);
    assert!(lines.next().await.unwrap().is_some());
    assert_eq!(long_lines.0.available_permits(), 15);
    assert!(lines.next().await.unwrap().is_none());
    assert_eq!(long_lines.0.available_permits(), 16);
    assert!(lines.buffer.capacity() <= SHORT_BYTES);
}

proptest! {
    /// AG-2: however lines are cut into pieces, they are the same lines.
    #[test]
    fn cuts_change_nothing(text in "[ab\\r\\n]{0,64}", cuts in proptest::collection::vec(1usize..5, 0..40)) {
        let whole: Vec<_> = {
            let mut parts: Vec<_> = text.split('\n').collect();
            let last = parts.pop().filter(|last| !last.is_empty());
            let ended = parts.iter().map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned());
            ended.chain(last.map(str::to_owned)).collect()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let read = runtime.block_on(async {
            let (mut ours, theirs) = duplex(3);
            let bytes = text.clone().into_bytes();
            let writes = tokio::spawn(async move {
                let mut rest = bytes.as_slice();
                for cut in cuts {
                    let (piece, later) = rest.split_at(cut.min(rest.len()));
                    ours.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                    rest = later;
                }
                ours.write_all(rest).await.unwrap();
            });
            let (mut lines, mut read) = (Lines::new(theirs, &LongLines::default()), Vec::new());
            while let Some(line) = lines.next().await.unwrap() {
                read.push(String::from_utf8_lossy(line).into_owned());
            }
            writes.await.unwrap();
            read
        });
        prop_assert_eq!(read, whole);
    }
}
