//! The line, compared with a naive model step by step.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Take,
    Enqueue,
    Leave(usize),
    Pause(u64),
    Due,
    Pass(u64),
    /// To the instant at which `due` wants to be called next.
    Next,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Take),
        6 => Just(Step::Enqueue),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => prop_oneof![0..2_000u64, 2_000..20_000u64, Just(1_000_000)].prop_map(Step::Pause),
        4 => Just(Step::Due),
        2 => prop_oneof![0..50u64, 50..2_000u64, 2_000..20_000u64].prop_map(Step::Pass),
        4 => Just(Step::Next),
    ]
}

/// Times are in milliseconds; credit is in tokens times the milliseconds of one.
#[derive(Debug, Clone)]
struct Model {
    now: u64,
    /// The milliseconds in which a token comes back, and the burst, if there is a rate.
    rate: Option<(u64, u64)>,
    credit: u64,
    paused_until: u64,
    /// Each waiter's number, and the last instant at which it may be served.
    line: Vec<(u32, u64)>,
}

impl Model {
    fn pass(&mut self, millis: u64) {
        self.now += millis;
        if let Some((interval, burst)) = self.rate {
            self.credit = (self.credit + millis).min(interval * burst);
        }
    }

    fn take_token(&mut self) -> bool {
        let interval = self.rate.map_or(0, |(interval, _)| interval);
        let is_there = self.now >= self.paused_until && self.credit >= interval;
        if is_there {
            self.credit -= interval;
        }
        is_there
    }

    /// How long a waiter with so many ahead has to wait, found by waiting.
    fn wait(&self, ahead: usize) -> u64 {
        let mut then = self.clone();
        then.pass(self.paused_until.saturating_sub(self.now));
        for _ in 0..=ahead {
            while !then.take_token() {
                then.pass(1);
            }
        }
        then.now - self.now
    }

    fn take(&mut self) -> TakeResult {
        if self.line.is_empty() && self.take_token() { TakeResult::Now } else { TakeResult::Wait }
    }

    fn enqueue(&mut self, number: u32) -> Result<(), u64> {
        match self.wait(self.line.len()) {
            wait @ 5_001.. => Err(wait),
            _ => {
                self.line.push((number, self.now + 5_000));
                Ok(())
            }
        }
    }

    fn due(&mut self) -> (Vec<u32>, Vec<u32>) {
        let now = self.now;
        let (mut granted, mut expired) = (Vec::new(), Vec::new());
        expired.extend(self.line.extract_if(.., |(_, until)| *until < now).map(|(number, _)| number));
        while !self.line.is_empty() && self.take_token() {
            granted.push(self.line.remove(0).0);
        }
        let paused = self.paused_until;
        let is_late = |until: u64| until <= now || until < paused;
        expired.extend(self.line.extract_if(.., |(_, until)| is_late(*until)).map(|(number, _)| number));
        (granted, expired)
    }
}

/// No stretch of time has more than a burst plus the tokens that come back in it.
fn check_rate(granted: &[u64], (interval, burst): (u64, u64)) {
    for (at, from) in granted.iter().enumerate() {
        for (more, to) in granted[at..].iter().enumerate() {
            assert!((more as u64) < burst + (to - from) / interval, "{granted:?}");
        }
    }
}

fn check(rate: Option<(u64, u64)>, steps: Vec<Step>) {
    let text = rate.map_or_else(String::new, |(interval, burst)| format!("1/{interval}ms burst {burst}"));
    let mut tool = Tool::new(&text);
    let credit = rate.map_or(0, |(interval, burst)| interval * burst);
    let mut model = Model { now: 0, rate, credit, paused_until: 0, line: Vec::new() };
    let (mut tickets, mut started, mut last) = (Vec::new(), Vec::new(), None);
    let in_ms = |span: Duration| u64::try_from(span.as_millis()).unwrap();
    for (number, step) in steps.into_iter().enumerate() {
        let number = u32::try_from(number).unwrap();
        match step {
            Step::Take => {
                let taken = tool.take();
                assert_eq!(taken, model.take());
                started.extend((taken == TakeResult::Now).then_some(model.now));
            }
            Step::Enqueue => {
                let ticket = tool.enqueue(number);
                assert_eq!(ticket.map(drop).map_err(|error| in_ms(error.retry_after)), model.enqueue(number));
                tickets.extend(ticket.map(|ticket| (ticket, number)));
            }
            Step::Leave(at) if !tickets.is_empty() => {
                let (ticket, number) = tickets.swap_remove(at % tickets.len());
                let was_in_line = model.line.iter().any(|waiter| waiter.0 == number);
                model.line.retain(|waiter| waiter.0 != number);
                assert_eq!(tool.queue.leave(ticket), was_in_line.then_some(number));
            }
            Step::Leave(_) => {}
            Step::Pause(millis) => {
                tool.pause_ms(millis);
                model.paused_until = model.paused_until.max(model.now + millis.min(300_000));
            }
            Step::Pass(millis) => {
                tool.pass_ms(millis);
                model.pass(millis);
            }
            Step::Due | Step::Next => {
                if let (Step::Next, Some(next)) =
                    (step, tool.due_and_compare(&mut model, &mut started, &mut last))
                {
                    model.pass(in_ms(next - tool.now));
                    tool.now = next;
                    let before = tool.queue.waiting();
                    tool.due_and_compare(&mut model, &mut started, &mut last);
                    assert!(tool.queue.waiting() < before, "there was a reason to look");
                }
            }
        }
        assert_eq!(tool.queue.waiting(), model.line.len());
    }
    if let Some(rate) = rate {
        check_rate(&started, rate);
    }
}

impl Tool {
    /// Runs `due` on both and compares; notes who started, and checks that they started in order.
    fn due_and_compare(
        &mut self,
        model: &mut Model,
        started: &mut Vec<u64>,
        last: &mut Option<u32>,
    ) -> Option<Instant> {
        let in_time: Vec<_> =
            model.line.iter().filter(|waiter| waiter.1 >= model.now).map(|waiter| waiter.0).collect();
        let due = self.due();
        assert_eq!((due.granted.clone(), due.expired), model.due());
        assert_eq!(due.retry_after.as_millis(), u128::from(model.wait(model.line.len())));
        let next = model.line.first().map(|waiter| waiter.1.min(model.now + model.wait(0)));
        assert_eq!(due.next, next.map(|next| self.start + Duration::from_millis(next)));
        for waiter in due.granted {
            assert!(in_time.contains(&waiter) && last.is_none_or(|last| last < waiter));
            started.push(model.now);
            *last = Some(waiter);
        }
        due.next
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// RT-3, RT-10, CC-9: first in, first out; never faster than the rate; no wait longer than allowed; a waiter that
    /// leaves is gone; and the line predicts what the model finds by waiting.
    #[test]
    fn the_line_does_as_the_model_does(
        rate in proptest::option::weighted(0.8, (prop_oneof![1..3_000u64, Just(1_000), Just(2_500)], 1..5u64)),
        steps in proptest::collection::vec(step(), 1..50),
    ) {
        check(rate, steps);
    }
}
