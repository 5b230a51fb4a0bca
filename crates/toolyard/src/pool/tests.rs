use super::*;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tokio::time::Instant;
use toolyard_admission::{Admission, Ask, Need, Permit, Waiter};
use toolyard_core::ToolClass;

struct Yard {
    admission: Arc<Admission>,
    leases: Arc<PoolLeases>,
    pools: Pools,
    failed: Arc<AtomicBool>,
}

async fn yard() -> Yard {
    let (admission, leases) = (Admission::new([20, 1, 10], 20_000, 20_000), PoolLeases::new([20, 1, 10]));
    let failed = Arc::new(AtomicBool::new(false));
    let on_failure = failed.clone();
    let pools =
        Pools::start(admission.clone(), leases.clone(), move || on_failure.store(true, Ordering::SeqCst));
    let pools = pools.await.unwrap();
    Yard { admission, leases, pools, failed }
}

/// RA-3, RA-5: a pool that dies is restarted with the settings it had.
#[tokio::test(start_paused = true)]
async fn a_pool_that_dies_is_restarted_with_its_lease() {
    let yard = yard().await;
    let unit = yard.admission.open_class(ToolClass::Read);
    let permit = yard.admission.try_admit(1, Need::of(unit, None, None)).unwrap();
    assert_eq!(yard.pools.resize(ToolClass::Read, 5).await, Ok(20));
    yard.pools.kill(Victim::Pool(ToolClass::Read));
    let status = yard.pools.status().await.unwrap();
    let read = status[ToolClass::Read.index()];
    assert_eq!((read.width, read.running, read.restarts), (5, 1, 1));
    assert_eq!(yard.leases.get(ToolClass::Read).state, PoolState::Running);
    drop(permit);
    assert_eq!(yard.pools.status().await.unwrap()[0].running, 0);
}

/// A batch whose calls only count their starts.
#[derive(Default)]
struct Counts(AtomicUsize);

impl Waiter for Counts {
    fn start(self: Arc<Self>, _: u32, permit: Permit<'_>) {
        let _ = permit.hand_over(); // it runs for ever
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn resume(self: Arc<Self>, _: u32) {}

    fn expire(self: Arc<Self>, _: u32) {}

    fn refuse(&self, _: u32) {}
}

/// CC-3, RA-2, RA-5: a resize is answered before all that it unblocks is granted. If the pool dies meanwhile, its
/// successor grants the rest.
#[tokio::test(start_paused = true)]
async fn a_pool_that_dies_between_slices_leaves_nobody_behind() {
    const WAITING: u32 = 10_000;
    let yard = yard().await;
    let unit = yard.admission.open_class(ToolClass::Read);
    let need = Need::of(unit, None, None);
    let permits: Vec<_> = (0..20).map(|_| yard.admission.try_admit(1, need).unwrap()).collect();
    let batch = Arc::new(Counts::default());
    for index in 0..WAITING {
        assert!(yard.admission.admit(&Ask::of_root(1, need), Instant::now(), (&batch, index)).is_ok());
    }
    assert_eq!(yard.pools.resize(ToolClass::Read, 20_000).await, Ok(20));
    yard.pools.kill(Victim::Pool(ToolClass::Read));
    let started = batch.0.load(Ordering::Relaxed);
    assert!(started < WAITING as usize, "{started} were granted before the answer");
    while yard.pools.status().await.unwrap()[0].queued > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(batch.0.load(Ordering::Relaxed), WAITING as usize);
    assert_eq!(yard.pools.status().await.unwrap()[0].restarts, 1);
    drop(permits);
}

/// RA-5: a pool that dies a fourth time within a minute is given up, once.
#[tokio::test(start_paused = true)]
async fn a_pool_that_keeps_dying_is_given_up() {
    let yard = yard().await;
    for restarts in 1..=3 {
        yard.pools.kill(Victim::Pool(ToolClass::Serial));
        let status = yard.pools.status().await.unwrap();
        assert_eq!(status[ToolClass::Serial.index()].restarts, restarts);
        assert!(!yard.failed.load(Ordering::SeqCst));
    }
    yard.pools.kill(Victim::Pool(ToolClass::Serial));
    assert_eq!(yard.pools.status().await, Err(PoolError::Away { class: ToolClass::Serial }));
    assert!(yard.failed.load(Ordering::SeqCst));
    assert_eq!(yard.leases.get(ToolClass::Serial).state, PoolState::Failed);
}

/// RA-3, RA-5: a supervisor that dies is restarted with its pools, which keep the settings they had.
#[tokio::test(start_paused = true)]
async fn a_supervisor_that_dies_is_restarted_with_its_pools() {
    let yard = yard().await;
    yard.pools.resize(ToolClass::Read, 5).await.unwrap();
    yard.pools.pause(ToolClass::Serial, true).await.unwrap();
    yard.pools.kill(Victim::Supervisor);
    let status = yard.pools.status().await.unwrap();
    assert_eq!(
        status.iter().map(|pool| (pool.width, pool.restarts)).collect::<Vec<_>>(),
        [(5, 1), (1, 1), (10, 1)]
    );
    assert_eq!(status[1].state, PoolState::Paused);
    yard.pools.pause(ToolClass::Serial, false).await.unwrap();
    yard.pools.stop().await;
    assert!(!yard.failed.load(Ordering::SeqCst));
}

/// RA-5: a supervisor that dies a fourth time within a minute is given up, and all pools with it.
#[tokio::test(start_paused = true)]
async fn a_supervisor_that_keeps_dying_is_given_up() {
    let yard = yard().await;
    for _ in 0..4 {
        assert!(!yard.failed.load(Ordering::SeqCst));
        yard.pools.kill(Victim::Supervisor);
        let _ = yard.pools.status().await;
    }
    assert!(yard.failed.load(Ordering::SeqCst));
    assert!(ToolClass::ALL.iter().all(|class| yard.leases.get(*class).state == PoolState::Failed));
    yard.pools.stop().await;
}

/// RA-5: deaths far apart do not add up.
#[tokio::test(start_paused = true)]
async fn old_deaths_are_forgotten() {
    let yard = yard().await;
    for _ in 0..6 {
        yard.pools.kill(Victim::Pool(ToolClass::Concurrent));
        yard.pools.status().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(25)).await;
    }
    assert!(!yard.failed.load(Ordering::SeqCst));
}

/// CL-6: the serial lease has width 1, and no pool has width 0.
#[tokio::test(start_paused = true)]
async fn a_width_that_makes_no_sense_is_refused() {
    let yard = yard().await;
    for (class, width) in [(ToolClass::Read, 0), (ToolClass::Serial, 2)] {
        assert_eq!(yard.pools.resize(class, width).await, Err(PoolError::Width { class, width }));
    }
}

/// RA-5: a pool that is stopped has not died: nothing is restarted and nothing is given up.
#[tokio::test(start_paused = true)]
async fn a_pool_that_is_stopped_is_not_restarted() {
    let yard = yard().await;
    yard.pools.stop().await;
    let restarts = ToolClass::ALL.map(|class| yard.leases.get(class).restarts);
    assert_eq!(restarts, [0, 0, 0]);
    assert!(!yard.failed.load(Ordering::SeqCst));
    assert_eq!(yard.pools.status().await, Err(PoolError::Away { class: ToolClass::Read }));
}
