//! A server that is killed again and again, and a client that sends each request until it has an answer (HT-1, HT-13): no
//! effect happens twice, and no answer that was given changes.

use crate::{
    served::Place,
    shared::served::{SILENCE_MAX, Served},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// How many turns a client sends.
const TURNS: usize = 5;

/// After how many further effects a server is killed, one life after the other.
const KILLS: [&[usize]; 6] = [&[1, 1, 1], &[2, 3], &[3, 1, 2], &[4, 4], &[5], &[1, 2, 3]];

/// The answer to a request, unless the server ends before it.
fn answer(served: &Served, token: &str, key: &str, body: &Value) -> Option<(u16, Value)> {
    let address = served.told["address"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let body = body.to_string();
    let head = format!(
        "POST /sessions/a/turns?wait=60&to=neutral HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         idempotency-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(&address).ok()?;
    stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
    stream.write_all(head.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
}

/// Kills a server once there are so many effects, or at its end.
struct Killer {
    thread: thread::JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl Killer {
    fn at(place: &Place, served: &Served, effects: usize) -> Self {
        let (file, pid) = (place.effects_file(), Pid::from_child(&served.child));
        let is_over = Arc::<AtomicBool>::default();
        let over = is_over.clone();
        let thread = thread::spawn(move || {
            while Place::effects_in(&file).len() < effects && !over.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            kill_process(pid, Signal::KILL).unwrap();
        });
        Self { thread, is_over }
    }

    fn has_killed(self) {
        self.thread.join().unwrap();
    }

    fn kills_now(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.has_killed();
    }
}

/// The calls of a turn.
fn calls(turn: usize) -> Value {
    let note = |at: usize| json!({"call_id": format!("{turn}.{at}"), "name": "note", "arguments": {"text": format!("{turn}.{at}")}});
    json!({"calls": [note(0), {"call_id": format!("{turn}.r"), "name": "list_dir", "arguments": {"path": "."}}, note(1)]})
}

fn statuses(answer: &Value) -> Vec<String> {
    let results = answer["results"]["results"].as_array().unwrap_or_else(|| panic!("no results: {answer}"));
    results.iter().map(|it| it["error"]["code"].as_str().unwrap_or("ok").to_owned()).collect()
}

/// I5, HT-1, JR-1: over all of these lives.
#[test]
fn no_effect_happens_twice_over_http() {
    for kills in KILLS {
        let place = Place::that_asks_nobody();
        let mut effects = 0;
        let mut lives = kills.iter().map(|more| {
            effects += more;
            effects
        });
        let mut served = place.opened();
        let mut killing = lives.next().map(|at| Killer::at(&place, &served, at));
        let (mut given, mut turn, mut killed) = (BTreeMap::<usize, Vec<String>>::new(), 0, 0);
        while turn < TURNS {
            match answer(&served, &place.two.agent, &format!("k{turn}"), &calls(turn)) {
                Some((200, answer)) => {
                    given.insert(turn, statuses(&answer));
                    turn += 1;
                }
                Some(other) => panic!("{other:?}"),
                None => {
                    killing.take().expect("only a kill ends it").has_killed();
                    killed += 1;
                    served.child.wait().unwrap();
                    served = place.serve();
                    killing = lives.next().map(|at| Killer::at(&place, &served, at));
                }
            }
        }
        assert!(killed > 0, "{kills:?}");
        match killing {
            Some(killing) => killing.kills_now(),
            None => served.signal(Signal::KILL),
        }
        served.child.wait().unwrap();
        let last = place.serve();
        for (turn, before) in &given {
            let again = answer(&last, &place.two.agent, &format!("k{turn}"), &calls(*turn)).unwrap();
            assert_eq!(statuses(&again.1), *before, "{kills:?}, turn {turn}");
        }
        let done = Place::effects_in(&place.effects_file());
        let mut once = done.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), done.len(), "{kills:?}: {done:?}");
        for (turn, statuses) in &given {
            for (at, status) in [(0, &statuses[0]), (1, &statuses[2])] {
                let has_happened = done.iter().any(|text| text.contains(&format!("\"{turn}.{at}\"")));
                match status.as_str() {
                    "ok" => assert!(has_happened, "{kills:?}: {turn}.{at} has a result and no effect"),
                    // It was running, or waited behind one that was.
                    "interrupted" | "cancelled" => {}
                    other => panic!("{kills:?}: {turn}.{at} ended {other}"),
                }
            }
        }
        assert_eq!(last.end(), Some(130));
    }
}
