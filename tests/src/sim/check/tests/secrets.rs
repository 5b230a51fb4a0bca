//! Tests of the check for leaked secrets.

use super::{ASKED, READ, breaks, find, program};
use crate::sim::{
    Fact, Program, play,
    program::{End, Secret, Step},
};
use toolyard::EventKind;

/// c0 reads and streams, c1 needs an approval, c2 fails, c3 panics; the secret is in all their arguments and outputs.
fn planted() -> Program {
    let mut program = program(1, &[&[READ, ASKED, READ, READ]]);
    let calls = &mut program.sessions[0].turns[0].batch.calls;
    calls[0].script.steps = vec![Step::Emit, Step::Sleep(1)];
    (calls[2].script.end, calls[3].script.end) = (End::Fail, End::Panic);
    program.secret = Some(Secret { core: "hush01".to_owned(), whole: "hush01-\"ö".to_owned() });
    program
}

/// I15: in a stream, even split over two pieces.
#[test]
fn a_secret_in_a_stream_is_found() {
    for text in ["some hush01", "h"] {
        breaks("I15", &planted(), |entries| {
            let delta = |fact: &Fact| matches!(fact, Fact::Event(event) if matches!(event.kind, EventKind::OutputDelta { .. }));
            let at = find(entries, delta);
            let mut next = entries[at].clone();
            for (entry, piece) in [(&mut entries[at], text), (&mut next, "ush01")] {
                if let Fact::Event(event) = &mut entry.fact {
                    event.kind = EventKind::OutputDelta { text: piece.to_owned() };
                }
            }
            entries.insert(at + 1, next);
        });
    }
}

/// I15: the handler gets what was sent.
#[test]
fn a_secret_that_is_withheld_is_found() {
    breaks("I15", &planted(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::HandlerEnd(0, _)));
        entries[at].fact = Fact::Withheld(0);
    });
}

/// I15: results, questions, spans, log lines and events are all searched; text that is not redacted is found in each.
#[test]
fn everything_shown_is_searched() {
    let mut program = planted();
    let whole = "something else".to_owned();
    for (core, shown) in
        [("c0", "a result"), ("node", "a question"), ("c1", "execute_tool"), ("scripted panic", "event")]
    {
        program.secret = Some(Secret { core: core.to_owned(), whole: whole.clone() });
        let report = play(&program);
        let found = |what: &str| {
            let leaks = report.violations.iter().filter(|violation| violation.rule == "I15");
            leaks.into_iter().any(|leak| leak.what.contains(what))
        };
        assert!(found(shown), "{core} is in {shown}: {:#?}", report.violations);
    }
    program.secret = Some(Secret { core: "c0".to_owned(), whole });
    assert!(play(&program).violations.iter().any(|leak| leak.what.contains("in an event")));
}
