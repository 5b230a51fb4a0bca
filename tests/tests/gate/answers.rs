//! SM-5: who answered, and why: in the record, and in what the model reads.

use super::{
    approvals::{Root, asking, write},
    no_hang, questions,
};
use serde_json::json;
use std::sync::Arc;
use toolyard::{
    Answer, ApprovalDesk, Call, ConfirmationMode, Confirmations, Decision, EventKind, Redactor,
    SessionOptions, SideEffects, ToolSpec, event::SettledBy,
};
use toolyard_tests::{Yard, scripted, shape, yard};

/// Who decided what about each call, and why.
fn record(yard: &Yard) -> Vec<String> {
    let line = |event: &toolyard::Event| {
        let EventKind::ConfirmationResolved(it) = &event.kind else { return None };
        let decision = it.decision.map_or("none", Decision::as_str);
        assert_eq!(it.approved, matches!(decision, "allow" | "always"));
        let by = it.by.map_or("nobody", |by| match by {
            SettledBy::Approver => "approver",
            SettledBy::Pattern => "pattern",
            SettledBy::Shared => "shared",
        });
        let [who, reason] = [&it.who, &it.reason].map(|text| text.as_deref().unwrap_or("-"));
        Some(format!("{} {decision} {who} {reason} {by}", event.call_id.as_ref()?))
    };
    yard.events.events().iter().filter_map(line).collect()
}

/// SM-5: a no says who and why, in its event and to the model, as does a yes in its event; a question that expires or
/// that nobody can be asked has no name.
#[tokio::test(start_paused = true)]
async fn a_record_says_who_and_why() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk, Confirmations::default()).await;
    let session = yard.engine.session("s");
    let person = async {
        let [a, b, c, _late] = questions(&desk).await;
        let no = Answer::deny("ada").because("too late in the day");
        desk.answer(a.id(), a.digest(), no).await.unwrap();
        desk.answer(b.id(), b.digest(), Answer::allow("bob").because("fine")).await.unwrap();
        desk.answer(c.id(), c.digest(), Answer::nobody()).await.unwrap();
    };
    let batch = ["a", "b", "c", "d"].map(|id| write(id, id, "1")).to_vec();
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a user_denied, b ok, c user_denied, d confirmation_timeout");
    let message = |at: usize| outcomes[at].error().unwrap().message.as_str();
    assert_eq!(message(0), "User denied this operation. Reason: too late in the day");
    assert!(outcomes[0].to_text().contains("Reason: too late in the day"));
    assert_eq!(message(2), "This operation needs approval and nobody can be asked.");
    let mut record = record(&yard);
    record.sort();
    let expected = [
        "a deny ada too late in the day approver",
        "b allow bob fine approver",
        "c nobody - - approver",
        "d none - - nobody",
    ];
    assert_eq!(record, expected);
    yard.events.check();
}

/// SM-5: an answer that settles other calls has its name and its reason there too, also when it is remembered.
#[tokio::test(start_paused = true)]
async fn who_and_why_go_with_the_answer() {
    let desk = ApprovalDesk::default();
    let once = Confirmations::default().side_effects(SideEffects::Write, ConfirmationMode::PromptOnce);
    let yard = asking(&desk, once).await;
    let session = yard.engine.session("s");
    let keyed = |id: &str| {
        let mut call = write(id, "shared", "1");
        call.idempotency_key = Some("k".into());
        call
    };
    let person = async {
        let [a, _b, c] = questions(&desk).await;
        desk.answer(a.id(), a.digest(), Answer::deny("ada").because("no")).await.unwrap();
        desk.answer(c.id(), c.digest(), Answer::always("bob")).await.unwrap();
    };
    let batch = vec![write("a", "n", "1"), write("b", "n", "2"), keyed("c"), keyed("d")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a user_denied, b user_denied, c ok, d ok");
    let later = no_hang(session.call(write("e", "n", "3"))).await;
    for refused in [&outcomes[0], &outcomes[1], &later] {
        assert_eq!(refused.error().unwrap().message, "User denied this operation. Reason: no");
    }
    let mut record = record(&yard);
    record.sort();
    assert_eq!(record[..2], ["a deny ada no approver", "b deny ada no pattern"]);
    assert_eq!(record[2], "c always bob - approver");
    assert!(record[3].starts_with("d always bob - "), "{record:?}");
    yard.events.check();
}

/// SM-5: a question's event says what the call names; secrets in names, reasons and paths are not recorded.
#[tokio::test(start_paused = true)]
async fn a_record_names_what_would_change() {
    let desk = ApprovalDesk::default();
    let spec = ToolSpec::write("send").requires_fs(toolyard::FsMode::Read, "files").requires_net("to");
    let redactor = Redactor::standard().with_secret("hunter22").unwrap();
    let yard = yard(|builder, log| {
        let builder = builder.tool(scripted(spec, log)).confirmations(Confirmations::default());
        builder.redact(redactor).approver(desk.clone())
    })
    .await;
    let workspace = SessionOptions::default().workspace(Arc::new(Root("/notes")));
    let session = yard.engine.session_with("s", workspace);
    let person = async {
        let [a] = questions(&desk).await;
        let no = Answer::deny("ada hunter22").because("it has hunter22 in it");
        desk.answer(a.id(), a.digest(), no).await.unwrap();
    };
    let args = json!({"files": ["a.md", "b-hunter22.md"], "to": "example.com"});
    let call = session.call(Call::new("a", "send", args));
    let (outcome, ()) = no_hang(async { tokio::join!(call, person) }).await;
    let text = outcome.to_text();
    assert!(text.contains("it has [redacted] in it") && !text.contains("hunter22"), "{text}");
    let events = yard.events.events();
    let projected = events.iter().find_map(|event| match &event.kind {
        EventKind::ConfirmationRequested(it) => {
            assert!(it.input_summary.starts_with(r#"{"files":["a.md""#), "{}", it.input_summary);
            Some(it.projected_modifications.clone())
        }
        _ => None,
    });
    assert_eq!(projected.unwrap(), ["a.md", "b-[redacted].md", "example.com"]);
    assert_eq!(record(&yard), ["a deny ada [redacted] it has [redacted] in it approver"]);
    assert!(events.iter().all(|event| !format!("{event:?}").contains("hunter22")));
    yard.events.check();
}
