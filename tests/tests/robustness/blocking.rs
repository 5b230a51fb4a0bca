//! Blocking handlers whose threads are late, lost or never free (SC-6, V2).

use crate::{SECOND, Tasks, ends};
use futures::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use toolyard::{Blocking, Effect, ToolSpec};
use toolyard_tests::{Yard, call, scripted, shape, yard};

async fn yard_on(blocking: impl Blocking + 'static) -> Yard {
    yard(|builder, log| {
        let spec = ToolSpec::write("blocks").blocking().timeout(SECOND);
        builder.tool(scripted(spec, log)).blocking(Arc::new(blocking))
    })
    .await
}

/// SC-3: a job that its executor drops ends its call as `internal`, at once, and gives its lease back.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_dropped_is_internal() {
    struct Drops;
    impl Blocking for Drops {
        fn spawn(&self, _: BoxFuture<'static, ()>) {}
    }
    let yard = yard_on(Drops).await;
    let session = yard.engine.session("s");
    let from = Instant::now();
    let outcomes =
        ends(session.dispatch(vec![call("b", "blocks", 0, "ok"), call("s", "serial", 0, "ok")])).await;
    assert_eq!(shape(&outcomes), "b internal, s ok");
    assert_eq!(from.elapsed(), Duration::ZERO, "nothing is left to wait for");
    assert_eq!(outcomes[0].error().unwrap().effect, Effect::Unknown);
    yard.events.check();
}

/// SC-3, SC-6: a job whose thread comes free after its call has ended does not run, and its lease comes back.
#[tokio::test(start_paused = true)]
async fn a_job_that_comes_too_late_does_not_run() {
    struct Busy;
    impl Blocking for Busy {
        fn spawn(&self, job: BoxFuture<'static, ()>) {
            tokio::spawn(async {
                tokio::time::sleep(5 * SECOND).await;
                job.await;
            });
        }
    }
    let yard = yard_on(Busy).await;
    let session = yard.engine.session("s");
    let late = ends(session.call(call("b", "blocks", 0, "ok"))).await;
    assert_eq!(shape(&[late]), "b timeout");
    let from = Instant::now();
    assert!(ends(session.call(call("s", "serial", 0, "ok"))).await.success());
    assert_eq!(from.elapsed(), 4 * SECOND, "the lease is free when the job has been let go");
    assert_eq!(yard.log.started(), ["s"]);
    yard.events.check();
}

/// V2, CL-3: a batch with nothing left to start does not wait for a handler that was given up.
#[tokio::test(start_paused = true)]
async fn a_batch_with_nothing_left_does_not_wait_for_zombies() {
    let yard = yard_on(Tasks).await;
    let from = Instant::now();
    let batch = vec![call("z", "blocks", 3_600_000, "ok"), call("u", "unknown", 0, "ok")];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "z timeout, u not_found");
    assert_eq!(from.elapsed(), SECOND);
    tokio::time::sleep(7200 * SECOND).await;
    yard.events.check();
}

/// SC-5, SC-6: a cancelled batch ends with the grace of its handlers and not with their zombies.
#[tokio::test(start_paused = true)]
async fn a_cancelled_batch_does_not_wait_for_zombies() {
    let yard = yard(|builder, log| {
        let spec = ToolSpec::write("blocks").blocking().timeout(600 * SECOND);
        builder.tool(scripted(spec, log)).blocking(Arc::new(Tasks))
    })
    .await;
    let session = yard.engine.session("s");
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        session.cancel();
    };
    let from = Instant::now();
    let batch = vec![call("z", "blocks", 3_600_000, "ok"), call("w", "serial", 0, "ok")];
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), cancel);
    assert_eq!(shape(&outcomes), "z cancelled, w cancelled");
    assert_eq!(from.elapsed(), 31 * SECOND);
    let effects = outcomes.iter().map(|outcome| outcome.error().unwrap().effect).collect::<Vec<_>>();
    assert_eq!(effects, [Effect::Unknown, Effect::NotStarted]);
    tokio::time::sleep(7200 * SECOND).await;
    yard.events.check();
}
