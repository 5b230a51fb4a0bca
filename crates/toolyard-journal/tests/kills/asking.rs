//! The person who is asked about calls, and which answer a call runs under.

use crate::{
    plan::Says,
    tools::{pause, say},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};
use toolyard::{
    Answer, AnswerRecord, ApprovalRequest, Approver, CallId, QuestionRecord, Receipt, RequestId, async_trait,
};

/// The note that a changed call has.
pub(crate) const NOTE: &str = "edited";

/// Says what it is asked, what it answers, and which answers count. It answers at once or later, as the arguments say.
pub(crate) struct Person {
    pub(crate) life: usize,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let (id, arguments) = (request.call_id(), request.arguments());
        say(&format!("asked {id} {}", request.id()));
        let is_late = arguments["late"].as_u64().is_some_and(|life| (self.life as u64) < life);
        for _ in 0..if is_late { 40 } else { id.as_str().len() % 4 } {
            pause(1).await;
        }
        let says = Says::of(arguments);
        say(&format!("answering {id} {} {}", request.id(), says.name()));
        match says {
            Says::Allow => Answer::allow("ada"),
            Says::Deny => Answer::deny("ada"),
            Says::Edit => Answer::edit("ada", noted(arguments).to_string()),
        }
    }

    fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
        match receipt {
            Receipt::Taken => say(&format!("answered {} {}", request.call_id(), request.id())),
            Receipt::Withdrawn => {}
            other => say(&format!("fault the answer about {} is {other:?}", request.call_id())),
        }
    }
}

/// The same arguments with a note.
fn noted(arguments: &Value) -> Value {
    let mut noted = arguments.clone();
    noted["note"] = json!(NOTE);
    noted
}

/// The questions about calls that this life has recorded, and those that were answered with yes, by whomever and whenever.
#[derive(Clone, Default)]
pub(crate) struct Consents(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    calls: BTreeMap<String, CallId>,
    allowed: BTreeMap<CallId, RequestId>,
}

impl Consents {
    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().expect("nobody panics with it")
    }

    pub(crate) fn asked(&self, record: &QuestionRecord<'_>) {
        let (id, request) = (record.request.call_id(), record.request.id());
        if let Some(shared) = record.shares {
            say(&format!("shares {id} {request} {shared}"));
        }
        self.recorded().calls.insert(request.to_string(), id.clone());
    }

    pub(crate) fn answered(&self, record: &AnswerRecord<'_>) {
        let mut recorded = self.recorded();
        let Some(id) = recorded.calls.get(&record.request.to_string()).cloned() else {
            return say(&format!("fault an answer to {}, which was not recorded", record.request));
        };
        if record.answer.allows() {
            recorded.allowed.insert(id, record.request);
        }
    }

    /// The question whose answer lets this call run, as far as this life knows.
    pub(crate) fn of(&self, id: &CallId) -> Option<RequestId> {
        self.recorded().allowed.get(id).copied()
    }
}
