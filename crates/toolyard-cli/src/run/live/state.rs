//! What runs, waits and is retried, according to the events so far.

use super::progress::Progress;
use crate::display::clip;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use toolyard::{BreakerOf, BreakerState, Event, EventKind, PoolWidths, SessionId, ToolClass};

/// The number of breakers that are named.
const BREAKERS_MAX: usize = 3;

const NAME_CHARS: usize = 20;

/// A call, by its session, its turn and its index.
type CallKey = (SessionId, Option<u64>, Option<u32>);

/// The state that the view shows.
#[derive(Debug, Default)]
pub(super) struct LiveState {
    calls: u64,
    ended: u64,
    failed: u64,
    /// Of episodes.
    progress: Option<Progress>,
    /// Whether the calls of the turn arrive one by one.
    streamed: bool,
    run: u32,
    /// Calls that have started and not ended.
    called: HashMap<CallKey, Called>,
    /// Breakers that are open or half-open.
    open: BTreeSet<BreakerOf>,
    /// The maximum number of attempts, by tool.
    attempts_max: HashMap<String, u32>,
}

/// The owner of a breaker.
fn owner(of: &BreakerOf) -> String {
    match of {
        BreakerOf::Tool(name) => clip(name, NAME_CHARS),
        BreakerOf::Backend(name) => format!("back-end {}", clip(name, NAME_CHARS)),
        BreakerOf::Sandbox(sandbox) => format!("sandbox {}", sandbox.as_str()),
    }
}

#[derive(Debug)]
struct Called {
    tool: Arc<str>,
    class: ToolClass,
    since: Instant,
    /// When the next attempt is due, and its number; `None` while the call runs.
    retry: Option<(Instant, u32)>,
}

impl LiveState {
    pub(super) fn set_attempts_max(&mut self, attempts_max: HashMap<String, u32>) {
        self.attempts_max = attempts_max;
    }

    /// Shows turns from now on.
    pub(super) fn begin_turns(&mut self, done: u64, total: Option<u64>, now: Instant) {
        self.progress = Some(Progress::new(done, total, now));
    }

    pub(super) fn turn_ended(&mut self) {
        self.progress.iter_mut().for_each(Progress::turn_ended);
    }

    pub(super) fn turns_skipped(&mut self, turns: u64) {
        self.progress.iter_mut().for_each(|progress| progress.skip(turns));
    }

    /// How much is done, and of how much: turns of episodes, or calls.
    pub(super) fn position(&self) -> (u64, u64) {
        self.progress.as_ref().map_or((self.ended, self.calls), Progress::position)
    }

    pub(super) fn on_event(&mut self, event: &Event, now: Instant) {
        let key = || (event.session.clone(), event.turn, event.index);
        match &event.kind {
            EventKind::TurnStarted { calls } => {
                self.calls += calls.unwrap_or_default() as u64;
                self.streamed = calls.is_none();
            }
            EventKind::Received { .. } if self.streamed => self.calls += 1,
            EventKind::Called { class, tool_name, .. } => {
                self.run = event.run.unwrap_or_default();
                let tool = tool_name.clone();
                self.called.insert(key(), Called { tool, class: *class, since: now, retry: None });
            }
            EventKind::Attempt => self.set_retry(&key(), None),
            EventKind::Retry { delay_ms, .. } => {
                let next = event.attempt.unwrap_or_default() + 1;
                self.set_retry(&key(), Some((now + Duration::from_millis(*delay_ms), next)));
            }
            EventKind::BreakerTransition { to, .. } => {
                self.breaker_changed(BreakerOf::of_event(&event.kind), *to);
            }
            kind if kind.is_terminal() => {
                self.ended += 1;
                self.failed += u64::from(kind.is_failure());
                self.called.remove(&key());
            }
            _ => {}
        }
    }

    fn set_retry(&mut self, key: &CallKey, when: Option<(Instant, u32)>) {
        if let Some(called) = self.called.get_mut(key) {
            called.retry = when;
        }
    }

    fn breaker_changed(&mut self, breaker: Option<BreakerOf>, to: BreakerState) {
        let Some(breaker) = breaker else { return };
        match to {
            BreakerState::Closed | BreakerState::ForcedClosed => self.open.remove(&breaker),
            BreakerState::Open | BreakerState::HalfOpen | BreakerState::ForcedOpen => {
                self.open.insert(breaker)
            }
        };
    }

    pub(super) fn message(&self, widths: PoolWidths, now: Instant) -> String {
        if let Some(progress) = &self.progress {
            let (retries, breakers) = (self.retries(now).unwrap_or_default(), self.breakers());
            return format!("{}{}{retries}{breakers}", progress.text(self.failed, now), self.longest(now));
        }
        let running = || self.called.values().filter(|called| called.retry.is_none());
        let of = |class| running().filter(|running| running.class == class).count();
        let waiting = self.calls.saturating_sub(self.ended + running().count() as u64);
        format!(
            "run {}  read {}/{}  serial {}/1  concurrent {}/{}  waiting {waiting}{}{}",
            self.run,
            of(ToolClass::Read),
            widths.read,
            of(ToolClass::Serial),
            of(ToolClass::Concurrent),
            widths.concurrent,
            self.retries(now).unwrap_or_default(),
            self.breakers(),
        )
    }

    /// The call that has been running for the longest time.
    fn longest(&self, now: Instant) -> String {
        let Some(((session, turn, _), called)) = self.called.iter().min_by_key(|(_, called)| called.since)
        else {
            return String::new();
        };
        let (episode, tool) = (clip(session.as_str(), NAME_CHARS), clip(&called.tool, NAME_CHARS));
        let turn = turn.unwrap_or(1).saturating_sub(1); // as results count them
        let time = now.saturating_duration_since(called.since).as_secs_f64();
        format!("  longest: {tool} {time:.1}s ({episode} turn {turn})")
    }

    /// The call whose retry is due first, and the number of others.
    fn retries(&self, now: Instant) -> Option<String> {
        let retrying = || self.called.values().filter_map(|called| Some((called.retry?, called)));
        let ((at, attempt), next) = retrying().min_by_key(|((at, _), _)| *at)?;
        let most = self.attempts_max.get(next.tool.as_ref());
        let of = most.map_or_else(String::new, |most| format!(" of {most}"));
        let wait = at.saturating_duration_since(now).as_secs_f64();
        let more = match retrying().count() - 1 {
            0 => String::new(),
            more => format!(", {more} more"),
        };
        let tool = clip(&next.tool, NAME_CHARS);
        Some(format!("  {tool}: attempt {attempt}{of} in {wait:.1}s{more}"))
    }

    fn breakers(&self) -> String {
        if self.open.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self.open.iter().take(BREAKERS_MAX).map(owner).collect();
        let more = match self.open.len() - names.len() {
            0 => String::new(),
            more => format!(", {more} more"),
        };
        format!("  open: {}{more}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{AgentPath, ErrorKind, Sandbox, SessionId, SideEffects};

    struct View {
        state: LiveState,
        now: Instant,
    }

    impl View {
        fn new(calls: usize) -> Self {
            let mut state = LiveState::default();
            state.set_attempts_max(HashMap::from([("search".to_owned(), 3)]));
            let mut view = Self { state, now: Instant::now() };
            view.on_event(0, 0, EventKind::TurnStarted { calls: Some(calls) });
            view
        }

        fn on_event(&mut self, index: u32, attempt: u32, kind: EventKind) {
            let mut event = Event::new(SessionId::from("run"), AgentPath::root(), kind);
            (event.turn, event.index, event.attempt) = (Some(1), Some(index), Some(attempt));
            self.state.on_event(&event, self.now);
        }

        fn call(&mut self, index: u32, tool: &str) {
            let (tool_name, class) = (tool.into(), ToolClass::Read);
            self.on_event(
                index,
                0,
                EventKind::Called {
                    tool_name,
                    class,
                    side_effects: SideEffects::Read,
                    queue_ms: 0,
                    edited: false,
                    policy_version: 1,
                    approval: None,
                    digest: None,
                },
            );
            self.on_event(index, 1, EventKind::Attempt);
        }

        fn fail(&mut self, index: u32, attempt: u32, delay_ms: u64) {
            self.on_event(index, attempt, EventKind::Retry { delay_ms, code: ErrorKind::Transient });
        }

        fn breaker(&mut self, tool: &str, to: BreakerState) {
            let (from, tool_name) = (BreakerState::Closed, Some(tool.into()));
            self.on_event(
                0,
                0,
                EventKind::BreakerTransition { tool_name, backend: None, sandbox: None, from, to },
            );
        }

        fn shows(&self, later_ms: u64, expect: &str) {
            let now = self.now + Duration::from_millis(later_ms);
            assert_eq!(self.state.message(PoolWidths::default(), now), expect);
        }
    }

    /// RT-6: a call that waits for its next attempt does not count as running, and the view says when it is due.
    #[test]
    fn the_next_attempt_is_shown() {
        let mut view = View::new(3);
        view.call(0, "search");
        view.call(1, "other");
        view.shows(0, "run 0  read 2/20  serial 0/1  concurrent 0/10  waiting 1");
        view.fail(0, 1, 400);
        let one = "run 0  read 1/20  serial 0/1  concurrent 0/10  waiting 2  search: attempt 2 of 3 in";
        view.shows(0, &format!("{one} 0.4s"));
        view.shows(300, &format!("{one} 0.1s"));
        view.shows(900, &format!("{one} 0.0s"));
        view.fail(1, 1, 200);
        view.shows(
            0,
            "run 0  read 0/20  serial 0/1  concurrent 0/10  waiting 3  other: attempt 2 in 0.2s, 1 more",
        );
        view.on_event(1, 2, EventKind::Attempt);
        view.shows(0, &format!("{one} 0.4s"));
        view.on_event(0, 2, EventKind::Attempt);
        view.shows(0, "run 0  read 2/20  serial 0/1  concurrent 0/10  waiting 1");
    }

    /// CB-10: a breaker is shown until it is closed.
    #[test]
    fn open_breakers_are_shown() {
        let mut view = View::new(0);
        view.breaker("search", BreakerState::Open);
        let line = "run 0  read 0/20  serial 0/1  concurrent 0/10  waiting 0";
        view.shows(0, &format!("{line}  open: search"));
        let backend = Some("search".into());
        let (from, to) = (BreakerState::Closed, BreakerState::Open);
        view.on_event(
            0,
            0,
            EventKind::BreakerTransition {
                tool_name: None,
                backend: backend.clone(),
                sandbox: None,
                from,
                to,
            },
        );
        view.shows(0, &format!("{line}  open: search, back-end search"));
        view.on_event(
            0,
            0,
            EventKind::BreakerTransition { tool_name: None, backend, sandbox: None, from: to, to: from },
        );
        let sandbox = Some(Sandbox::Process);
        let of_sandbox =
            |from, to| EventKind::BreakerTransition { tool_name: None, backend: None, sandbox, from, to };
        view.on_event(0, 0, of_sandbox(from, to));
        view.shows(0, &format!("{line}  open: search, sandbox process"));
        view.on_event(0, 0, of_sandbox(to, from));
        view.breaker("search", BreakerState::HalfOpen);
        for other in ["a", "b", "c"] {
            view.breaker(other, BreakerState::ForcedOpen);
        }
        view.shows(0, &format!("{line}  open: a, b, c, 1 more"));
        for other in ["a", "b", "c", "search"] {
            view.breaker(other, BreakerState::Closed);
        }
        view.shows(0, line);
    }
}
