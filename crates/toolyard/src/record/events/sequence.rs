//! The numbers of a session's events, and how its events are published.

use super::{EventBus, feed::Feeding};
use crate::clock::{Clock, Stamp};
use parking_lot::{Mutex, MutexGuard};
use std::{mem, ops::Range, sync::Arc};
use tokio::time::Instant;
use toolyard_core::{AgentPath, CallId, Event, EventKind, SessionId};

/// Numbers the events of one session, from 1 and without a gap (OB-2).
#[derive(Debug, Default)]
pub(crate) struct Sequence(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    last: u64,
    /// The time of the last event.
    latest: Option<Timed>,
    /// The event that sinks were shown last. The next one is written over it, because most of both is the same.
    shown: Option<Box<Event>>,
    /// The tool's name of an event that sinks were shown before it: the next one is usually of the same tool.
    spare_name: Option<Arc<str>>,
}

/// An instant, and how events tell it.
#[derive(Debug, Clone, Copy)]
struct Timed {
    instant: Instant,
    stamp: Stamp,
}

/// When an event happened. Reading the clock costs more than to build an event, and who publishes one has often done
/// so a moment ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Now.
    Now,
    /// At this instant.
    At(Instant),
    /// With the last event of its session.
    WithLast,
}

/// The place of an event in its session.
#[derive(Debug, Default)]
pub(crate) struct EventPlace<'a> {
    pub(crate) turn: Option<u64>,
    pub(crate) batch: Option<u64>,
    pub(crate) run: Option<u32>,
    pub(crate) call_id: Option<&'a CallId>,
    pub(crate) index: Option<u32>,
    pub(crate) attempt: Option<u32>,
}

/// Publishes as many events of one agent as it was made for, all at one time: no other event of its session comes
/// between them. Subscribers that wait are woken once, when it is dropped.
pub(crate) struct Publisher<'a> {
    /// Subscribers get nothing else meanwhile.
    feeding: Option<Feeding<'a>>,
    numbered: MutexGuard<'a, Numbered>,
    // After the locks, so that nobody is woken under them.
    waking: Waking<'a>,
    session: &'a SessionId,
    agent: &'a AgentPath,
    at: Stamp,
    positions: Range<u64>,
}

/// Wakes subscribers in the end, if one waits for what was published.
struct Waking<'a> {
    bus: &'a EventBus,
    is_due: bool,
}

impl Drop for Publisher<'_> {
    fn drop(&mut self) {
        debug_assert!(self.positions.is_empty() || std::thread::panicking(), "positions have no gaps");
        self.stop_feeding();
    }
}

impl Drop for Waking<'_> {
    fn drop(&mut self) {
        if self.is_due {
            self.bus.wake_readers();
        }
    }
}

impl Sequence {
    /// Waits until nobody else publishes events of the session. Readers see its numbers in order, and times that never
    /// go back: what is published after an event happened no earlier. Exactly `count` events must follow, because their
    /// positions are taken.
    pub(crate) fn publisher<'a>(
        &'a self,
        bus: &'a EventBus,
        clock: &Clock,
        (session, agent): (&'a SessionId, &'a AgentPath),
        when: When,
        count: u32,
    ) -> Publisher<'a> {
        let mut numbered = self.0.lock();
        let at = numbered.time(clock, when);
        let (waking, positions) = (Waking { bus, is_due: false }, bus.take_positions(count));
        Publisher { feeding: None, numbered, waking, session, agent, at, positions }
    }
}

impl Numbered {
    /// The time of what is published next.
    fn time(&mut self, clock: &Clock, when: When) -> Stamp {
        let instant = match (when, self.latest) {
            (When::WithLast, Some(latest)) => return latest.stamp,
            (When::At(instant), _) => instant,
            (When::Now | When::WithLast, _) => clock.now(),
        };
        match self.latest {
            Some(latest) if instant <= latest.instant => latest.stamp,
            _ => {
                let stamp = clock.stamp(instant);
                self.latest = Some(Timed { instant, stamp });
                stamp
            }
        }
    }
}

impl Numbered {
    /// Keeps the name in what is no longer shown, unless there is one already.
    fn spare(&mut self, kind: EventKind) {
        if self.spare_name.is_none() {
            self.spare_name = kind.into_tool_name();
        }
    }
}

impl Publisher<'_> {
    /// The name of a tool for an event that is published next. Usually the events before have it, and then nothing is
    /// counted: they are not shown any more.
    pub(crate) fn name(&mut self, name: &Arc<str>) -> Arc<str> {
        let numbered = &mut *self.numbered;
        if numbered.spare_name.is_none()
            && let Some(shown) = &mut numbered.shown
        {
            // Another kind takes its place before anybody sees it again.
            let before = mem::replace(&mut shown.kind, EventKind::Attempt);
            numbered.spare(before);
        }
        numbered.spare_name.take_if(|spare| spare == name).unwrap_or_else(|| name.clone())
    }

    /// Numbers an event and passes it on.
    pub(crate) fn publish(&mut self, kind: EventKind, place: EventPlace<'_>) {
        self.numbered.last += 1;
        let bus = self.waking.bus;
        if bus.wants_shared() {
            // Made where it stays: an event is large.
            let mut event = Arc::new(Event::new(self.session.clone(), self.agent.clone(), kind));
            self.fill(Arc::get_mut(&mut event).expect("nobody else has it yet"), place);
            bus.show(&event);
            bus.write(&event);
            self.feed(event);
            return;
        }
        let mut event = match self.numbered.shown.take() {
            Some(mut shown) => {
                set(&mut shown.session, self.session, SessionId::as_str);
                set(&mut shown.agent, self.agent, AgentPath::as_str);
                let before = mem::replace(&mut shown.kind, kind);
                self.numbered.spare(before);
                shown
            }
            None => Box::new(Event::new(self.session.clone(), self.agent.clone(), kind)),
        };
        self.fill(&mut event, place);
        bus.show(&event);
        self.numbered.shown = Some(event);
    }

    /// Passes an event to the subscribers.
    fn feed(&mut self, event: Arc<Event>) {
        let bus = self.waking.bus;
        if self.feeding.is_none() {
            self.feeding = bus.feeding();
        }
        if let Some(feeding) = &mut self.feeding {
            feeding.push(event);
        }
        if bus.has_sinks() {
            self.stop_feeding(); // no code of an embedder runs while subscribers have to wait
        }
    }

    fn stop_feeding(&mut self) {
        if let Some(feeding) = self.feeding.take() {
            self.waking.is_due |= feeding.end();
        }
    }

    /// Sets what is not of the agent or the kind.
    fn fill(&mut self, event: &mut Event, place: EventPlace<'_>) {
        let position = self.positions.next().expect("it was made for as many");
        (event.seq, event.position) = (self.numbered.last, position);
        (event.wall_ms, event.mono_us) = (self.at.wall_ms, self.at.mono_us);
        (event.turn, event.batch, event.run) = (place.turn, place.batch, place.run);
        (event.index, event.attempt) = (place.index, place.attempt);
        match (&mut event.call_id, place.call_id) {
            (Some(before), Some(id)) => set(before, id, CallId::as_str),
            (before, id) => *before = id.cloned(),
        }
    }
}

/// Sets a shared text. Usually it is that text already, and then nothing is counted up and down.
fn set<T: Clone>(text: &mut T, to: &T, as_str: fn(&T) -> &str) {
    if !std::ptr::eq(as_str(text), as_str(to)) {
        text.clone_from(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    /// OB-2: times never go back within a session, whenever what is published is said to have happened.
    #[tokio::test(start_paused = true)]
    async fn times_never_go_back() {
        let (clock, mut numbered) = (Clock::starting_at(SystemTime::UNIX_EPOCH), Numbered::default());
        let started_at = clock.now();
        let mut time = |when| numbered.time(&clock, when).mono_us;
        assert_eq!(time(When::WithLast), 0, "there is no last one, so it is now");
        tokio::time::advance(Duration::from_micros(5)).await;
        assert_eq!(time(When::WithLast), 0);
        assert_eq!(time(When::At(started_at + Duration::from_micros(3))), 3);
        assert_eq!(time(When::At(started_at)), 3);
        assert_eq!(time(When::Now), 5);
        assert_eq!(time(When::WithLast), 5);
    }

    /// OB-2: an event has the name of its own tool, whichever names the events before it had.
    #[test]
    fn each_event_has_the_name_of_its_tool() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = shown.clone();
        let sink = move |event: &Event| seen.lock().push(event.kind.tool_name().cloned());
        let bus = EventBus::new(vec![Arc::new(sink)], Vec::new(), None, |_, _| unreachable!("no writer"));
        let (sequence, clock) = (Sequence::default(), Clock::starting_at(SystemTime::UNIX_EPOCH));
        let (session, agent) = (SessionId::from("s"), AgentPath::root());
        let names = ["a", "a", "b", "b", "a", "b"].map(Arc::<str>::from);
        for name in &names {
            let mut publisher = sequence.publisher(&bus, &clock, (&session, &agent), When::Now, 2);
            let tool_name = publisher.name(name);
            publisher.publish(EventKind::Suspended { tool_name }, EventPlace::default());
            publisher.publish(EventKind::Attempt, EventPlace::default());
        }
        let expected: Vec<_> = names.into_iter().flat_map(|name| [Some(name), None]).collect();
        assert_eq!(*shown.lock(), expected);
    }
}
