//! JR-9: questions and answers in the next life of an engine.

use super::resume_in;
use parking_lot::Mutex;
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolyard::{
    Answer, ApprovalRequest, Approver, Call, Confirmations, ErrorKind, FsMode, OnInterrupted, PathEscape,
    PathScope, SessionOptions, ToolSpec, async_trait,
};
use toolyard_tests::{Ledger, Yard, call, kinds, scripted, yard};

/// Answers after a second, and notes which requests it was asked.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Approver for Slow {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        self.0.lock().push(format!("{} {}", request.id(), request.call_id()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        Answer::allow("ada")
    }
}

async fn asks(ledger: &Ledger, approver: &Slow, version: &str) -> Yard {
    yard(|builder, log| {
        let mut spec = ToolSpec::write("sends");
        spec.version = version.to_owned();
        builder
            .recorder(ledger.clone())
            .tool(scripted(spec, log))
            .confirmations(Confirmations::default())
            .approver(approver.clone())
            .on_interrupted(OnInterrupted::Continue)
    })
    .await
}

/// What is left after so many milliseconds of a call that is asked about for a second and takes another.
async fn left(ms: u64, approver: &Slow) -> Ledger {
    let ledger = Ledger::default();
    let yard = asks(&ledger, approver, "1").await;
    let session = yard.engine.session("s");
    tokio::spawn(async move {
        session.dispatch(vec![call("a", "sends", 1000, "ok"), call("b", "sends", 1000, "ok")]).await
    });
    tokio::time::sleep(Duration::from_millis(ms)).await;
    ledger.crashed()
}

/// A question that was open is asked again, under its name.
#[tokio::test(start_paused = true)]
async fn an_open_question_is_asked_again() {
    let (before, after) = (Slow::default(), Slow::default());
    let left = left(500, &before).await;
    let yard = asks(&left, &after, "1").await;
    let outcomes = resume_in(&yard.engine.session("s"), 1).await;
    assert_eq!(kinds(&outcomes), [None, None]);
    assert_eq!(*after.0.lock(), *before.0.lock());
    yard.events.check();
}

/// An answer that was given holds, if what would run is what it is about; a call that was approved and running is not
/// started again.
#[tokio::test(start_paused = true)]
async fn an_answer_holds_for_what_it_is_about() {
    let (before, after) = (Slow::default(), Slow::default());
    let left = left(1500, &before).await;
    let yard = asks(&left, &after, "1").await;
    let outcomes = resume_in(&yard.engine.session("s"), 1).await;
    assert_eq!(kinds(&outcomes), [Some(ErrorKind::Interrupted), None]);
    assert_eq!(*after.0.lock(), Vec::<String>::new(), "both were approved before");
    assert_eq!(yard.log.started(), ["b"]);
}

/// SM-7: after a change of the tool it is asked again.
#[tokio::test(start_paused = true)]
async fn an_answer_about_another_version_does_not_hold() {
    let (before, after) = (Slow::default(), Slow::default());
    let left = left(1500, &before).await;
    let yard = asks(&left, &after, "2").await;
    let outcomes = resume_in(&yard.engine.session("s"), 1).await;
    assert_eq!(kinds(&outcomes), [Some(ErrorKind::Interrupted), None]);
    assert_eq!(*after.0.lock(), before.0.lock()[1..], "the second call is asked about again");
}

/// JR-10: an answer of before holds for its call alone, also where one answer holds for all calls of a pattern.
#[tokio::test(start_paused = true)]
async fn an_answer_of_before_is_not_remembered() {
    let (before, after) = (Slow::default(), Slow::default());
    let once = |ledger: &Ledger, approver: &Slow| {
        let (ledger, approver) = (ledger.clone(), approver.clone());
        yard(move |builder, log| {
            let confirmations =
                Confirmations::default().tool("sends", toolyard::ConfirmationMode::PromptOnce);
            builder
                .recorder(ledger)
                .tool(scripted(ToolSpec::write("sends"), log))
                .confirmations(confirmations)
                .approver(approver)
        })
    };
    let ledger = Ledger::default();
    let first = once(&ledger, &before).await;
    let session = first.engine.session("s");
    tokio::spawn(async move {
        session.dispatch(vec![call("r", "read", 5000, "ok"), call("a", "sends", 1000, "ok")]).await
    });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let second = once(&ledger.crashed(), &after).await;
    let session = second.engine.session("s");
    assert_eq!(kinds(&resume_in(&session, 1).await), [None, None]);
    assert_eq!(*after.0.lock(), Vec::<String>::new(), "it was approved before");
    let later = session.dispatch(vec![call("b", "sends", 1000, "ok")]).await;
    assert_eq!(kinds(&later), [None]);
    assert_eq!(after.0.lock().len(), 1, "the next one is asked about");
}

/// A workspace in which each path is a link to this.
struct LeadsTo(&'static str);

impl PathScope for LeadsTo {
    fn root(&self) -> &Path {
        Path::new("/work")
    }

    fn check(&self, _: &str) -> Result<(), PathEscape> {
        Ok(())
    }

    fn resolve(&self, _: &str) -> Result<PathBuf, PathEscape> {
        Ok(self.0.into())
    }
}

/// JR-9, PO-4: an answer of before holds only while the paths lead where they led when it was given, whatever the life that
/// came between has asked.
#[tokio::test(start_paused = true)]
async fn an_answer_of_before_is_about_where_paths_lead() {
    let at = |ledger: &Ledger, approver: &Slow| {
        let (ledger, approver) = (ledger.clone(), approver.clone());
        yard(move |builder, log| {
            let spec = ToolSpec::write("sends").requires_fs(FsMode::Write, "path");
            let confirmations = Confirmations::default();
            builder.recorder(ledger).tool(scripted(spec, log)).confirmations(confirmations).approver(approver)
        })
    };
    let session_of = |yard: &Yard, to| {
        let options = SessionOptions::default().workspace(Arc::new(LeadsTo(to)));
        yard.engine.session_with("s", options)
    };
    let ledger = Ledger::default();
    let session = session_of(&at(&ledger, &Slow::default()).await, "old");
    let sends = Call::new("a", "sends", json!({"path": "link", "ms": 1000, "end": "ok"}));
    tokio::spawn(async move { session.dispatch(vec![call("r", "read", 5000, "ok"), sends]).await });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut left = ledger.crashed();
    // The second life asks anew, and ends before it hears an answer.
    for (to, asked, is_over) in [("new", 1, false), ("new", 1, true)] {
        let approver = Slow::default();
        let yard = at(&left, &approver).await;
        let session = session_of(&yard, to);
        let resumed = tokio::spawn(async move { resume_in(&session, 1).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(approver.0.lock().len(), asked);
        match is_over {
            true => assert_eq!(kinds(&resumed.await.unwrap()), [None, None]),
            false => left = left.crashed(),
        }
    }
    // Where it leads as before, nobody is asked.
    let approver = Slow::default();
    let yard = at(&ledger.crashed(), &approver).await;
    assert_eq!(kinds(&resume_in(&session_of(&yard, "old"), 1).await), [None, None]);
    assert_eq!(*approver.0.lock(), Vec::<String>::new());
}
