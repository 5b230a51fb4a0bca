//! Approvals as elicitation: the client shows the question to its user (PO-4).

use super::clients::{Client, Clients};
use async_trait::async_trait;
use rmcp::{
    RoleServer,
    model::{
        CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationSchema, EnumSchema, GetExtensions, RequestId, ServerRequest,
        StringSchema,
    },
    service::{OriginatingRequestId, Peer, PeerRequestOptions, ServiceError},
};
use std::iter;
use toolyard::{
    Answer, ApprovalRequest, Approver, Arguments, EditRefused, ErrorKind,
    sheet::{Label, Sheet},
};

/// Maximum size of a question in bytes. A longer one is not asked, because nobody would have seen all of it.
const QUESTION_BYTES_MAX: usize = 64 << 10;

/// The field of the form that holds the answer.
const FIELD: &str = "answer";

/// The field that may hold a reason.
const REASON: &str = "reason";

/// The field that holds the arguments, which the user may change.
const ARGUMENTS: &str = "arguments";

/// Maximum size in bytes of arguments that the user may change in a form. Longer ones are not fit for a field.
const EDITABLE_BYTES_MAX: usize = 4 << 10;

/// What a user is told that changed the arguments and said "always". The question is asked again.
const NOT_ALWAYS: &str = "changed arguments hold for one call alone; answer yes to run it with them";

/// How often a user is asked again that does so. Then the answer is no.
const ALWAYS_MAX: usize = 2;

#[async_trait]
impl Approver for Clients {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        match self.of(request.session()) {
            Some(client) if client.elicits => {
                let during = self.pending.request(request.session(), request.call_id());
                elicit(&client, request, during).await
            }
            _ => Answer::nobody(),
        }
    }
}

/// Asks the client's user. Anything but a clear yes is a no.
async fn elicit(client: &Client, approval: &ApprovalRequest, during: Option<RequestId>) -> Answer {
    let mut approval = approval.clone();
    for _ in 0..=ALWAYS_MAX {
        let Some(question) = question(&approval).await else { return Answer::too_long() };
        let editable = editable(&approval);
        let sent = send(&client.peer, request(form(question, editable.as_deref())), during.clone());
        match sent.await {
            Ok(ClientResult::ElicitResult(result)) => {
                match read(&result, &client.name, editable.is_some().then_some(&approval)) {
                    Some(answer) => return answer,
                    None => {
                        let refused = EditRefused::new(ErrorKind::InvalidInput, NOT_ALWAYS);
                        approval = approval.after(refused);
                    }
                }
            }
            Ok(_) => return Answer::deny(&client.name),
            Err(error) => {
                tracing::warn!(%error, "a client could not be asked for approval");
                return Answer::nobody();
            }
        }
    }
    Answer::deny(&client.name)
}

/// The arguments as a text that the user may change; `None` if they are too long for a field.
fn editable(approval: &ApprovalRequest) -> Option<String> {
    Some(approval.arguments().to_string()).filter(|text| text.len() <= EDITABLE_BYTES_MAX)
}

pub(super) fn request(form: ElicitRequestParams) -> ServerRequest {
    ServerRequest::ElicitRequest(ElicitRequest::new(form))
}

/// Asks a client something in the course of its request `during`. Over HTTP the question is sent on the stream on which
/// the client waits for the answer to that request.
///
/// # Cancel safety
/// Dropping the future withdraws the question (SC-4).
pub(super) async fn send(
    peer: &Peer<RoleServer>,
    mut request: ServerRequest,
    during: Option<RequestId>,
) -> Result<ClientResult, ServiceError> {
    if let Some(during) = during {
        request.extensions_mut().insert(OriginatingRequestId(during));
    }
    let handle = peer.send_cancellable_request(request, PeerRequestOptions::default()).await?;
    let mut question = Question { peer: peer.clone(), id: Some(handle.id.clone()) };
    let answered = handle.await_response().await;
    question.id = None;
    answered
}

/// A question that is withdrawn when its future is dropped (SC-4).
struct Question {
    peer: Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Drop for Question {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let (peer, why) = (self.peer.clone(), "the question was withdrawn".to_owned());
        let withdrawn = CancelledNotificationParam::new(Some(id), Some(why));
        tokio::spawn(async move {
            // A client that is gone no longer shows the question.
            let _ = peer.notify_cancelled(withdrawn).await;
        });
    }
}

/// What is asked, with nothing left out; `None` if that is too long.
async fn question(request: &ApprovalRequest) -> Option<String> {
    // Whether the rest fits is not worth a preview of the changes.
    let brief = text(request, None)?;
    match request.changes().await {
        None => Some(brief),
        Some(changes) => text(request, Some(&changes)),
    }
}

fn text(request: &ApprovalRequest, changes: Option<&str>) -> Option<String> {
    // A client's session and the ids of its calls are its own.
    let sheet = Sheet::of(request, changes).without(Label::Session).without(Label::Call);
    let rows = sheet.whole().iter().map(|row| format!("\n{row}"));
    let text = iter::once("May this call run?".to_owned()).chain(rows).collect::<String>();
    (text.len() <= QUESTION_BYTES_MAX).then_some(text)
}

/// The form for an answer, with the arguments if they can be changed there.
fn form(message: String, editable: Option<&str>) -> ElicitRequestParams {
    let answers = ["yes", "always", "no", "never"].map(str::to_owned).to_vec();
    let field = EnumSchema::builder(answers).title("May it run?").build();
    let why = |text: StringSchema| text.title("Why? The model reads the reason of a no.");
    let schema = ElicitationSchema::builder().required_enum_schema(FIELD, field);
    let mut schema = schema.optional_string_with(REASON, why);
    if let Some(editable) = editable {
        let field = |text: StringSchema| {
            text.title("The arguments, as JSON. Change them to run the call with others.")
                .with_default(editable)
        };
        schema = schema.optional_string_with(ARGUMENTS, field);
    }
    let schema = schema.build();
    let requested_schema = schema.expect("the one required field was added");
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The answer of a client of this name; `None` if it would allow changed arguments for good. `editable` is the question
/// whose arguments were in the form.
fn read(result: &ElicitResult, who: &str, editable: Option<&ApprovalRequest>) -> Option<Answer> {
    if result.action != ElicitationAction::Accept {
        return Some(Answer::deny(who));
    }
    let field = |name| result.content.as_ref()?.get(name)?.as_str();
    // A client may send the field as it was, in another spelling, or empty.
    let is_change = |text: &&str| {
        !text.trim().is_empty() && editable.is_some_and(|asked| asked.is_changed_by(&Arguments::from(*text)))
    };
    let edited = field(ARGUMENTS).filter(is_change);
    let answer = match (field(FIELD), edited) {
        (Some("yes"), None) => Answer::allow(who),
        (Some("yes"), Some(edited)) => Answer::edit(who, edited),
        (Some("always"), None) => Answer::always(who),
        (Some("always"), Some(_)) => return None,
        (Some("never"), _) => Answer::never(who),
        _ => Answer::deny(who),
    };
    Some(answer.because(field(REASON).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::{sync::Arc, time::Duration};
    use toolyard::{
        AgentPath, ApprovalParts, ApprovalPattern, CallDigest, Decision, RequestId, SessionId, SideEffects,
        ToolSpec,
    };

    fn asked() -> ApprovalRequest {
        let (session, args) = (SessionId::from("s"), json!({"path": "a", "depth": 1}));
        let parts = ApprovalParts {
            id: RequestId::new(0, 1, 0),
            agent: AgentPath::root(),
            turn: 1,
            call_id: "c".into(),
            tool: "read".into(),
            links: Vec::new(),
            side_effects: SideEffects::None,
            pattern: ApprovalPattern::of(&ToolSpec::pure("read"), &args, &session),
            digest: CallDigest::of_text("read", &args.to_string(), &session),
            expires_in: Duration::from_secs(300),
            arguments: Arc::new(args),
            session,
        };
        ApprovalRequest::new(parts, None)
    }

    fn answer(action: ElicitationAction, content: serde_json::Value) -> Answer {
        let read = read(&ElicitResult::new(action).with_content(content), "a client", Some(&asked()));
        read.expect("it changes nothing for good")
    }

    /// SM-5: only arguments that differ from those that were asked about are a change, and only for one call.
    #[test]
    fn a_user_may_change_the_arguments() {
        let of = |content| answer(ElicitationAction::Accept, content);
        for same in [r#"{"path":"a","depth":1}"#, r#"{ "depth": 1.0, "path": "a" }"#, "", " "] {
            let yes = of(json!({"answer": "yes", "arguments": same}));
            assert_eq!(yes, Answer::allow("a client"), "{same}");
        }
        for other in [r#"{"path":"b"}"#, "{", "b"] {
            let yes = of(json!({"answer": "yes", "arguments": other, "reason": "r"}));
            assert_eq!(yes, Answer::edit("a client", other).because("r"));
            assert_eq!(of(json!({"answer": "no", "arguments": other})), Answer::deny("a client"));
            let always = ElicitResult::new(ElicitationAction::Accept)
                .with_content(json!({"answer": "always", "arguments": other}));
            assert_eq!(read(&always, "a client", Some(&asked())), None);
            // A field that was not offered says nothing.
            assert_eq!(read(&always, "a client", None), Some(Answer::always("a client")));
        }
    }

    /// PO-4, PO-5: anything but a clear yes is a no.
    #[test]
    fn only_a_clear_yes_is_one() {
        let decision = |action, content| answer(action, content).decision();
        assert_eq!(decision(ElicitationAction::Accept, json!({"answer": "yes"})), Decision::Allow);
        assert_eq!(decision(ElicitationAction::Accept, json!({"answer": "always"})), Decision::Always);
        assert_eq!(decision(ElicitationAction::Accept, json!({"answer": "never"})), Decision::Never);
        assert_eq!(decision(ElicitationAction::Decline, json!({"answer": "never"})), Decision::Deny);
        for content in [json!({"answer": "no"}), json!({"answer": true}), json!({}), json!("yes")] {
            assert_eq!(decision(ElicitationAction::Accept, content), Decision::Deny);
        }
        assert_eq!(decision(ElicitationAction::Decline, json!({"answer": "yes"})), Decision::Deny);
        assert_eq!(decision(ElicitationAction::Cancel, json!({"answer": "yes"})), Decision::Deny);
    }

    /// SM-5: an answer has the name of its client, and the reason that its user gave.
    #[test]
    fn an_answer_says_who_and_why() {
        let no = answer(ElicitationAction::Accept, json!({"answer": "no", "reason": "too late"}));
        assert_eq!(no, Answer::deny("a client").because("too late"));
        let no = answer(ElicitationAction::Accept, json!({"answer": "no", "reason": ["too late"]}));
        assert_eq!(no, Answer::deny("a client"));
    }
}
