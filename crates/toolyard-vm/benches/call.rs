//! What a call costs, as a multiple of the least that it could: the same snapshot restored by hand, by QEMU's own
//! `-incoming`, and the same program run in it. Both are measured in turns, and the fastest of each counts.
//!
//! `cargo bench -p toolyard-vm --features host`

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod by_hand;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[path = "../tests/programs/found.rs"]
mod found;

/// How many calls are measured of each. As a test it is only shown to work.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const CALLS: usize = if cfg!(debug_assertions) { 2 } else { 20 };

/// How many times restoring by hand a call may take.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const GOAL: f64 = 1.5;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::{future::pending, time::Duration};
    use tokio::time::Instant;
    use toolyard_vm::{Call, End, Machines};
    toolyard_process::help_if_asked();
    let helper = toolyard_process::Helper::this_program()?;
    let Some(parts) = found::parts() else { return Ok(()) };
    let machines = Machines::new(parts.clone(), concat!(env!("CARGO_TARGET_TMPDIR"), "/machines"), helper);
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?.block_on(async {
        let ready = machines.ready(128).await?;
        let (mut least, mut by_hand) = (Duration::MAX, Duration::MAX);
        for _ in 0..CALLS {
            let began = Instant::now();
            let call = Call::new("/bin/busybox").arguments(["true"]);
            let ended = machines.run(128, call, pending()).await?;
            least = least.min(began.elapsed());
            assert_eq!(ended.end, End::Exited(0));
            let began = Instant::now();
            by_hand::call(&parts.qemu, &ready)?;
            by_hand = by_hand.min(began.elapsed());
        }
        let [by_hand, least] = [by_hand, least].map(|time| time.as_secs_f64() * 1e3);
        println!("micro_vm: restored by hand: {by_hand:.0} ms, 1.00 times restoring by hand");
        let ratio = least / by_hand;
        let judged = if ratio <= GOAL { "met" } else { "missed" };
        println!(
            "micro_vm: a call: {least:.0} ms, {ratio:.2} times restoring by hand (goal {GOAL}: {judged})"
        );
        Ok(())
    })
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}
