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
    Answer, ApprovalRequest, Approver,
    sheet::{Label, Sheet},
};

/// Maximum size of a question in bytes. A longer one is not asked, because nobody would have seen all of it.
const QUESTION_BYTES_MAX: usize = 64 << 10;

/// The field of the form that holds the answer.
const FIELD: &str = "answer";

/// The field that may hold a reason.
const REASON: &str = "reason";

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
    let Some(question) = question(approval).await else { return Answer::too_long() };
    match send(&client.peer, request(form(question)), during).await {
        Ok(ClientResult::ElicitResult(result)) => read(&result, &client.name),
        Ok(_) => Answer::deny(&client.name),
        Err(error) => {
            tracing::warn!(%error, "a client could not be asked for approval");
            Answer::nobody()
        }
    }
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

fn form(message: String) -> ElicitRequestParams {
    let answers = ["yes", "always", "no"].map(str::to_owned).to_vec();
    let field = EnumSchema::builder(answers).title("May it run?").build();
    let why = |text: StringSchema| text.title("Why? The model reads the reason of a no.");
    let schema = ElicitationSchema::builder().required_enum_schema(FIELD, field);
    let schema = schema.optional_string_with(REASON, why).build();
    let requested_schema = schema.expect("the one required field was added");
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The answer of a client of this name.
fn read(result: &ElicitResult, who: &str) -> Answer {
    if result.action != ElicitationAction::Accept {
        return Answer::deny(who);
    }
    let field = |name| result.content.as_ref()?.get(name)?.as_str();
    let answer = match field(FIELD) {
        Some("yes") => Answer::allow(who),
        Some("always") => Answer::always(who),
        _ => Answer::deny(who),
    };
    answer.because(field(REASON).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolyard::Decision;

    fn answer(action: ElicitationAction, content: serde_json::Value) -> Answer {
        read(&ElicitResult::new(action).with_content(content), "a client")
    }

    /// PO-4, PO-5: anything but a clear yes is a no.
    #[test]
    fn only_a_clear_yes_is_one() {
        let decision = |action, content| answer(action, content).decision();
        assert_eq!(decision(ElicitationAction::Accept, json!({"answer": "yes"})), Decision::Allow);
        assert_eq!(decision(ElicitationAction::Accept, json!({"answer": "always"})), Decision::Always);
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
