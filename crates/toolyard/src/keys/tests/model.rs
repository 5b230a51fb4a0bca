//! The keys compared with a naive model, step by step.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Reserve { key: usize, args: u32, mutating: bool },
    Complete { key: usize, finished: Finished<u32> },
    Forget(usize),
    Peek { key: usize, args: u32 },
    Pass(u64),
}

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS.len();
    let finished = prop_oneof![
        4 => (0..100u32, 0..60usize, any::<bool>())
            .prop_map(|(body, bytes, idempotent)| keep(body, bytes, idempotent)),
        1 => Just(Finished::Forget),
    ];
    prop_oneof![
        6 => (key(), 0..2u32, any::<bool>())
            .prop_map(|(key, args, mutating)| Step::Reserve { key, args, mutating }),
        5 => (key(), finished).prop_map(|(key, finished)| Step::Complete { key, finished }),
        1 => key().prop_map(Step::Forget),
        2 => (key(), 0..2u32).prop_map(|(key, args)| Step::Peek { key, args }),
        2 => (1..40u64).prop_map(Step::Pass),
    ]
}

#[derive(Debug, Clone, PartialEq)]
enum Is {
    Flight(u32),
    Body { body: u32, bytes: usize, until: u64 },
    Tombstone,
}

/// Everything in one list, in order of completion.
#[derive(Debug)]
struct Model {
    bounds: KeyBounds,
    now: u64,
    known: Vec<(usize, u32, bool, Is)>,
}

impl Model {
    /// Removes a body, or turns it into a tombstone.
    fn end_body(&mut self, at: usize) {
        match self.known[at].2 {
            true => self.known[at].3 = Is::Tombstone,
            false => drop(self.known.remove(at)),
        }
    }

    fn oldest_body(&self) -> Option<usize> {
        self.known.iter().position(|known| matches!(known.3, Is::Body { .. }))
    }

    fn expire(&mut self) {
        let now = self.now;
        let over = |known: &(_, _, _, Is)| matches!(known.3, Is::Body { until, .. } if until <= now);
        while let Some(at) = self.known.iter().position(over) {
            self.end_body(at);
        }
    }

    fn live(&self) -> usize {
        self.known.iter().filter(|known| known.3 != Is::Tombstone).count()
    }

    fn lasting(&self) -> usize {
        self.known.iter().filter(|known| known.2).count()
    }

    fn bytes(&self) -> usize {
        let bytes = |known: &(_, _, _, Is)| if let Is::Body { bytes, .. } = known.3 { bytes } else { 0 };
        self.known.iter().map(bytes).sum()
    }

    fn peek(&self, key: usize, args: u32) -> Peek<u32> {
        match self.known.iter().find(|known| known.0 == key) {
            None => Peek::Unknown,
            Some(known) if known.1 != args => Peek::Mismatch,
            Some((.., Is::Flight(_))) => Peek::InFlight,
            Some((.., Is::Body { body, .. })) => Peek::Replay(*body),
            Some((.., Is::Tombstone)) => Peek::AlreadyExecuted,
        }
    }

    fn reserve(&mut self, key: usize, args: u32, mutating: bool, flight: u32) -> Reserved<u32, u32> {
        match self.peek(key, args) {
            Peek::Mismatch => return Reserved::Mismatch,
            Peek::Replay(body) => return Reserved::Replay(body),
            Peek::AlreadyExecuted => return Reserved::AlreadyExecuted,
            Peek::InFlight => {
                let known = self.known.iter().find(|known| known.0 == key).unwrap();
                let Is::Flight(flight) = known.3 else { unreachable!() };
                return Reserved::Join(flight);
            }
            Peek::Unknown => {}
        }
        if mutating && self.lasting() >= self.bounds.tombstones_max {
            return Reserved::Overloaded;
        }
        if self.live() >= self.bounds.live_max {
            match self.oldest_body() {
                Some(at) => self.end_body(at),
                None if mutating => return Reserved::Overloaded,
                None => return Reserved::NotRetained,
            }
        }
        self.known.push((key, args, mutating, Is::Flight(flight)));
        Reserved::Lead(flight)
    }

    fn complete(&mut self, key: usize, finished: &Finished<u32>) {
        let is_flight = |known: &(usize, _, _, Is)| known.0 == key && matches!(known.3, Is::Flight(_));
        let Some(at) = self.known.iter().position(is_flight) else { return };
        let (_, args, mutating, _) = self.known.remove(at);
        match *finished {
            Finished::Forget => {}
            Finished::Keep { body, bytes, idempotent } => {
                let is = Is::Body { body, bytes, until: self.now + 60 };
                self.known.push((key, args, mutating && !idempotent, is));
                if bytes > self.bounds.bytes_max {
                    self.end_body(self.known.len() - 1);
                }
            }
        }
        while self.bytes() > self.bounds.bytes_max {
            let oldest = self.oldest_body().unwrap();
            self.end_body(oldest);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// ID-2, ID-3, ID-5, ID-6, ID-8: after any steps, the keys answer as the model does, and their bounds hold.
    #[test]
    fn the_keys_do_as_the_model_does(
        live_max in 1..5usize,
        bytes_max in 1..100usize,
        tombstones_max in 1..5usize,
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let bounds = KeyBounds { live_max, bytes_max, tombstones_max, ..KeyBounds::default() };
        let mut tree = Tree::new(bounds);
        let mut model = Model { bounds, now: 0, known: Vec::new() };
        for (number, step) in steps.into_iter().enumerate() {
            let number = u32::try_from(number).unwrap();
            match step {
                Step::Reserve { key, args, mutating } => prop_assert_eq!(
                    tree.reserve(KEYS[key], args, mutating, number),
                    model.reserve(key, args, mutating, number)
                ),
                Step::Complete { key, finished } => {
                    model.complete(key, &finished);
                    tree.complete(KEYS[key], finished);
                    let held = (model.live(), model.lasting(), model.bytes());
                    prop_assert_eq!(tree.held(), held);
                }
                Step::Forget(key) => {
                    model.complete(key, &Finished::Forget);
                    tree.forget(KEYS[key]);
                }
                Step::Peek { key, args } => prop_assert_eq!(tree.peek(KEYS[key], args), model.peek(key, args)),
                Step::Pass(seconds) => {
                    tree.pass(seconds);
                    model.now += seconds;
                    model.expire();
                }
            }
            let (live, lasting, bytes) = tree.held();
            prop_assert!(live <= live_max && lasting <= tombstones_max && bytes <= bytes_max);
        }
    }
}
