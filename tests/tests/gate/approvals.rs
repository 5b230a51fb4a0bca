//! PO-3, PO-4: which calls are asked about, and for which calls an answer holds.

use super::{no_hang, questions};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};
use tokio::time::Instant;
use toolyard::{
    Answer, ApprovalDesk, Call, ConfirmationMode, Confirmations, EventKind, ForkPolicy, PathEscape,
    PathScope, Redactor, Resources, SessionOptions, SideEffects, Tool, ToolFactory, ToolSpec,
    event::{Approval, SettledBy},
};
use toolyard_tests::{Log, Yard, call, scripted, shape, yard};

pub(crate) async fn asking(desk: &ApprovalDesk, confirmations: Confirmations) -> Yard {
    let write = |log: &Log| scripted(ToolSpec::write("write").approval_ignores("content"), log);
    yard(|builder, log| builder.tool(write(log)).confirmations(confirmations).approver(desk.clone())).await
}

pub(crate) fn write(id: &str, path: &str, content: &str) -> Call {
    Call::new(id, "write", json!({"path": path, "content": content}))
}

/// The questions, answers and remembered approvals of a run, one line each.
pub(crate) fn account(yard: &Yard) -> Vec<String> {
    let line = |event: &toolyard::Event| {
        let id = event.call_id.as_ref()?;
        match &event.kind {
            EventKind::ConfirmationRequested(_) => Some(format!("{id} asked")),
            EventKind::ConfirmationResolved(it) => {
                let by = it.by.map_or("nobody", |by| match by {
                    SettledBy::Approver => "approver",
                    SettledBy::Pattern => "pattern",
                    SettledBy::Shared => "shared",
                });
                Some(format!("{id} {} by {by}", if it.approved { "yes" } else { "no" }))
            }
            EventKind::Called { approval: Some(Approval::Remembered), .. } => {
                Some(format!("{id} remembered"))
            }
            _ => None,
        }
    };
    yard.events.events().iter().filter_map(line).collect()
}

/// PO-4: "always" settles the open questions with the same pattern, and later calls with that pattern are not asked
/// about, including those of forks; other patterns and other sessions are.
#[tokio::test(start_paused = true)]
async fn always_covers_the_pattern() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk, Confirmations::default()).await;
    let session = yard.engine.session("s");
    let person = async {
        let [a, b, other] = questions(&desk).await;
        assert_eq!(a.pattern().to_string(), r#"write {"path":"notes"}, whatever its content"#);
        desk.answer(a.id(), a.digest(), Answer::always("ada")).await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(
            desk.answer(b.id(), b.digest(), Answer::deny("ada")).await,
            Err(toolyard::AnswerError::Withdrawn(b.id()))
        );
        desk.answer(other.id(), other.digest(), Answer::deny("ada")).await.unwrap();
    };
    let batch = vec![write("a", "notes", "1"), write("b", "notes", "2"), write("c", "other", "1")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a ok, b ok, c user_denied");

    let fork = session.fork(ForkPolicy::default()).unwrap();
    let again = vec![write("d", "notes", "3")];
    assert_eq!(shape(&no_hang(fork.dispatch(again)).await), "d ok");
    let elsewhere = yard.engine.session("elsewhere");
    let deny = async {
        let [question] = questions(&desk).await;
        desk.answer(question.id(), question.digest(), Answer::deny("ada")).await.unwrap();
    };
    let (outcomes, ()) =
        no_hang(async { tokio::join!(elsewhere.dispatch(vec![write("e", "notes", "4")]), deny) }).await;
    assert_eq!(shape(&outcomes), "e user_denied");
    let account = account(&yard);
    let of = |id: &str| {
        account.iter().filter(|line| line.starts_with(id)).map(|line| &line[2..]).collect::<Vec<_>>()
    };
    assert_eq!(of("a"), ["asked", "yes by approver"]);
    assert_eq!(of("b"), ["asked", "yes by pattern"]);
    assert_eq!(of("c"), ["asked", "no by approver"]);
    assert_eq!(of("d"), ["remembered"]);
    yard.events.check();
}

/// KT-16, PO-4: "never" settles the open questions with the same pattern, and later calls with that pattern, also those
/// of forks, are refused without a question and with its reason; other patterns and other sessions are asked about.
#[tokio::test(start_paused = true)]
async fn never_covers_the_pattern() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk, Confirmations::default()).await;
    let session = yard.engine.session("s");
    let person = async {
        let [a, b, other] = questions(&desk).await;
        desk.answer(a.id(), a.digest(), Answer::never("ada").because("kept by hand")).await.unwrap();
        tokio::task::yield_now().await;
        let late = desk.answer(b.id(), b.digest(), Answer::allow("ada")).await;
        assert_eq!(late, Err(toolyard::AnswerError::Withdrawn(b.id())));
        desk.answer(other.id(), other.digest(), Answer::allow("ada")).await.unwrap();
    };
    let batch = vec![write("a", "notes", "1"), write("b", "notes", "2"), write("c", "other", "1")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a user_denied, b user_denied, c ok");
    let fork = session.fork(ForkPolicy::default()).unwrap();
    let again = no_hang(fork.dispatch(vec![write("d", "notes", "3")])).await;
    assert_eq!(shape(&again), "d user_denied");
    for outcome in [&outcomes[0], &outcomes[1], &again[0]] {
        let message = &outcome.error().unwrap().message;
        assert_eq!(message, "User denied this operation. Reason: kept by hand");
    }
    let elsewhere = yard.engine.session("elsewhere");
    let allow = async {
        let [question] = questions(&desk).await;
        desk.answer(question.id(), question.digest(), Answer::allow("ada")).await.unwrap();
    };
    let (outcomes, ()) =
        no_hang(async { tokio::join!(elsewhere.dispatch(vec![write("e", "notes", "4")]), allow) }).await;
    assert_eq!(shape(&outcomes), "e ok");
    let account = account(&yard);
    let of = |id: &str| {
        account.iter().filter(|line| line.starts_with(id)).map(|line| &line[2..]).collect::<Vec<_>>()
    };
    assert_eq!(of("a"), ["asked", "no by approver"]);
    assert_eq!(of("b"), ["asked", "no by pattern"]);
    assert_eq!(of("d"), Vec::<&str>::new());
    yard.events.check();
}

/// A workspace in which the one path is a link, which may change.
pub(crate) struct Link(pub(crate) Arc<Mutex<&'static str>>);

impl PathScope for Link {
    fn root(&self) -> &Path {
        Path::new("/work")
    }

    fn check(&self, _: &str) -> Result<(), PathEscape> {
        Ok(())
    }

    fn resolve(&self, path: &str) -> Result<std::path::PathBuf, PathEscape> {
        match *self.0.lock().unwrap() {
            "outside" => Err(PathEscape::new(path)),
            to => Ok(to.into()),
        }
    }
}

/// PO-3, PO-4: a remembered answer does not cover a call whose link leads elsewhere; a link that leads out of the
/// workspace is refused before anybody is asked.
#[tokio::test(start_paused = true)]
async fn an_always_is_for_where_a_link_leads() {
    let (desk, target) = (ApprovalDesk::default(), Arc::new(Mutex::new("old")));
    let spec =
        ToolSpec::write("write").approval_ignores("content").requires_fs(toolyard::FsMode::Write, "path");
    let yard = yard(|builder, log| {
        builder.tool(scripted(spec, log)).confirmations(Confirmations::default()).approver(desk.clone())
    })
    .await;
    let options = SessionOptions::default().workspace(Arc::new(Link(target.clone())));
    let session = yard.engine.session_with("s", options);
    for (to, asked) in [("old", true), ("old", false), ("new", true), ("old", false)] {
        *target.lock().unwrap() = to;
        let person = async {
            if asked {
                let [question] = questions(&desk).await;
                let links: Vec<_> = question.links().iter().map(ToString::to_string).collect();
                assert_eq!(links, [format!("\"link\" is a link and leads to \"{to}\"")]);
                desk.answer(question.id(), question.digest(), Answer::always("ada")).await.unwrap();
            }
        };
        let (outcome, ()) =
            no_hang(async { tokio::join!(session.call(write("a", "link", "1")), person) }).await;
        assert_eq!(shape(&[outcome]), "a ok", "{to}");
    }
    *target.lock().unwrap() = "outside";
    let outcome = no_hang(session.call(write("a", "link", "1"))).await;
    assert_eq!(shape(std::slice::from_ref(&outcome)), "a permission_denied");
    assert!(outcome.to_text().contains("escapes workspace boundary"));
    yard.events.check();
}

/// PO-3: `prompt_once` asks once per pattern and keeps the answer, yes or no, until it is told to forget.
#[tokio::test(start_paused = true)]
async fn prompt_once_asks_once() {
    let desk = ApprovalDesk::default();
    let yard = asking(
        &desk,
        Confirmations::default().side_effects(SideEffects::Write, ConfirmationMode::PromptOnce),
    )
    .await;
    let session = yard.engine.session("s");
    let round = |answers: Vec<Answer>| {
        let (session, desk) = (session.clone(), desk.clone());
        let batch = vec![write("y", "yes", "1"), write("n", "no", "1")];
        let person = async move {
            for answer in answers {
                let question = desk.next().await.unwrap();
                desk.answer(question.id(), question.digest(), answer).await.unwrap();
            }
        };
        no_hang(async move { tokio::join!(session.dispatch(batch), person).0 })
    };
    assert_eq!(shape(&round(vec![Answer::allow("ada"), Answer::deny("ada")]).await), "y ok, n user_denied");
    assert_eq!(shape(&round(vec![]).await), "y ok, n user_denied");
    session.forget_approvals();
    assert_eq!(shape(&round(vec![Answer::deny("ada"), Answer::allow("ada")]).await), "y user_denied, n ok");
    let asked = account(&yard).iter().filter(|line| line.ends_with("asked")).count();
    assert_eq!(asked, 4);
    yard.events.check();
}

pub(crate) struct Root(pub(crate) &'static str);

impl PathScope for Root {
    fn root(&self) -> &Path {
        Path::new(self.0)
    }

    fn check(&self, _: &str) -> Result<(), PathEscape> {
        Ok(())
    }
}

/// PO-3: in a trusted workspace, writes are not asked about; execution, network and tools with their own mode still
/// are. A session may set its own modes.
#[tokio::test(start_paused = true)]
async fn a_trusted_workspace_relaxes_only_writes() {
    let confirmations = Confirmations::default().trust("/notes").tool("special", ConfirmationMode::Prompt);
    let yard = yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::execute("run"), log))
            .tool(scripted(ToolSpec::network("fetch"), log))
            .tool(scripted(ToolSpec::write("special"), log))
            .confirmations(confirmations)
            .approver(Answer::deny("ada"))
    })
    .await;
    let batch = || ["serial", "run", "fetch", "special"].map(|tool| call(tool, tool, 0, "ok")).to_vec();
    let at = |root| SessionOptions::default().workspace(Arc::new(Root(root)));
    let trusted = yard.engine.session_with("trusted", at("/notes/today"));
    assert_eq!(
        shape(&trusted.dispatch(batch()).await),
        "serial ok, run user_denied, fetch user_denied, special user_denied"
    );
    let strange = yard.engine.session_with("strange", at("/etc"));
    assert_eq!(
        shape(&strange.dispatch(batch()).await),
        "serial user_denied, run user_denied, fetch user_denied, special user_denied"
    );
    let own = yard.engine.session_with("own", at("/etc").confirmations(Confirmations::auto()));
    assert_eq!(shape(&own.dispatch(batch()).await), "serial ok, run ok, fetch ok, special ok");
    yard.events.check();
}

/// CL-1, PO-3: a tool that classifies a call as a read changes the call's class, but it is still asked about.
#[tokio::test(start_paused = true)]
async fn a_class_by_arguments_does_not_skip_the_question() {
    struct Query(Log);
    impl ToolFactory for Query {
        fn spec(&self) -> ToolSpec {
            ToolSpec::write("query")
        }
        fn create(&self) -> Arc<dyn Tool> {
            scripted(self.spec(), &self.0).create()
        }
        fn class_for(&self, _: &Value) -> Option<toolyard::ToolClass> {
            Some(toolyard::ToolClass::Read)
        }
    }
    let yard = yard(|builder, log| {
        builder.tool(Query(log.clone())).confirmations(Confirmations::default()).approver(Answer::deny("ada"))
    })
    .await;
    let outcomes = yard.engine.session("s").dispatch(vec![call("q", "query", 0, "ok")]).await;
    assert_eq!(shape(&outcomes), "q user_denied");
    yard.events.check();
}

/// PO-4: the preview shows the changes as of when it is requested; one that panics is left out.
#[tokio::test(start_paused = true)]
async fn a_request_previews_its_changes() {
    struct Editor(Log, &'static str);
    impl ToolFactory for Editor {
        fn spec(&self) -> ToolSpec {
            ToolSpec::write(self.1)
        }
        fn create(&self) -> Arc<dyn Tool> {
            scripted(self.spec(), &self.0).create()
        }
        fn preview(&self, args: &Value, resources: &Resources) -> Option<String> {
            assert!(self.1 != "panics", "scripted panic");
            Some(format!("{} in {}", args["end"], resources.get::<String>().unwrap()))
        }
    }
    let desk = ApprovalDesk::default();
    let yard = yard(|builder, log| {
        builder
            .tool(Editor(log.clone(), "edit"))
            .tool(Editor(log.clone(), "panics"))
            .confirmations(Confirmations::default())
            .approver(desk.clone())
    })
    .await;
    let session = yard.engine.session_with("s", SessionOptions::default().resource("the book".to_owned()));
    let person = async {
        let [a, b] = questions(&desk).await;
        assert_eq!(a.changes().await.as_deref(), Some("\"ok\" in the book"));
        assert_eq!(b.changes().await, None);
        session.cancel();
    };
    let batch = vec![call("a", "edit", 0, "ok"), call("b", "panics", 0, "ok")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a cancelled, b cancelled");
    yard.events.check();
}

/// PO-4: a preview that hangs is given up after 5 s; its question is shown without it and can be answered.
#[tokio::test(start_paused = true)]
async fn a_preview_that_hangs_is_given_up() {
    struct Hangs(Log, Arc<Mutex<mpsc::Receiver<()>>>);
    impl ToolFactory for Hangs {
        fn spec(&self) -> ToolSpec {
            ToolSpec::write("hangs").blocking()
        }
        fn create(&self) -> Arc<dyn Tool> {
            scripted(self.spec(), &self.0).create()
        }
        fn preview(&self, _: &Value, _: &Resources) -> Option<String> {
            // Blocks until the test has ended.
            let _ = self.1.lock().unwrap().recv();
            Some("too late".to_owned())
        }
    }
    /// One thread per job; paused time goes on while it blocks.
    struct Threads;
    impl toolyard::Blocking for Threads {
        fn spawn(&self, job: BoxFuture<'static, ()>) {
            std::thread::spawn(|| futures::executor::block_on(job));
        }
    }
    let (_until_dropped, hanging) = mpsc::channel();
    let desk = ApprovalDesk::default();
    let yard = yard(|builder, log| {
        builder
            .tool(Hangs(log.clone(), Arc::new(Mutex::new(hanging))))
            .blocking(Arc::new(Threads))
            .confirmations(Confirmations::default())
            .approver(desk.clone())
    })
    .await;
    let person = async {
        let [question] = questions(&desk).await;
        let from = Instant::now();
        assert_eq!(question.changes().await, None);
        assert_eq!(from.elapsed(), Duration::from_secs(5));
        desk.answer(question.id(), question.digest(), Answer::deny("ada")).await.unwrap();
    };
    let session = yard.engine.session("s");
    let batch = vec![call("a", "hangs", 0, "ok")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a user_denied");
    yard.events.check();
}

/// PO-4, SC-4: cancelling one call withdraws its question and leaves the others open.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_withdraws_only_its_question() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk, Confirmations::default()).await;
    let session = yard.engine.session("s");
    let person = async {
        let [_, b] = questions(&desk).await;
        assert!(session.cancel_call("a"));
        tokio::time::sleep(Duration::from_millis(1)).await;
        let open: Vec<String> =
            desk.pending().iter().map(|question| question.call_id().to_string()).collect();
        assert_eq!(open, ["b"]);
        desk.answer(b.id(), b.digest(), Answer::allow("ada")).await.unwrap();
    };
    let batch = vec![write("a", "x", "1"), write("b", "x", "2")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a cancelled, b ok");
    yard.events.check();
}

/// PO-4, I15: the approver sees no secret in arguments, pattern or preview; the handler receives it, and an answer
/// for the pattern holds for that secret only.
#[tokio::test(start_paused = true)]
async fn a_request_shows_no_secret() {
    struct Login(Log);
    impl ToolFactory for Login {
        fn spec(&self) -> ToolSpec {
            ToolSpec::network("login")
        }
        fn create(&self) -> Arc<dyn Tool> {
            scripted(self.spec(), &self.0).create()
        }
        fn preview(&self, args: &Value, _: &Resources) -> Option<String> {
            Some(format!("logs in with {}", args["with"]))
        }
    }
    const SECRETS: [&str; 2] = ["correct horse", "battery staple"];
    let desk = ApprovalDesk::default();
    let redactor = Redactor::new().with_secrets(SECRETS).unwrap();
    let yard = yard(|builder, log| {
        let builder = builder.tool(Login(log.clone())).redact(redactor);
        builder.confirmations(Confirmations::default()).approver(desk.clone())
    })
    .await;
    let session = yard.engine.session("s");
    let batch =
        SECRETS.map(|secret| Call::new(secret[..3].to_owned(), "login", json!({"with": secret}))).to_vec();
    let person = async {
        let [b, a] = questions(&desk).await;
        for question in [&a, &b] {
            let seen =
                format!("{} {} {:?}", question.arguments(), question.pattern(), question.changes().await);
            assert_eq!(seen.matches("[redacted]").count(), 3, "{seen}");
            assert!(SECRETS.iter().all(|secret| !seen.contains(secret)), "{seen}");
        }
        desk.answer(a.id(), a.digest(), Answer::always("ada")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        desk.answer(b.id(), b.digest(), Answer::deny("ada")).await.unwrap();
    };
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "cor ok, bat user_denied");
    let events = format!("{:?}", yard.events.events());
    assert!(SECRETS.iter().all(|secret| !events.contains(secret)));
    yard.events.check();
}

/// PO-4: text that only looks like a secret is shown to the approver, because a yes lets it run; events hide it.
#[tokio::test(start_paused = true)]
async fn nothing_that_would_run_is_hidden_from_the_approver() {
    let desk = ApprovalDesk::default();
    let yard = yard(|builder, log| {
        let builder = builder.tool(scripted(ToolSpec::execute("sh"), log)).redact(Redactor::standard());
        builder.confirmations(Confirmations::default()).approver(desk.clone())
    })
    .await;
    let session = yard.engine.session("s");
    for command in [
        ": -----BEGIN PRIVATE KEY-----\nrm -rf ~",
        "password=\"$(rm -rf ~)\"",
        "curl http://a:$(rm${IFS}-rf${IFS}~)@b",
    ] {
        let person = async {
            let [question] = questions(&desk).await;
            assert_eq!(question.arguments()["command"], command);
            assert!(question.pattern().to_string().contains("rm"), "{}", question.pattern());
            desk.answer(question.id(), question.digest(), Answer::deny("ada")).await.unwrap();
        };
        let call = Call::new("a", "sh", json!({"command": command}));
        let (outcome, ()) = no_hang(async { tokio::join!(session.call(call), person) }).await;
        assert_eq!(shape(&[outcome]), "a user_denied");
    }
    let events = format!("{:?}", yard.events.events());
    assert!(!events.contains('~') && events.contains("[redacted: private key]"), "{events}");
    yard.events.check();
}
