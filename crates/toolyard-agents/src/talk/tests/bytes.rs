//! Conversations with agents that send whatever they like.

use super::*;

/// TS-4, AG-13: whatever bytes an agent sends, its conversation goes on or is given up, and ends with it: 10 000 streams,
/// some of them almost right, cut and closed anywhere.
#[tokio::test(start_paused = true)]
async fn any_stream_of_bytes_is_survived() {
    let lines: [&[u8]; 12] = [
        b"{\"op\":\"tool_call\",\"tool_call_id\":\"1\",\"tool\":\"read\",\"args\":{\"ms\":1}}\n",
        b"{\"op\":\"tool_call\",\"tool_call_id\":\"2\",\"tool\":\"write\",\"args\":{\"ms\":1},\"after\":[\"1\"]}\n",
        b"{\"op\":\"tool_calls\",\"calls\":[{\"tool_call_id\":\"3\",\"tool\":\"none\",\"args\":1},7]}\n",
        b"{\"op\":\"cancel\",\"tool_call_id\":\"1\"}\n",
        b"{\"op\":\"hello\",\"protocol\":1,\"meta\":true,\"deltas\":true}\n",
        b"{\"op\":\"turn_end\"}\n",
        b"{\"op\":\"bye\",\"result\":1}\n",
        b"{\"op\":\"\xff\"}\n",
        b"\n\r\n",
        b"[[[[[[[[",
        b"{\"op\":\"tool_call\",\"tool_call_id\":\"",
        b"\0\n",
    ];
    let Agent { _engine: engine, .. } = agent().await;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64; // a fixed seed: xorshift
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for stream in 0..10_000 {
        let mut bytes = Vec::new();
        for _ in 0..next(12) {
            match next(4) {
                0 => bytes.extend((0..next(40)).map(|_| next(256) as u8)),
                _ => bytes.extend_from_slice(lines[next(lines.len() as u64) as usize]),
            }
        }
        bytes.truncate(next(bytes.len() as u64 + 1) as usize);
        let session = engine.session(format!("s{stream}").as_str());
        let ((mut to, from), (their_to, their_from)) = (duplex(PIPE), duplex(PIPE));
        let (orders, ordered) = watch::channel(Order::Talk);
        let talk = Talk::new(TalkParts {
            from,
            to: their_to,
            recorded: None,
            observer: Observer::new(session.id(), session.agent(), None),
            session,
            input: None,
            long_lines: LongLines::default(),
            answers: AnswersRoom::default(),
            deltas: Deltas::default(),
            orders: ordered,
        });
        let talk = tokio::spawn(talk.run(|| {}));
        to.write_all(&bytes).await.unwrap();
        let heard = match next(3) {
            0 => Some(their_from), // it does not listen
            1 => None,
            _ => {
                drop(to);
                None
            }
        };
        tokio::task::yield_now().await;
        orders.send_replace(Order::Exited);
        let ended = tokio::time::timeout(Duration::from_secs(60), talk).await;
        assert!(
            ended.is_ok_and(|ended| ended.is_ok()),
            "stream {stream}: {:?}",
            String::from_utf8_lossy(&bytes)
        );
        drop(heard);
    }
}
