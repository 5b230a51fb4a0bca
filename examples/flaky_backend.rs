//! Forty calls to a back-end that fails three times in ten, allows ten attempts a second, and is down for a while.
//! Transient failures are retried, the rate makes calls wait, the breaker spares the back-end while it is down, and
//! every call is answered.
//!
//! ```text
//!   a call every 90 ms ─► rate: 10/s ─► breaker ─► back-end ──► answer
//!                          ▲                          │ transient failure
//!                          └──── 0.15 to 0.6 s ───────┘ up to 3 attempts
//! ```
//!
//! The output shows waits for a token (·), attempts that failed (▒), the backoff before the next one (╌), attempts that
//! were the last (█), and calls that ended without an answer from the back-end (×): while the breaker is open, they are
//! refused at once. After too many failed retries, there are no more retries for a time.
//!
//! Time is tokio's paused clock, which jumps to the next timer, and randomness comes from a seed, so the example takes
//! no time and prints the same each time. Without `start_paused` it takes some seconds.

use futures::future::join_all;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use toolyard::{
    BreakerPolicy, BreakerState, Call, Drain, Engine, Event, EventKind, Outcome, RetryPolicy, ToolContext,
    ToolError, ToolFactory, ToolSpec, tool_fn,
};

const CALLS: u32 = 40;
const EVERY: Duration = Duration::from_millis(90);
const SEED: u64 = 8;

/// The period in which the back-end is down.
const DOWN: [Duration; 2] = [Duration::from_millis(1400), Duration::from_millis(2100)];

/// A number from 0 to 99, always the same for a given call and attempt.
fn roll(call: &str, attempt: u32) -> u64 {
    let bytes = call.bytes().chain([u8::try_from(attempt).unwrap_or(u8::MAX)]);
    let mixed = bytes.fold(SEED ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (mixed ^ (mixed >> 32)) % 100
}

/// The tool that queries the back-end.
fn search(began: Instant) -> Result<impl ToolFactory, Box<dyn std::error::Error>> {
    let touchy = BreakerPolicy::default()
        .with_window(Duration::from_secs(1))
        .with_failures_min(4)
        .with_ratio(0.75)
        .with_open(Duration::from_millis(400), Duration::from_secs(2));
    let patient =
        RetryPolicy::default().with_delays(Duration::from_millis(150), 2.5, Duration::from_millis(600));
    // A tool that only reads may be retried, whatever the failure.
    let spec = ToolSpec::read("search").rate("10/s burst 4").retry(patient).breaker(touchy);
    Ok(tool_fn(spec, move |(): (), cx: ToolContext| async move {
        let is_down = (DOWN[0]..DOWN[1]).contains(&began.elapsed());
        let chance = roll(cx.call_id().as_str(), cx.attempt());
        sleep(Duration::from_millis(60 + chance)).await;
        match chance {
            _ if is_down => Err(ToolError::transient("connection refused")),
            0..30 => Err(ToolError::transient("HTTP 503")),
            _ => Ok("found"),
        }
    }))
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let seen = Arc::new(Mutex::new(Vec::<Event>::new()));
    let sink = seen.clone();
    let engine = Engine::builder()
        .tool(search(began)?)
        .seed(SEED)
        .events(move |event: &Event| sink.lock().push(event.clone()))
        .build()
        .await?;
    let session = engine.session("demo");
    let calls = (0..CALLS).map(|n| {
        let session = &session;
        async move {
            sleep(EVERY * n).await;
            session.call(Call::new(format!("call_{n:02}"), "search", "{}")).await
        }
    });
    let outcomes = join_all(calls).await;
    engine.shutdown(Drain::default()).await;
    let events = std::mem::take(&mut *seen.lock());
    Timeline::of(&events).print(&outcomes);
    summary(&outcomes);
    Ok(())
}

fn summary(outcomes: &[Outcome]) {
    let mut kinds = BTreeMap::<String, usize>::new();
    for outcome in outcomes {
        let end = match outcome.error() {
            None if outcome.attempts > 1 => "ok after another attempt".to_owned(),
            None => "ok at the first attempt".to_owned(),
            Some(error) => format!("{}, advice: {}", error.kind, error.advice),
        };
        *kinds.entry(end).or_default() += 1;
    }
    println!("{CALLS} calls, {} answers:", outcomes.len());
    kinds.iter().for_each(|(end, count)| println!("  {count:>2} {end}"));
}

/// The events, drawn in cells of equal time.
struct Timeline<'a> {
    events: &'a [Event],
    whole_us: u64,
}

const WIDTH: usize = 64;

impl<'a> Timeline<'a> {
    fn of(events: &'a [Event]) -> Self {
        let ends = events.iter().filter(|event| event.call_id.is_some());
        Self { events, whole_us: ends.map(|event| event.mono_us).max().unwrap_or_default().max(1) }
    }

    fn cell(&self, at_us: u64) -> usize {
        usize::try_from(at_us * WIDTH as u64 / self.whole_us).unwrap_or(WIDTH).min(WIDTH - 1)
    }

    /// Fills the cells from one time to another.
    fn draw(&self, line: &mut [char], from_us: u64, to_us: u64, with: char) {
        line[self.cell(from_us)..=self.cell(to_us)].fill(with);
    }

    fn print(&self, outcomes: &[Outcome]) {
        println!(
            "{:8} 0{:>end$.1} s",
            "",
            Duration::from_micros(self.whole_us).as_secs_f64(),
            end = WIDTH - 3
        );
        let mut down = vec![' '; WIDTH];
        let [from, to] = DOWN.map(|at| u64::try_from(at.as_micros()).unwrap_or(u64::MAX));
        self.draw(&mut down, from, to, '─');
        println!("{:8} {}  the back-end is down", "", down.into_iter().collect::<String>());
        println!("{:8} {}  the breaker: █ open, ▒ half-open", "", self.breaker());
        for outcome in outcomes {
            let attempts = match outcome.attempts {
                0 => String::new(),
                1 => ", 1 attempt".to_owned(),
                more => format!(", {more} attempts"),
            };
            let end = outcome.error().map_or("ok", |error| error.kind.code());
            let why = outcome.error().and_then(|error| error.retry_stopped);
            let why = why.map_or_else(String::new, |why| format!(", no retry: {why:?}"));
            println!("{:8} {}  {end}{attempts}{why}", outcome.call_id.as_str(), self.call(outcome));
        }
    }

    fn breaker(&self) -> String {
        let (mut line, mut since) = (vec![' '; WIDTH], None);
        for event in self.events {
            let EventKind::BreakerTransition { to, .. } = &event.kind else { continue };
            if let Some((from_us, with)) = since {
                self.draw(&mut line, from_us, event.mono_us, with);
            }
            since = match to {
                BreakerState::Open => Some((event.mono_us, '█')),
                BreakerState::HalfOpen => Some((event.mono_us, '▒')),
                _ => None,
            };
        }
        if let Some((from_us, with)) = since {
            self.draw(&mut line, from_us, self.whole_us, with);
        }
        line.into_iter().collect()
    }

    fn call(&self, outcome: &Outcome) -> String {
        let (mut line, mut since) = (vec![' '; WIDTH], (0, ' '));
        for event in self.events.iter().filter(|event| event.call_id.as_ref() == Some(&outcome.call_id)) {
            let at = event.mono_us;
            let next = match &event.kind {
                EventKind::Received { .. } => '·',
                EventKind::Attempt => '█',
                EventKind::Retry { .. } => '╌',
                kind if kind.is_terminal() => ' ',
                _ => continue,
            };
            let failed = matches!(event.kind, EventKind::Retry { .. });
            self.draw(&mut line, since.0, at, if failed { '▒' } else { since.1 });
            if event.kind.is_failure() {
                line[self.cell(at)] = '×';
            }
            since = (at, next);
        }
        line.into_iter().collect()
    }
}
