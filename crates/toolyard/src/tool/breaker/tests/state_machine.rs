//! The machine and a shared breaker, compared with the [`Model`] step by step.

use super::model::{Id, Model};
use super::*;
use proptest::prelude::*;
use std::sync::Arc;
use tokio::time::Instant;

/// What may happen to a breaker. Numbers choose among the attempts in flight.
#[derive(Debug, Clone)]
enum Step {
    Time(u64),
    Admit {
        timeout: u64,
    },
    End {
        at: usize,
        verdict: BreakerVerdict,
        chance: f64,
    },
    /// A cancelled attempt: its slot is dropped.
    Drop(usize),
    ForceOpen,
    ForceClosed,
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    let verdict = prop_oneof![3 => Just(Success), 6 => Just(Failure), 1 => Just(Ignored)];
    prop_oneof![
        6 => prop_oneof![4 => 1..4000_u64, 1 => 1..100_000_u64].prop_map(Step::Time),
        12 => (1..20_000_u64).prop_map(|timeout| Step::Admit { timeout }),
        16 => (any::<usize>(), verdict, 0.0..1.0)
            .prop_map(|(at, verdict, chance)| Step::End { at, verdict, chance }),
        2 => any::<usize>().prop_map(Step::Drop),
        1 => prop_oneof![Just(Step::ForceOpen), Just(Step::ForceClosed), Just(Step::Reset)],
    ]
}

fn policy() -> impl Strategy<Value = BreakerPolicy> {
    let numbers = (1..4_u32, 0.2..=1.0, proptest::option::of(1..4_u32), 0.0..0.9);
    let times = (1..30_u64, 1..20_u64, 1..6_u32);
    (numbers, times, prop_oneof![19 => Just(true), 1 => Just(false)]).prop_map(
        |((least, ratio, in_a_row, jitter), (window, open, times), enabled)| {
            let open = Duration::from_secs(open);
            let policy = BreakerPolicy::default().with_failures_min(least);
            let policy =
                policy.with_consecutive(in_a_row.filter(|in_a_row| *in_a_row > 0)).with_enabled(enabled);
            let policy = policy.with_window(Duration::from_secs(window)).with_ratio(ratio);
            policy.with_open(open, open * times).with_jitter(jitter)
        },
    )
}

struct Trio {
    machine: Breaker,
    shared: Arc<SharedBreaker>,
    model: Model,
    policy: BreakerPolicy,
    start: Instant,
    now: Duration,
    under_way: Vec<(Admission, Slot, Id)>,
}

impl Trio {
    fn new(policy: BreakerPolicy) -> Self {
        let start = Instant::now();
        Self {
            machine: Breaker::new(policy),
            shared: Arc::new(SharedBreaker::new(policy, start)),
            model: Model::new(policy),
            policy,
            start,
            now: Duration::ZERO,
            under_way: Vec::new(),
        }
    }

    fn clock(&self) -> impl Fn() -> Instant + use<> {
        let now = self.start + self.now;
        move || now
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Time(millis) => self.now += Duration::from_millis(millis),
            Step::Admit { timeout } => self.admit(Duration::from_millis(timeout)),
            Step::End { at, verdict, chance } => {
                if let Some((admission, slot, id)) = self.take(at) {
                    let moved = self.machine.record(self.now, admission, verdict, chance);
                    let shared = self.shared.record(slot, verdict, self.clock(), || chance);
                    assert_eq!((moved, shared), (self.model.record(self.now, id, verdict), moved));
                    self.check_open(moved);
                }
            }
            Step::Drop(at) => {
                if let Some((admission, slot, id)) = self.take(at) {
                    self.machine.give_back(admission);
                    drop(slot);
                    self.model.give_back(id);
                }
            }
            Step::ForceOpen => {
                let moved = self.machine.force_open();
                assert_eq!((moved, self.shared.force_open()), (self.model.force(ForcedOpen), moved));
            }
            Step::ForceClosed => {
                let moved = self.machine.force_closed();
                assert_eq!((moved, self.shared.force_closed()), (self.model.force(ForcedClosed), moved));
            }
            Step::Reset => {
                let moved = self.machine.reset();
                assert_eq!(self.shared.reset(), moved);
                assert_eq!(self.model.reset(), moved);
            }
        }
        self.compare();
    }

    fn take(&mut self, at: usize) -> Option<(Admission, Slot, Id)> {
        let many = self.under_way.len();
        (many > 0).then(|| self.under_way.swap_remove(at % many))
    }

    fn admit(&mut self, timeout: Duration) {
        let (expected, moves) = self.model.admit(self.now, timeout);
        let (admitted, moved) = self.machine.admit(self.now, timeout);
        let (slot, shared) = self.shared.admit(self.clock(), timeout);
        assert_eq!((moved, shared), (moves, moves));
        match (admitted, slot, expected) {
            (Ok(admission), Ok(slot), Ok(id)) => {
                assert_eq!(slot.is_probe(), admission.is_probe);
                self.under_way.push((admission, slot, id));
            }
            (admitted, slot, expected) => {
                let expected = expected.map(drop);
                assert_eq!((admitted.map(drop), slot.map(drop)), (expected, expected));
            }
        }
    }

    /// CB-4: the open time is as the rule says, apart from jitter; the model then takes over the machine's.
    fn check_open(&mut self, moved: Option<Transition>) {
        if moved.is_none_or(|moved| moved.to != Open) {
            return;
        }
        let open = self.machine.peek(self.now).unwrap_err();
        let share = open.retry_after.as_secs_f64() / self.model.nominal().as_secs_f64();
        assert!((share - 1.0).abs() <= self.policy.jitter() + 1e-6, "CB-4: {share}");
        self.model.open_until = self.now + open.retry_after;
    }

    fn compare(&mut self) {
        let state = self.model.state;
        assert_eq!((self.machine.state(), self.shared.state()), (state, state));
        let peek = self.model.peek(self.now);
        assert_eq!((self.machine.peek(self.now), self.shared.peek(self.clock())), (peek, peek));
    }

    fn compare_counts(&mut self) {
        let counts = self.model.counts(self.now);
        assert_eq!(self.machine.counts(self.now), counts);
        assert_eq!(self.shared.counts(self.clock()()), counts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// TS-1, CB-1 … CB-10, I8: transitions, refusals and counts agree with a naive model of the rules.
    #[test]
    fn a_breaker_agrees_with_a_plain_reading_of_the_rules(
        policy in policy(),
        steps in proptest::collection::vec(step(), 1..40),
        // How often counts are compared: tallied successes should be folded in sometimes by a failure, sometimes by
        // that.
        every in 1..40_usize,
    ) {
        let mut trio = Trio::new(policy);
        for (at, step) in steps.iter().enumerate() {
            trio.run(step);
            if at % every == 0 {
                trio.compare_counts();
            }
        }
        trio.compare_counts();
    }
}
