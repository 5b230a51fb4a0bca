//! Approvals as elicitation: the client shows the question to its user (PO-4).

use super::clients::{Client, Clients};
use crate::client::clean::is_visible;
use async_trait::async_trait;
use rmcp::{
    RoleServer,
    model::{
        CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationSchema, EnumSchema, GetExtensions, RequestId, ServerRequest,
    },
    service::{OriginatingRequestId, Peer, PeerRequestOptions, ServiceError},
};
use toolyard::{Answer, ApprovalRequest, Approver};

/// Maximum number of characters of the arguments, and of the changes, that a question shows.
const SHOWN_MAX: usize = 4000;

/// The field of the form that holds the answer.
const FIELD: &str = "answer";

#[async_trait]
impl Approver for Clients {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        match self.of(request.session()) {
            Some(client) if client.elicits => {
                let during = self.pending.request(request.session(), request.call_id());
                elicit(&client, request, during).await
            }
            // The call's result says why; see `answer`.
            _ => Answer::Deny,
        }
    }
}

/// Asks the client's user. Anything but a clear yes is a no.
async fn elicit(client: &Client, approval: &ApprovalRequest, during: Option<RequestId>) -> Answer {
    let form = form(question(approval).await);
    match send(&client.peer, request(form), during).await {
        Ok(ClientResult::ElicitResult(result)) => read(&result),
        Ok(_) => Answer::Deny,
        Err(error) => {
            tracing::warn!(%error, "a client could not be asked for approval");
            Answer::Deny
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

async fn question(request: &ApprovalRequest) -> String {
    let (tool, effects) = (request.tool(), request.side_effects());
    let arguments = shortened(&request.arguments().to_string());
    let mut text = format!("May the tool '{tool}' (side effects: {effects}) run with {arguments}?");
    if let Some(changes) = request.changes().await {
        text.push_str("\n\nIt would change:\n");
        text.push_str(&shortened(&changes));
    }
    let pattern = shortened(&request.pattern().to_string());
    text.push_str(&format!("\n\n'always' also allows later calls that match: {pattern}"));
    text
}

/// The text in a form that a person can judge: invisible characters are escaped, and omitted ones are counted.
fn shortened(text: &str) -> String {
    let mut chars = text.chars();
    let mut shown = String::new();
    for c in chars.by_ref().take(SHOWN_MAX) {
        match is_visible(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_unicode()),
        }
    }
    match chars.count() {
        0 => shown,
        more => format!("{shown}… and {more} more characters"),
    }
}

fn form(message: String) -> ElicitRequestParams {
    let answers = ["yes", "always", "no"].map(str::to_owned).to_vec();
    let field = EnumSchema::builder(answers).title("May it run?").build();
    let schema = ElicitationSchema::builder().required_enum_schema(FIELD, field).build();
    let requested_schema = schema.expect("the one required field was added");
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

fn read(result: &ElicitResult) -> Answer {
    if result.action != ElicitationAction::Accept {
        return Answer::Deny;
    }
    let answer = result.content.as_ref().and_then(|content| content.get(FIELD)?.as_str());
    match answer {
        Some("yes") => Answer::Allow,
        Some("always") => Answer::Always,
        _ => Answer::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// PO-4: a person sees what runs; invisible characters are escaped, and omitted ones are counted.
    #[test]
    fn what_hides_or_is_left_out_is_shown() {
        assert_eq!(shortened("rm a\u{202e}b\u{1b}[2K\n"), "rm a\\u{202e}b\\u{1b}[2K\n");
        let long = shortened(&"a".repeat(SHOWN_MAX + 7));
        assert!(long.ends_with("a… and 7 more characters"));
        assert!(!shortened(&"a".repeat(SHOWN_MAX)).contains('…'));
    }

    /// PO-4, PO-5: anything but a clear yes is a no.
    #[test]
    fn only_a_clear_yes_is_one() {
        let answer = |action, content| read(&ElicitResult::new(action).with_content(content));
        assert_eq!(answer(ElicitationAction::Accept, json!({"answer": "yes"})), Answer::Allow);
        assert_eq!(answer(ElicitationAction::Accept, json!({"answer": "always"})), Answer::Always);
        for content in [json!({"answer": "no"}), json!({"answer": true}), json!({}), json!("yes")] {
            assert_eq!(answer(ElicitationAction::Accept, content), Answer::Deny);
        }
        assert_eq!(answer(ElicitationAction::Decline, json!({"answer": "yes"})), Answer::Deny);
        assert_eq!(answer(ElicitationAction::Cancel, json!({"answer": "yes"})), Answer::Deny);
    }
}
