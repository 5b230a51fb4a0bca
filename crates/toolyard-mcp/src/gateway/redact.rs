//! Redacts what servers say before a client sees it, as in results and events.

use rmcp::ErrorData;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use toolyard::Redactor;

/// Takes secrets out of what servers say: out of notices as out of events, out of questions as out of results.
#[derive(Debug, Clone, Default)]
pub(super) struct MaybeRedactor {
    notices: Option<Redactor>,
    questions: Option<Redactor>,
}

impl MaybeRedactor {
    pub(super) fn new(redactor: Option<&Redactor>) -> Self {
        Self { notices: redactor.cloned(), questions: redactor.and_then(Redactor::for_results) }
    }

    pub(super) fn text(&self, text: String) -> String {
        match &self.notices {
            Some(redactor) => redactor.text(&text).into_owned(),
            None => text,
        }
    }

    pub(super) fn data(&self, data: Value) -> Value {
        match &self.notices {
            Some(redactor) => redactor.value(&data).into_owned(),
            None => data,
        }
    }

    /// Redacts all texts in the parameters of a question. Field names stay, because they say what the texts are.
    ///
    /// # Errors
    /// If the redacted parameters are not valid any more.
    pub(super) fn params<T: Serialize + DeserializeOwned>(&self, params: T) -> Result<T, ErrorData> {
        let Some(redactor) = &self.questions else { return Ok(params) };
        let shown = serde_json::to_value(params).and_then(|mut params| {
            texts(&mut params, redactor);
            serde_json::from_value(params)
        });
        shown.map_err(|_| {
            ErrorData::invalid_params("the request is not valid after its secrets were redacted", None)
        })
    }
}

fn texts(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.text(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|field| texts(field, redactor)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ElicitRequestParams;
    use serde_json::json;

    /// A form that asks for a password is still shown, and what it suggests is not one of our secrets.
    #[test]
    fn a_form_stays_a_form_without_its_secrets() {
        let redactor = Redactor::standard().with_secret("correct horse").unwrap();
        let form = |message: &str, default: &str| {
            let password = json!({"type": "string", "default": default});
            let schema = json!({"type": "object", "properties": {"password": password}});
            json!({"mode": "form", "message": message, "requestedSchema": schema})
        };
        let asked: ElicitRequestParams =
            serde_json::from_value(form("Is it correct horse?", "correct horse")).unwrap();
        let shown = MaybeRedactor::new(Some(&redactor)).params(asked).unwrap();
        assert_eq!(serde_json::to_value(shown).unwrap(), form("Is it [redacted]?", "[redacted]"));
    }
}
