//! What the table costs alone, without an engine.
//!
//! ```text
//!   cargo bench -p toolyard-admission
//!   free          a call is admitted and over, and nobody waits
//!   neighbours    calls of one batch wait behind one another, and are worked off
//!   sessions      as many sessions with a call each, in turns
//!   beside        a call is over while as many wait for a tool that stays in use
//! ```
//!
//! `cargo test` runs it on tiny numbers, so that it does not rot.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::time::Instant;
use toolyard_admission::{Admission, Admitted, Ask, Held, Need, Permit, Reach, UnitKind, Waiter};
use toolyard_core::ToolClass;

/// A batch whose calls are over as soon as they start.
#[derive(Default)]
struct Batch(AtomicU32);

impl Waiter for Batch {
    fn start(self: Arc<Self>, _: u32, permit: Permit<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        drop(permit);
    }

    fn resume(self: Arc<Self>, _: u32) {}

    fn expire(self: Arc<Self>, _: u32) {}

    fn refuse(&self, _: u32) {}
}

/// One read at a time, and what a plain one needs.
fn table() -> (Arc<Admission>, Need) {
    let admission = Admission::new([1, 1, 1], usize::MAX, usize::MAX);
    let read = Need::of(admission.open_class(ToolClass::Read), None, None);
    (admission, read)
}

fn hold(admission: &Arc<Admission>, need: Need) -> Held {
    admission.try_admit(0, need).expect("nothing runs yet").hand_over()
}

/// Puts one call in line.
fn wait(admission: &Arc<Admission>, ask: Ask, batch: &Arc<Batch>, index: u32) {
    let asked = admission.admit(&ask, Instant::now(), (batch, index));
    assert!(matches!(asked, Ok(Admitted::Waiting { .. })), "what it needs is held");
}

fn free(calls: u32) {
    let ((admission, read), batch) = (table(), Arc::new(Batch::default()));
    per_call("free", calls, || {
        for index in 0..calls {
            match admission.admit(&Ask::of_root(1, read), Instant::now(), (&batch, index)) {
                Ok(Admitted::Now(held)) => admission.finish(black_box(held), Instant::now()),
                _ => unreachable!("nobody waits"),
            }
        }
    });
}

fn in_line(name: &str, calls: u32, root: fn(u32) -> u64) {
    let ((admission, read), batch) = (table(), Arc::new(Batch::default()));
    let held = hold(&admission, read);
    per_call(name, calls, || {
        for index in 0..calls {
            wait(&admission, Ask::of_root(root(index), read), &batch, index);
        }
        admission.finish(held, Instant::now());
    });
    assert_eq!(batch.0.load(Ordering::Relaxed), calls);
}

fn beside(waiting: u32) {
    let (admission, batch) = (Admission::new([1, 1, 1], usize::MAX, usize::MAX), Arc::new(Batch::default()));
    let read = admission.open_class(ToolClass::Read);
    let tool = admission.open(UnitKind::Tool(Reach::Engine), 1);
    let _in_use = hold(&admission, Need::of(tool, None, None));
    let (read, narrow) = (Need::of(read, None, None), Need::of(read, Some(tool), None));
    for index in 0..waiting {
        wait(&admission, Ask::of_root(u64::from(index) + 1, narrow), &batch, index);
    }
    let calls = 1_000;
    per_call("beside", calls, || {
        for index in 0..calls {
            match admission.admit(&Ask::of_root(0, read), Instant::now(), (&batch, index)) {
                Ok(Admitted::Now(held)) => admission.finish(held, Instant::now()),
                _ => unreachable!("no other call reads"),
            }
        }
    });
    assert_eq!(batch.0.load(Ordering::Relaxed), 0, "those that wait go on waiting");
}

fn per_call(name: &str, calls: u32, work: impl FnOnce()) {
    let began = Instant::now();
    work();
    println!(
        "{name:<12} {calls:>8} calls {:>8.1} ns each",
        began.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    );
}

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let calls = if is_bench { 100_000 } else { 10 };
    free(calls);
    in_line("neighbours", calls, |_| 1);
    in_line("sessions", calls, u64::from);
    beside(calls / 10);
}
