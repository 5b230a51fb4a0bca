//! The machine, driven by events in any order beside a model of it.

use super::*;
use crate::{
    record::Foundation,
    tool::{rate::RateQueue, retry::Bucket},
};
use proptest::prelude::*;
use std::{sync::Arc, time::Duration};
use toolyard_admission::{Admission, Admitted, Ask, Need, Permit, Waiter};
use toolyard_core::{CallError, ErrorKind, Rate, ToolClass};

/// A batch that is never told anything.
struct Deaf;

impl Waiter for Deaf {
    fn start(self: Arc<Self>, _: u32, _: Permit<'_>) {}
    fn resume(self: Arc<Self>, _: u32) {}
    fn expire(self: Arc<Self>, _: u32) {}
    fn refuse(&self, _: u32) {}
}

/// What waits are made of: a permit, a place in the queue and one in the line for tokens.
#[derive(Clone, Copy)]
struct Parts {
    held: Held,
    queued: Ticket,
    in_line: rate::Ticket,
    now: Instant,
}

impl Parts {
    fn new() -> Self {
        let (admission, now) = (Admission::new([1, 1, 1], 10, 10), Instant::now());
        let need = Need::of(admission.open_class(ToolClass::Read), None, None);
        let ask = |index| admission.admit(&Ask::of_root(1, need), now, (&Arc::new(Deaf), index));
        let Ok(Admitted::Now(held)) = ask(0) else { panic!("the first has its permit") };
        let Ok(Admitted::Waiting { ticket: queued, .. }) = ask(1) else { panic!("the second waits") };
        let queue =
            RateQueue::new(Some(Rate::new(1, Duration::from_secs(1)).unwrap()), Duration::from_secs(60), now);
        let in_line = queue.enqueue(now, ()).unwrap();
        Self { held, queued, in_line, now }
    }

    /// The failed attempts of a call that has been tried this often.
    fn progress(&self, attempts: u32) -> Box<Progress> {
        Box::new(Progress {
            attempts,
            error: Box::new(CallError::new(ErrorKind::Transient, "again")),
            ready_at: self.now,
            granted_at: self.now,
            not_before: self.now,
            paid: Bucket::new(100).pay(ErrorKind::Transient).unwrap(),
            span: tracing::Span::none(),
            inherited: false,
            recorded: Foundation::default(),
        })
    }

    /// A bid after this many attempts.
    fn bid(&self, attempts: u32) -> Bid {
        Bid { ready_at: self.now, progress: (attempts > 0).then(|| self.progress(attempts)) }
    }
}

/// Everything that can happen to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Asks,
    Approved,
    RunBegins,
    Follows,
    TakesOver,
    JoinsLine,
    HasToken,
    Queues,
    Granted,
    Starts,
    Fails,
    BackedOff,
    Leaves,
    RecordsEnd,
    HandlerEnds,
    ToldOf,
    Ends,
    Take,
}

impl Event {
    const ALL: [Self; 18] = [
        Self::Asks,
        Self::Approved,
        Self::RunBegins,
        Self::Follows,
        Self::TakesOver,
        Self::JoinsLine,
        Self::HasToken,
        Self::Queues,
        Self::Granted,
        Self::Starts,
        Self::Fails,
        Self::BackedOff,
        Self::Leaves,
        Self::RecordsEnd,
        Self::HandlerEnds,
        Self::ToldOf,
        Self::Ends,
        Self::Take,
    ];
}

/// The phases of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Waiting,
    Asking { run_begun: bool },
    Following,
    InLine,
    Queued,
    BackingOff,
    Running,
    RecordingEnd,
    Ended,
    Taken,
}

/// The machine and the model.
struct Pair {
    life: Life,
    at: At,
    /// The attempts that have failed; they travel with the call.
    attempts: u32,
    /// The bid of a call on its way, which is out of its life.
    bid: u32,
    /// What handlers have ended with while the end of the call is being recorded.
    late: Vec<LateResult>,
    parts: Parts,
}

impl Pair {
    fn new() -> Self {
        Self {
            life: Life::new(),
            at: At::Waiting,
            attempts: 0,
            bid: 0,
            late: Vec::new(),
            parts: Parts::new(),
        }
    }

    /// Whether an event may be sent at all: the others are for callers that have seen where the call is.
    fn may(&self, event: Event) -> bool {
        match event {
            Event::Follows | Event::JoinsLine | Event::Queues | Event::Starts => self.at == At::Waiting,
            Event::Fails => matches!(self.at, At::Waiting | At::Running),
            Event::Leaves => !matches!(self.at, At::Running | At::RecordingEnd | At::Ended | At::Taken),
            Event::RecordsEnd => !matches!(self.at, At::RecordingEnd | At::Ended | At::Taken),
            Event::Ends => !matches!(self.at, At::Ended | At::Taken),
            _ => true,
        }
    }

    /// A bid that was moved out is the one that was moved in.
    fn takes_bid(&mut self, bid: Option<Bid>, from: At) {
        assert_eq!(bid.is_some(), self.at == from);
        if let Some(bid) = bid {
            assert_eq!(bid.progress.map_or(0, |progress| progress.attempts), self.attempts);
            self.bid = self.attempts;
            self.at = At::Waiting;
        }
    }

    fn step(&mut self, event: Event) {
        let (before, parts) = (self.at, self.parts);
        match event {
            Event::Asks => {
                assert_eq!(self.life.asks(true), before == At::Waiting);
                if before == At::Waiting {
                    self.at = At::Asking { run_begun: false };
                }
            }
            Event::Approved => {
                let run_begun = if let At::Asking { run_begun } = before { Some(run_begun) } else { None };
                assert_eq!(self.life.approved(), run_begun);
                if run_begun.is_some() {
                    self.at = At::Waiting;
                }
            }
            Event::RunBegins => {
                assert_eq!(self.life.run_begins(), before == At::Waiting);
                if let At::Asking { run_begun } = &mut self.at {
                    *run_begun = true;
                }
            }
            Event::Follows => {
                self.life.follows(parts.now);
                self.at = At::Following;
            }
            Event::TakesOver => {
                assert_eq!(self.life.takes_over(), (before == At::Following).then_some(parts.now));
                if before == At::Following {
                    self.at = At::Waiting;
                }
            }
            Event::JoinsLine => {
                self.life.joins_line(parts.in_line, parts.bid(self.attempts));
                self.at = At::InLine;
            }
            Event::HasToken => {
                let bid = self.life.token_granted();
                self.takes_bid(bid, At::InLine);
            }
            Event::Queues => {
                self.life.queues(parts.queued, parts.bid(self.attempts));
                self.at = At::Queued;
            }
            Event::Granted => {
                let bid = self.life.granted();
                self.takes_bid(bid, At::Queued);
            }
            Event::Starts => {
                self.life.starts(Started { held: parts.held, deadline: None });
                self.at = At::Running;
            }
            Event::Fails => {
                self.attempts += 1;
                assert!(self.life.failed(parts.progress(self.attempts)).is_none(), "no task has registered");
                self.at = At::BackingOff;
            }
            Event::BackedOff => {
                let progress = self.life.backed_off().map(|progress| progress.attempts);
                assert_eq!(progress, (before == At::BackingOff).then_some(self.attempts));
                if before == At::BackingOff {
                    self.at = At::Waiting;
                }
            }
            Event::Leaves => {
                let left = self.life.leaves();
                assert_eq!(left.was_asking, matches!(before, At::Asking { .. }));
                // A call on its way has its bid with it.
                let kept = matches!(before, At::InLine | At::Queued | At::BackingOff) && self.attempts > 0;
                assert_eq!(left.progress.map(|it| it.attempts), kept.then_some(self.attempts));
                self.at = At::Waiting;
            }
            Event::RecordsEnd => {
                assert!(self.life.records_end().is_none(), "no task has registered");
                self.at = At::RecordingEnd;
            }
            Event::HandlerEnds => {
                let result = LateResult { attempt: self.attempts, ok: self.attempts.is_multiple_of(2) };
                assert_eq!(self.life.holds_back(result), before == At::RecordingEnd);
                if before == At::RecordingEnd {
                    self.late.push(result);
                }
            }
            Event::ToldOf => assert_eq!(self.life.take_held_back(), std::mem::take(&mut self.late)),
            Event::Ends => {
                self.late.clear();
                let error = CallError::new(ErrorKind::Cancelled, "over").not_started();
                assert!(self.life.ends(Ending::unstarted(error)).is_none());
                self.at = At::Ended;
            }
            Event::Take => {
                assert_eq!(self.life.take().is_some(), before == At::Ended);
                if before == At::Ended {
                    self.at = At::Taken;
                }
            }
        }
    }

    /// The machine is where the model is, whatever is asked of it.
    fn agree(&mut self) {
        let (life, at, parts) = (&mut self.life, self.at, self.parts);
        assert_eq!(life.is_waiting(), at == At::Waiting);
        assert_eq!(life.is_asking(), matches!(at, At::Asking { .. }));
        assert_eq!(life.following(), (at == At::Following).then_some(parts.now));
        assert_eq!(life.is_in_line(), at == At::InLine);
        assert_eq!(life.is_queued(), at == At::Queued);
        assert_eq!(life.is_running(), at == At::Running);
        assert_eq!(life.running().is_some(), at == At::Running);
        assert_eq!(life.is_ended(), matches!(at, At::Ended | At::Taken));
        assert_eq!(life.is_over(), matches!(at, At::RecordingEnd | At::Ended | At::Taken));
        assert_eq!(life.ending().is_some(), at == At::Ended);
        let wait = match at {
            At::Waiting | At::Asking { .. } | At::BackingOff => Some(Wait::Alone),
            At::Queued => Some(Wait::Queue(parts.queued)),
            At::InLine => Some(Wait::Line(parts.in_line)),
            At::Following => Some(Wait::Flight(parts.now)),
            At::Running | At::RecordingEnd | At::Ended | At::Taken => None,
        };
        assert_eq!(life.stop(), wait);
        let limited = match at {
            At::InLine | At::Queued => Some(Limited::Attempt(parts.now)),
            At::Following | At::BackingOff => Some(Limited::Deadline),
            _ => None,
        };
        assert_eq!(life.limited(), limited);
    }
}

/// How far a call has come. Only a failed attempt takes it back, to its next one.
fn progress_of(at: At) -> u32 {
    match at {
        At::RecordingEnd => 1,
        At::Ended => 2,
        At::Taken => 3,
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// SC-3, SM-4: whatever happens in whatever order, a call is in one place, moves only from where it is, carries its
    /// failed attempts with it, holds back what comes while its end is recorded, and ends once.
    #[test]
    fn a_life_does_as_the_model_does(
        events in proptest::collection::vec(proptest::sample::select(&Event::ALL[..]), 1..60),
    ) {
        let mut pair = Pair::new();
        let mut ends = 0;
        for event in events {
            if !pair.may(event) {
                continue;
            }
            let before = progress_of(pair.at);
            pair.step(event);
            ends += u32::from(event == Event::Ends);
            pair.agree();
            prop_assert!(progress_of(pair.at) >= before, "a result is final");
        }
        prop_assert!(ends <= 1);
        prop_assert_eq!(pair.life.into_ending().is_some(), pair.at == At::Ended);
    }
}

/// SC-5: a running call has the waker of the task that drives it; whoever wakes or ends it takes it.
#[test]
fn the_waker_of_a_running_call_is_taken_once() {
    let (parts, task) = (Parts::new(), futures::task::noop_waker());
    let running = |life: &mut Life| {
        life.starts(Started { held: parts.held, deadline: None });
        assert!(life.running().unwrap().keep_waker(&task).is_none(), "it is the first");
        assert!(life.running().unwrap().keep_waker(&task).is_none(), "it is known already");
    };
    let mut life = Life::new();
    running(&mut life);
    assert!(life.failed(parts.progress(1)).is_some());
    assert!(life.backed_off().is_some());
    running(&mut life);
    assert!(life.running().unwrap().take_waker().is_some());
    assert!(life.running().unwrap().take_waker().is_none());
    assert!(life.running().unwrap().keep_waker(&task).is_none());
    assert!(life.ends(Ending::unstarted(CallError::new(ErrorKind::Internal, "over"))).is_some());
}

/// SM-4: a question that has not been shown leaves nothing to be told when its call ends, and shows no more then.
#[test]
fn a_question_that_is_not_shown_leaves_nothing_open() {
    let mut life = Life::new();
    assert!(life.asks(false));
    assert!(!life.run_begins());
    assert!(life.is_asking() && !life.leaves().was_asking);
    assert!(!life.shows());
    let mut life = Life::new();
    assert!(life.asks(false) && life.shows() && life.leaves().was_asking);
}
