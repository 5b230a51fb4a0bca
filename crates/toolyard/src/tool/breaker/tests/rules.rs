use super::*;

/// A breaker and the current time.
struct Bench {
    breaker: Breaker,
    now: Duration,
}

fn bench(policy: BreakerPolicy) -> Bench {
    Bench { breaker: Breaker::new(policy), now: Duration::ZERO }
}

/// A breaker that has opened and whose open time is just over.
fn probing(policy: BreakerPolicy) -> Bench {
    let mut bench = bench(policy);
    (0..5).for_each(|_| {
        bench.attempt(Failure);
    });
    assert_eq!(bench.breaker.state(), Open);
    bench.now += 30 * SECOND;
    bench
}

impl Bench {
    fn admit(&mut self) -> Admission {
        self.breaker.admit(self.now, TIMEOUT).0.unwrap()
    }

    fn end(&mut self, admission: Admission, verdict: BreakerVerdict) -> Option<Transition> {
        self.breaker.record(self.now, admission, verdict, EVEN)
    }

    fn attempt(&mut self, verdict: BreakerVerdict) -> Option<Transition> {
        let admission = self.admit();
        self.end(admission, verdict)
    }

    fn check_refused(&mut self, state: BreakerState, retry_after: Duration) {
        let refused = Err(OpenFor { state, retry_after });
        assert_eq!(self.breaker.peek(self.now), refused.map(|_: Admission| ()));
        assert_eq!(self.breaker.admit(self.now, TIMEOUT), (refused, None));
    }

    fn counts(&mut self) -> (u64, u64) {
        let counts = self.breaker.counts(self.now);
        (counts.successes, counts.failures)
    }
}

/// T8, CB-4, CB-5: opens at the fifth failure; after the open time it probes, one at a time, and either closes or
/// opens for twice as long.
#[test]
fn five_failures_open_it_and_a_probe_decides() {
    for (verdict, to) in [(Success, Closed), (Failure, Open)] {
        let mut bench = bench(BreakerPolicy::default());
        for _ in 0..4 {
            assert_eq!(bench.attempt(Failure), None);
            bench.now += 2 * SECOND;
        }
        assert_eq!(bench.attempt(Failure), moved(Closed, Open));
        bench.check_refused(Open, 30 * SECOND);
        bench.now += 30 * SECOND - MILLI;
        bench.check_refused(Open, MILLI);

        bench.now += MILLI;
        assert_eq!(bench.breaker.peek(bench.now), Ok(()));
        assert_eq!(bench.breaker.state(), Open, "CB-7: a peek changes nothing");
        let (probe, half_open) = bench.breaker.admit(bench.now, TIMEOUT);
        assert_eq!(half_open, moved(Open, HalfOpen));
        bench.check_refused(HalfOpen, SECOND);

        bench.breaker.give_back(probe.unwrap());
        let (next, half_open) = bench.breaker.admit(bench.now, TIMEOUT);
        assert_eq!(half_open, None);
        assert_eq!(bench.end(next.unwrap(), verdict), moved(HalfOpen, to));
        match to {
            Open => bench.check_refused(Open, 60 * SECOND),
            _ => assert_eq!(bench.attempt(Failure), None, "the failures from before are forgotten"),
        }
    }
}

/// T9, CB-6: attempts admitted while closed cause no transition later, be it open, half-open or closed again; they
/// still count.
#[test]
fn a_late_end_counts_and_moves_nothing() {
    let mut bench = bench(BreakerPolicy::default());
    let late: Vec<_> = (0..6).map(|_| bench.admit()).collect();
    (0..5).for_each(|_| {
        bench.attempt(Failure);
    });
    assert_eq!(bench.end(late[0], Failure), None);
    assert_eq!(bench.counts(), (0, 6));
    bench.now += 30 * SECOND;
    let probe = bench.admit();
    assert_eq!(bench.end(late[1], Failure), None);
    assert_eq!(bench.end(late[2], Success), None);
    assert_eq!(bench.breaker.state(), HalfOpen);
    assert_eq!(bench.end(probe, Success), moved(HalfOpen, Closed));
    for late in &late[3..] {
        assert_eq!(bench.end(*late, Failure), None);
    }
    (0..2).for_each(|_| assert_eq!(bench.end(late[0], Failure), None));
    assert_eq!((bench.breaker.state(), bench.counts()), (Closed, (0, 5)));
    assert_eq!(bench.attempt(Failure), moved(Closed, Open));
}

/// CB-2: it takes five failures, and half of all that count.
#[test]
fn it_opens_at_five_failures_that_are_half_of_all() {
    let mut few = bench(BreakerPolicy::default());
    (0..4).for_each(|_| assert_eq!(few.attempt(Failure), None));
    let mut many = bench(BreakerPolicy::default());
    (0..6).for_each(|_| assert_eq!(many.attempt(Success), None));
    (0..5).for_each(|_| assert_eq!(many.attempt(Failure), None));
    assert_eq!(many.attempt(Failure), moved(Closed, Open));
}

/// CB-2: the ratio is checked only when a failure is recorded.
#[test]
fn a_success_never_opens_it() {
    let mut bench = bench(BreakerPolicy::default());
    (0..6).for_each(|_| {
        bench.attempt(Success);
    });
    bench.now += 30 * SECOND;
    (0..5).for_each(|_| assert_eq!(bench.attempt(Failure), None));
    // The old successes leave the window, so five of six have failed now.
    bench.now += 30 * SECOND;
    assert_eq!(bench.attempt(Success), None);
    assert_eq!(bench.counts(), (1, 5));
    assert_eq!(bench.attempt(Failure), moved(Closed, Open));
}

/// CB-2: results older than the window do not count.
#[test]
fn failures_age() {
    let mut bench = bench(BreakerPolicy::default());
    for _ in 0..20 {
        assert_eq!(bench.attempt(Failure), None);
        bench.now += 15 * SECOND;
    }
    assert_eq!(bench.counts(), (0, 3));
}

/// CB-2, V4: ignored results are in neither count.
#[test]
fn ignored_ends_do_not_count() {
    let mut bench = bench(BreakerPolicy::default());
    (0..100).for_each(|_| assert_eq!(bench.attempt(Ignored), None));
    (0..4).for_each(|_| assert_eq!(bench.attempt(Failure), None));
    assert_eq!(bench.counts(), (0, 4));
    assert_eq!(bench.attempt(Failure), moved(Closed, Open));
}

/// CB-2: failures in a row open it, however many successes there were before.
#[test]
fn failures_in_a_row_open_it_where_that_is_asked_for() {
    let mut bench = bench(BreakerPolicy::default().with_consecutive(3));
    (0..100).for_each(|_| {
        bench.attempt(Success);
    });
    (0..2).for_each(|_| assert_eq!(bench.attempt(Failure), None));
    bench.attempt(Success);
    (0..2).for_each(|_| assert_eq!(bench.attempt(Failure), None));
    bench.attempt(Ignored);
    assert_eq!(bench.attempt(Failure), moved(Closed, Open));
}

/// CB-4: twice as long each time, at most 300 s; after a close it starts at 30 s again.
#[test]
fn it_stays_open_longer_each_time_up_to_a_bound() {
    let mut bench = probing(BreakerPolicy::default());
    for seconds in [60, 120, 240, 300, 300] {
        assert_eq!(bench.attempt(Failure), moved(HalfOpen, Open));
        bench.check_refused(Open, seconds * SECOND);
        bench.now += seconds * SECOND;
    }
    (0..100).for_each(|_| {
        assert_eq!(bench.attempt(Failure), moved(HalfOpen, Open));
        bench.now += 300 * SECOND;
    });
    assert_eq!(bench.attempt(Success), moved(HalfOpen, Closed));
    (0..5).for_each(|_| {
        bench.attempt(Failure);
    });
    bench.check_refused(Open, 30 * SECOND);
}

/// CB-4: a fifth less at the lowest chance, a fifth more at the highest.
#[test]
fn the_time_open_is_moved_by_a_fifth_either_way() {
    let check = |chance, seconds| {
        let mut bench = bench(BreakerPolicy::default());
        for _ in 0..5 {
            let admission = bench.admit();
            bench.breaker.record(bench.now, admission, Failure, chance);
        }
        let open = bench.breaker.peek(bench.now).unwrap_err();
        assert!(open.retry_after.abs_diff(seconds * SECOND) < MILLI, "{chance}: {open:?}");
    };
    check(0.0, 24);
    check(EVEN, 30);
    check(1.0 - f64::EPSILON, 36);
}

/// CB-5: a probe without a result loses its slot after the attempt timeout, and a later result of it changes nothing.
#[test]
fn the_slot_of_a_lost_probe_expires() {
    let mut bench = probing(BreakerPolicy::default());
    let lost = bench.admit();
    bench.now += TIMEOUT - MILLI;
    bench.check_refused(HalfOpen, MILLI);
    bench.now += MILLI;
    let next = bench.admit();
    assert!(next.is_probe);
    bench.check_refused(HalfOpen, SECOND);
    for late in [Success, Failure, Ignored] {
        assert_eq!(bench.end(lost, late), None);
    }
    bench.breaker.give_back(lost);
    bench.check_refused(HalfOpen, SECOND);
    assert_eq!(bench.end(next, Success), moved(HalfOpen, Closed));
}

/// CB-5: an ignored probe gives its slot back, once.
#[test]
fn an_ignored_probe_gives_its_slot_back() {
    let mut bench = probing(BreakerPolicy::default());
    let ignored = bench.admit();
    assert_eq!(bench.end(ignored, Ignored), None);
    assert_eq!((bench.breaker.state(), bench.breaker.peek(bench.now)), (HalfOpen, Ok(())));
    assert_eq!(bench.end(ignored, Success), None, "it is nobody's any more");
    let next = bench.admit();
    assert_eq!(bench.end(ignored, Ignored), None);
    bench.check_refused(HalfOpen, SECOND);
    assert_eq!(bench.end(next, Failure), moved(HalfOpen, Open));
}

/// CB-5, V3: a probe without an attempt timeout keeps its slot.
#[test]
fn a_probe_without_a_timeout_keeps_its_slot() {
    let mut bench = probing(BreakerPolicy::default());
    assert!(bench.breaker.admit(bench.now, Duration::MAX).0.is_ok());
    bench.now += 1_000_000 * SECOND;
    bench.check_refused(HalfOpen, SECOND);
}

/// CB-10: an operator's state holds until it is reset, and then the breaker starts afresh.
#[test]
fn an_operator_has_the_last_word() {
    let mut bench = bench(BreakerPolicy::default());
    assert_eq!(bench.breaker.force_closed(), moved(Closed, ForcedClosed));
    assert_eq!(bench.breaker.force_closed(), None);
    (0..20).for_each(|_| assert_eq!(bench.attempt(Failure), None));
    let passed = bench.admit();
    assert_eq!(bench.breaker.force_open(), moved(ForcedClosed, ForcedOpen));
    assert_eq!(bench.breaker.force_open(), None);
    assert_eq!(bench.end(passed, Success), None);
    bench.now += 1_000_000 * SECOND;
    bench.check_refused(ForcedOpen, 30 * SECOND);
    assert_eq!(bench.breaker.reset(), [Transition { from: ForcedOpen, to: Closed }]);
    assert_eq!(bench.counts(), (0, 0));
    assert!(bench.breaker.reset().is_empty());
}

/// CB-10: there is no transition from open to closed, so a reset passes through forced closed.
#[test]
fn a_reset_takes_legal_moves_only() {
    let moves = |from| [Transition { from, to: ForcedClosed }, Transition { from: ForcedClosed, to: Closed }];
    let mut bench = probing(BreakerPolicy::default());
    assert_eq!(bench.breaker.reset(), moves(Open));
    let mut bench = probing(BreakerPolicy::default());
    let probe = bench.admit();
    assert_eq!(bench.breaker.reset(), moves(HalfOpen));
    assert_eq!(bench.end(probe, Failure), None);
}

/// CB-6, CB-10: a reset of a closed breaker clears its counts, and attempts in flight cause no transition.
#[test]
fn a_reset_of_a_closed_one_forgets() {
    let mut bench = bench(BreakerPolicy::default());
    (0..4).for_each(|_| {
        bench.attempt(Failure);
    });
    let late = bench.admit();
    assert!(bench.breaker.reset().is_empty());
    assert_eq!(bench.counts(), (0, 0));
    (0..5).for_each(|_| assert_eq!(bench.end(late, Failure), None));
    assert_eq!(bench.attempt(Failure), moved(Closed, Open));
}

/// CB-10: a disabled breaker opens only for an operator.
#[test]
fn one_that_is_off_opens_for_an_operator_alone() {
    let mut bench = bench(BreakerPolicy::DISABLED.with_consecutive(1));
    (0..100).for_each(|_| assert_eq!(bench.attempt(Failure), None));
    assert_eq!(bench.breaker.force_open(), moved(Closed, ForcedOpen));
    bench.check_refused(ForcedOpen, 30 * SECOND);
}
