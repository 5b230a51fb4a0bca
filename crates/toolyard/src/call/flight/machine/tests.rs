//! The machine beside a model that keeps the same facts one by one, driven by events in any order.

use super::*;
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};

type Call = u32;

/// What can happen to a flight. The number picks one of its callers.
#[derive(Debug, Clone, Copy)]
enum Event {
    Joins { deadline: Option<u8> },
    Starts,
    Leaves { pick: usize, may_stay: bool },
    Detaches,
    PassesOn { pick: usize, waits: bool },
    IsLost,
    EndsAlone,
    Lands,
    IsShared,
    Reaches(Report),
}

fn event() -> impl Strategy<Value = Event> {
    let report =
        prop_oneof![Just(Report::Listed), Just(Report::Quiescent), Just(Report::ListedQuiescent)].boxed();
    prop_oneof![
        4 => proptest::option::of(0..9u8).prop_map(|deadline| Event::Joins { deadline }),
        2 => Just(Event::Starts),
        3 => (0..8usize, any::<bool>()).prop_map(|(pick, may_stay)| Event::Leaves { pick, may_stay }),
        1 => Just(Event::Detaches),
        2 => (0..8usize, any::<bool>()).prop_map(|(pick, waits)| Event::PassesOn { pick, waits }),
        1 => Just(Event::IsLost),
        1 => Just(Event::EndsAlone),
        1 => Just(Event::Lands),
        2 => Just(Event::IsShared),
        2 => report.prop_map(Event::Reaches),
    ]
}

/// A flight and what is true of it.
struct World {
    machine: Machine<Call>,
    began: Instant,
    callers: u32,
    leader: Option<Call>,
    followers: Vec<Call>,
    tied: Vec<Call>,
    attempts: u32,
    detached: bool,
    landed: bool,
    shared: bool,
    early: Option<Report>,
    deadlines: Vec<Option<u8>>,
    /// How often each caller was told that it is quiescent.
    quiet: BTreeMap<Call, u32>,
}

impl World {
    fn new() -> Self {
        let began = Instant::now();
        Self {
            machine: Machine::led_by(0, Some(began)),
            began,
            callers: 1,
            leader: Some(0),
            followers: Vec::new(),
            tied: Vec::new(),
            attempts: 0,
            detached: false,
            landed: false,
            shared: false,
            early: None,
            deadlines: vec![Some(0)],
            quiet: BTreeMap::new(),
        }
    }

    fn at(&self, deadline: Option<u8>) -> Option<Instant> {
        deadline.map(|after| self.began + Duration::from_secs(u64::from(after)))
    }

    fn is_open(&self) -> bool {
        self.leader.is_some() && !self.landed
    }

    /// Those who have ended reach what the flight has reached.
    fn tell(&mut self, told: &[Call], report: Report) {
        assert_eq!(told, self.tied, "all that are tied to it, once");
        if report != Report::Listed {
            told.iter().for_each(|call| *self.quiet.entry(*call).or_default() += 1);
            self.tied.clear();
            self.leader = None;
        }
    }

    /// Every follower gets the result; then they reach what the handler has reached meanwhile.
    fn share(&mut self, followers: Vec<Call>) {
        for call in followers {
            self.machine.add_ended(call);
            self.tied.push(call);
        }
        let expected = self.early.take();
        let shared = self.machine.shared();
        self.shared = true;
        assert_eq!(shared.as_ref().map(|(_, report)| *report), expected);
        if let Some((told, report)) = shared {
            self.tell(&told, report);
        }
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Joins { deadline } => {
                let call = self.callers;
                self.callers += 1;
                assert_eq!(self.machine.join(call, self.at(deadline)), self.is_open());
                if self.is_open() {
                    self.followers.push(call);
                    self.deadlines.push(deadline);
                }
            }
            Event::Starts if self.is_open() && !self.detached => {
                self.machine.started();
                self.attempts += 1;
            }
            Event::Leaves { pick, may_stay } => self.leave(pick, may_stay),
            Event::Detaches if self.is_open() && self.attempts > 0 => {
                let others = !self.followers.is_empty();
                assert_eq!(self.machine.detach(), others);
                self.detached |= others;
            }
            Event::PassesOn { pick, waits } if !self.landed => self.pass_on(pick, waits),
            // The task that takes it to its next leader is dropped: everyone is told so at once.
            Event::IsLost if self.is_open() && !self.detached => {
                let leader = self.leader.unwrap();
                self.machine.take_back(leader);
                self.followers.insert(0, leader);
                let followers: Vec<_> = self.machine.land().into();
                assert_eq!(followers, self.followers);
                self.followers.clear();
                self.landed = true;
                self.share(followers);
                let told = self.machine.abandon();
                self.tell(&told, Report::Quiescent);
            }
            Event::EndsAlone if self.is_open() && self.attempts > 0 => {
                let is_led = !self.detached && self.early.is_none();
                let alone = is_led && self.followers.is_empty() && self.tied.is_empty();
                assert_eq!(self.machine.ends_alone(), alone);
                self.leader = self.leader.filter(|_| !alone);
            }
            Event::Lands if self.is_open() && self.attempts > 0 => {
                let followers: Vec<_> = self.machine.land().into();
                assert_eq!(followers, self.followers);
                self.landed = true;
            }
            Event::IsShared if self.landed && !self.shared => {
                let followers = std::mem::take(&mut self.followers);
                self.share(followers);
            }
            Event::Reaches(report) if self.attempts > 0 && self.leader.is_some() => {
                let told = self.machine.reach(report);
                if self.shared {
                    self.tell(&told, report);
                } else {
                    assert!(told.is_empty(), "not before all have the result");
                    self.early = Some(if report == Report::Listed { report } else { Report::Quiescent });
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, pick: usize, may_stay: bool) {
        let me = u32::try_from(pick).unwrap() % self.callers;
        // The followers of a flight that has landed are on their way to their result.
        let at = (!self.landed).then(|| self.followers.iter().position(|call| *call == me)).flatten();
        let expected = match at {
            None if self.leader != Some(me) => Leaving::ResultComing,
            Some(_) if may_stay && self.detached && self.followers.len() == 1 => Leaving::Stays,
            _ if self.attempts == 0 => Leaving::Unstarted,
            _ => Leaving::EndsWithFlight { attempts: self.attempts },
        };
        assert_eq!(self.machine.leave(|call| *call == me, may_stay), expected);
        if let Some(at) = at.filter(|_| expected != Leaving::Stays) {
            self.followers.remove(at);
            if self.attempts > 0 {
                self.tied.push(me);
            }
        }
    }

    fn pass_on(&mut self, pick: usize, waits: bool) {
        let me = u32::try_from(pick).unwrap() % self.callers;
        let passed_on = self.machine.pass_on(|call| *call == me, waits);
        if self.leader != Some(me) {
            return assert_eq!(passed_on, PassedOn::Already);
        }
        self.detached = false;
        if self.followers.is_empty() {
            assert_eq!(passed_on, PassedOn::ToNobody);
            let told = self.machine.abandon();
            return self.tell(&told, Report::Quiescent);
        }
        let next = self.followers.remove(0);
        assert_eq!(passed_on, PassedOn::To(next), "the oldest");
        if waits && self.attempts > 0 {
            self.tied.push(me);
        }
        self.leader = Some(next);
    }

    fn agree(&self) {
        assert_eq!(self.machine.runs_in().copied(), self.leader);
        assert_eq!(self.machine.attempts(), self.attempts);
        let is_deserted = self.detached && !self.landed && self.followers.is_empty();
        assert_eq!(self.machine.is_deserted(), is_deserted && self.leader.is_some());
        let latest = self.deadlines.iter().copied().collect::<Option<Vec<_>>>();
        let latest = latest.and_then(|all| all.into_iter().max());
        assert_eq!(self.machine.deadline(), self.at(latest), "one caller without a deadline waits for ever");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// ID-3, ID-4, V2: whatever its callers do in whatever order, a flight runs in one call at a time, each caller is
    /// told once what becomes of it, and nobody is quiescent before the flight is.
    #[test]
    fn a_flight_does_as_the_model_does(events in proptest::collection::vec(event(), 1..80)) {
        let mut world = World::new();
        for event in events {
            world.step(event);
            world.agree();
        }
        prop_assert!(world.quiet.values().all(|times| *times == 1), "{:?}", world.quiet);
    }
}
