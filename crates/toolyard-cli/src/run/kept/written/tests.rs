use super::*;
use toolyard::{Call, CallError, ErrorKind, Outcome, Routing};

/// An episode of this many turns, whose calls are `a` and `b`.
fn episode(id: &str, turns: usize) -> Episode {
    let calls =
        r#"[{"call_id":"a","name":"echo","arguments":{}},{"call_id":"b","name":"echo","arguments":{}}]"#;
    let turns = vec![calls; turns].join(",");
    Episode::parse_line(&format!(r#"{{"id":"{id}","turns":[{turns}]}}"#)).unwrap()
}

/// The results of an episode, in which each call `b` failed.
fn text(episode: &Episode) -> Vec<u8> {
    let mut text = Vec::new();
    for (turn, calls) in episode.turns.iter().enumerate() {
        let outcome = |call: &Call| match call.id.as_str() {
            "b" => Outcome::new(call, Routing::Read, Err(CallError::new(ErrorKind::Timeout, "late"))),
            _ => Outcome::new(call, Routing::Read, Ok("done".into())),
        };
        let outcomes: Vec<Outcome> = calls.iter().map(outcome).collect();
        results::write_line(&mut text, &episode.results(turn, &outcomes)).unwrap();
    }
    text
}

/// What is found of two episodes in a file that holds these bytes, and how much of it is read whole.
fn found(bytes: &[u8]) -> ([Found; 2], u64) {
    let mut written = Written::new(bytes);
    let found =
        [("e\\u202e1", 2), ("e2", 1)].map(|(id, turns)| written.episode(&episode(id, turns), 1).unwrap());
    (found, written.bytes())
}

fn both() -> (Vec<u8>, usize) {
    let first = text(&episode("e\\u202e1", 2));
    ([first.clone(), text(&episode("e2", 1))].concat(), first.len())
}

/// KT-9: wherever a file breaks off, what is before is whole and the episode it breaks off in is not.
#[test]
fn a_file_may_break_off_anywhere() {
    let (text, first) = both();
    for end in 0..=text.len() {
        let whole = |calls| Found::Whole { failed: calls };
        let expect = match end {
            _ if end == text.len() => [whole(2), whole(1)],
            _ if end >= first => [whole(2), Found::Part],
            _ => [Found::Part, Found::Part],
        };
        // A reader stops at the first part.
        let (mut of_end, _) = found(&text[..end]);
        if of_end[0] == Found::Part {
            of_end[1] = Found::Part;
        }
        assert_eq!(of_end, expect, "broken off at {end}");
    }
    let (_, bytes) = found(&text);
    assert_eq!(bytes, text.len() as u64);
}

/// KT-9: a machine that stops may leave zeros behind what it has written.
#[test]
fn zeros_at_the_end_break_it_off() {
    let (text, first) = both();
    for end in [first, first + 4, text.len() - 9] {
        let zeros = [&text[..end], &[0; 20_000]].concat();
        assert_eq!(found(&zeros).0, [Found::Whole { failed: 2 }, Found::Part], "zeros from {end}");
    }
    let more = [&text[..first], &[0; 9], b"x"].concat();
    assert!(matches!(found(&more).0[1], Found::Other(_)));
}

/// KT-9: results of other episodes, turns or calls are named, and not taken for a line that breaks off.
#[test]
fn what_is_of_another_input_is_named() {
    let check = |text: &[u8], expect: &str| match Written::new(text).episode(&episode("e1", 2), 7).unwrap() {
        Found::Other(why) => assert!(why.starts_with(expect) && why.contains("left as it is"), "{why}"),
        found => panic!("{found:?}"),
    };
    let place = "turn 0 of episode 'e1' (line 7 of the input)";
    check(b"hello", &format!("line 1 is not about {place}, but begins with hello;"));
    check(&text(&episode("e2", 2)), &format!("line 1 is not about {place}, but begins with {{\"id\":\"e2\""));
    check(
        b"{\"id\":\"e1\",\"turn\":0,\"results\":[x\n",
        &format!("line 1 is about {place}, but cannot be read"),
    );
    let line = |results: &str| format!("{{\"id\":\"e1\",\"turn\":0,\"results\":[{results}]}}\n").into_bytes();
    check(&line(""), &format!("line 1 is about {place}, but has 0 results for 2 calls;"));
    let other = line(r#"{"call_id":"a","ok":true},{"call_id":"c","ok":true}"#);
    check(
        &other,
        &format!("line 1 is about {place}, but has a result of call 'c' where the input has call 'b';"),
    );
    let short = [text(&episode("e1", 1)), text(&episode("e2", 1))].concat();
    check(&short, "line 2 is not about turn 1 of episode 'e1'");
}
