//! JR-8, JR-10: a turn that had ended, or waited for its next batch, is taken up whole: what is sent to it in one life is found
//! with all that it has had in the lives before.

use crate::scene::Scene;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use toolyard::{
    Batch, BatchRecord, Call, CancelRecord, Confirmations, Dedupe, Durable, Engine, ErrorKind, ForkRecord,
    OpenTurn, Past, PastTurn, RecordError, Recorder, ResumeRecord, SessionId, SessionRecord, ToolContext,
    ToolFactory, ToolSpec, event::Epoch, tool_fn,
};
use toolyard_journal::Journal;

/// A journal to which no attempts and ends of calls come: as if the process was killed before each.
struct NoEnds(Journal);

impl Recorder for NoEnds {
    fn outlives_engine(&self) -> bool {
        true
    }

    fn needs_attempts_of_reads(&self) -> bool {
        self.0.needs_attempts_of_reads()
    }

    fn begin(&self, epoch: Epoch) {
        self.0.begin(epoch);
    }

    fn past(&self, session: &SessionId) -> Result<Past, RecordError> {
        self.0.past(session)
    }

    fn open_turns(&self) -> Result<Vec<OpenTurn>, RecordError> {
        self.0.open_turns()
    }

    fn turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, RecordError> {
        self.0.turn(session, turn)
    }

    fn session(&self, record: &SessionRecord<'_>) -> Durable {
        self.0.session(record)
    }

    fn fork(&self, record: &ForkRecord<'_>) -> Durable {
        self.0.fork(record)
    }

    fn batch(&self, record: &BatchRecord<'_>) -> Durable {
        self.0.batch(record)
    }

    fn resumed(&self, record: &ResumeRecord<'_>) -> Durable {
        self.0.resumed(record)
    }

    fn cancelled(&self, record: &CancelRecord<'_>) -> Durable {
        self.0.cancelled(record)
    }

    fn flush(&self) -> Durable {
        self.0.flush()
    }
}

/// A tool that changes something, and counts how often.
fn pay(runs: &Arc<AtomicU32>) -> impl ToolFactory + use<> {
    let runs = runs.clone();
    tool_fn(ToolSpec::write("pay"), move |_: serde_json::Value, _: ToolContext| {
        let runs = runs.clone();
        async move {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok("paid")
        }
    })
}

async fn engine(runs: &Arc<AtomicU32>, recorder: impl Recorder + 'static) -> Engine {
    let builder = Engine::builder().tool(pay(runs)).confirmations(Confirmations::auto());
    builder.recorder(recorder).build().await.unwrap()
}

fn call() -> Call {
    Call::new("1", "pay", "{}")
}

/// Takes the turn up, sends it this call again, and is killed before the end of that is recorded.
async fn sent_again(scene: &Scene, runs: &Arc<AtomicU32>) -> toolyard::Outcome {
    let journal = scene.open();
    let engine = engine(runs, NoEnds(journal.clone())).await;
    let resumed = engine.session("demo").resume(1).await.unwrap();
    let turn = resumed.turn().clone();
    resumed.finish().await;
    let again = turn.resend(Batch::new(vec![call()]).of_request("request")).await;
    engine.flush().await.unwrap();
    drop((turn, engine));
    journal.close().unwrap();
    again.into_iter().next().unwrap()
}

/// CL-8, JR-8: a response whose stream broke off, whose calls have ended, and that came again whole in another life, has its
/// results in the third one too.
#[tokio::test]
async fn what_is_sent_again_to_an_ended_turn_is_not_made_again() {
    let (scene, runs) = (Scene::new(), Arc::default());
    let journal = scene.open();
    let first = engine(&runs, journal.clone()).await;
    let turn = first.session("demo").turn();
    let open = turn.open_batch();
    open.push(call());
    assert!(open.finish().await[0].success());
    first.flush().await.unwrap();
    drop((turn, first));
    journal.close().unwrap();

    assert_eq!(sent_again(&scene, &runs).await.dedupe, Dedupe::Replayed);
    let journal = scene.open();
    let third = engine(&runs, journal.clone()).await;
    assert_eq!(third.open_turns().unwrap().len(), 1);
    let resumed = third.session("demo").resume(1).await.unwrap();
    let results = resumed.finish().await;
    assert_eq!((results.len(), runs.load(Ordering::SeqCst)), (2, 1), "{results:?}");
    assert!(results.concat().iter().all(|it| it.success() && it.dedupe == Dedupe::Replayed), "{results:?}");
    journal.close().unwrap();
    assert_eq!(scene.turn(1).batches.len(), 2);
    assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
}

/// JR-8: a cancel of a turn that nothing of was open holds in all lives to come.
#[tokio::test]
async fn a_turn_that_was_cancelled_while_it_waited_stays_so() {
    let (scene, runs) = (Scene::new(), Arc::default());
    let journal = scene.open();
    let first = engine(&runs, journal.clone()).await;
    let turn = first.session("demo").turn();
    turn.dispatch(Batch::new(vec![])).await;
    turn.cancel();
    first.flush().await.unwrap();
    drop((turn, first));
    journal.close().unwrap();

    let refused = sent_again(&scene, &runs).await;
    assert_eq!(refused.error().map(|error| error.kind), Some(ErrorKind::Cancelled), "{refused:?}");
    let journal = scene.open();
    let third = engine(&runs, journal.clone()).await;
    let resumed = third.session("demo").resume(1).await.unwrap();
    assert!(resumed.turn().is_cancelled());
    let results = resumed.finish().await.concat();
    let is_cancelled = |it: &toolyard::Outcome| it.error().is_some_and(|it| it.kind == ErrorKind::Cancelled);
    assert_eq!((results.len(), runs.load(Ordering::SeqCst)), (1, 0), "{results:?}");
    assert!(results.iter().all(is_cancelled), "{results:?}");
    journal.close().unwrap();
    assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
}

/// JR-8, HT-13: the cancel of a turn that was lost before its first batch is not that of the turn which has its number in the
/// next life.
#[tokio::test]
async fn a_cancel_is_not_that_of_another_turn() {
    let (scene, runs) = (Scene::new(), Arc::default());
    let journal = scene.open();
    let first = engine(&runs, journal.clone()).await;
    first.session("demo").turn().cancel();
    first.flush().await.unwrap();
    drop(first);
    journal.close().unwrap();

    let journal = scene.open();
    let second = engine(&runs, NoEnds(journal.clone())).await;
    let turn = second.session("demo").turn();
    assert_eq!(turn.number(), 1);
    turn.dispatch(Batch::new(vec![call()])).await;
    second.flush().await.unwrap();
    drop((turn, second));
    journal.close().unwrap();

    for _ in 0..2 {
        let journal = scene.open();
        let next = engine(&runs, NoEnds(journal.clone())).await;
        let resumed = next.session("demo").resume(1).await.unwrap();
        assert!(!resumed.turn().is_cancelled());
        let results = resumed.finish().await.concat();
        assert!(results.iter().all(toolyard::Outcome::success), "{results:?}");
        next.flush().await.unwrap();
        drop(next);
        journal.close().unwrap();
    }
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}
