//! Tools that tell what became of calls of other tools (JR-6).
//!
//! ```text
//!   a call that was cut off ─► arguments and key in the template ─► a call of the tool that reads ─► its result
//!                                                                    /found is there: done ◄──────────┤
//!                                                                    {"state": …}: what it says ◄─────┘
//! ```

use crate::stand_ins::template::DataTemplate;
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeMap};
use toolyard::{Call, Outcome, Reconciled, Reconciler, ToolOutput};

/// Which tool tells what became of calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reconcile {
    /// It only reads.
    pub(crate) tool: String,
    /// Its arguments, with places for the key and the arguments of the call.
    pub(crate) arguments: DataTemplate,
    /// Where in its result something is, if the call has done its work. Without it the result says so itself.
    pub(crate) found: Option<String>,
}

impl Reconcile {
    /// What the key of the call is called.
    pub(crate) const KEY: &str = "key";
    /// What its arguments are called.
    pub(crate) const ARGS: &str = "args";
    /// What stands before the name of one of them.
    pub(crate) const ARGUMENT: &str = "args.";

    fn question(&self, args: &Value, key: Option<&str>) -> Option<Call> {
        let mut given = Map::new();
        for (name, value) in args.as_object().into_iter().flatten() {
            given.insert(format!("{}{name}", Self::ARGUMENT), value.clone());
        }
        given.insert(Self::ARGS.to_owned(), args.clone());
        given.extend(key.map(|key| (Self::KEY.to_owned(), key.into())));
        // What would be asked without what it is about would find something else.
        let is_given = |name: &&str| given.contains_key(*name);
        if !self.arguments.arguments().iter().all(is_given) {
            return None;
        }
        let arguments = self.arguments.fill(&Value::Object(given));
        Some(Call::new("reconcile", self.tool.as_str(), arguments))
    }

    fn reading(&self, outcome: &Outcome) -> Reconciled {
        let Ok(output) = &outcome.status else { return Reconciled::Unknown };
        let Some(said) = data(output) else { return Reconciled::Unknown };
        match &self.found {
            Some(pointer) if said.pointer(pointer).is_some_and(is_something) => {
                Reconciled::Done(output.clone())
            }
            Some(_) => Reconciled::NotDone { is_final: false },
            None => state(&said),
        }
    }
}

/// The data of a result; of a text what it is as JSON.
fn data(output: &ToolOutput) -> Option<Cow<'_, Value>> {
    output.structured().or_else(|| serde_json::from_str(&output.to_text()).ok().map(Cow::Owned))
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// What `{"state": "done", "output": …}`, `{"state": "not_done", "final": …}` and anything else say.
fn state(said: &Value) -> Reconciled {
    match said["state"].as_str() {
        Some("done") => Reconciled::Done(match &said["output"] {
            Value::Null => ToolOutput::text("done"),
            Value::String(text) => ToolOutput::text(text.as_str()),
            data => ToolOutput::json(data.clone()),
        }),
        Some("not_done") => Reconciled::NotDone { is_final: said["final"] == true },
        _ => Reconciled::Unknown,
    }
}

/// Those of all tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reconciles(pub(crate) BTreeMap<String, Reconcile>);

impl Reconciler for Reconciles {
    fn question(&self, tool: &str, args: &Value, key: Option<&str>) -> Option<Call> {
        self.0.get(tool)?.question(args, key)
    }

    fn reading(&self, tool: &str, outcome: &Outcome) -> Reconciled {
        self.0.get(tool).map_or(Reconciled::Unknown, |reconcile| reconcile.reading(outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolyard::Routing;

    fn reconcile(found: Option<&str>) -> Reconcile {
        let template = json!({"reference": "{key}", "text": "{args.text}", "all": "{args}"});
        let arguments = DataTemplate::parse(template).unwrap();
        Reconcile { tool: "find".to_owned(), arguments, found: found.map(str::to_owned) }
    }

    /// JR-6: the question has what the call had, and is not asked without something that it names.
    #[test]
    fn the_question_is_about_the_call() {
        let asked = |args: Value, key| reconcile(None).question(&args, key);
        let call = asked(json!({"text": 7}), Some("k")).unwrap();
        let expect = json!({"reference": "k", "text": 7, "all": {"text": 7}});
        assert_eq!((&*call.name, call.arguments.to_value()), ("find", expect));
        assert!(asked(json!({"text": 7}), None).is_none() && asked(json!({}), Some("k")).is_none());
    }

    fn read(found: Option<&str>, status: ToolOutput) -> Reconciled {
        let call = Call::new("c", "find", "{}");
        reconcile(found).reading(&Outcome::new(&call, Routing::Read, Ok(status)))
    }

    /// JR-6: a result says it itself, in words, or by having something at a place.
    #[test]
    fn a_result_is_read() {
        let said = |value: Value| read(None, ToolOutput::text(value.to_string()));
        assert_eq!(
            said(json!({"state": "done", "output": "sent"})),
            Reconciled::Done(ToolOutput::text("sent"))
        );
        assert_eq!(said(json!({"state": "not_done"})), Reconciled::NotDone { is_final: false });
        assert_eq!(said(json!({"state": "not_done", "final": true})), Reconciled::NotDone { is_final: true });
        assert_eq!(said(json!({"state": "perhaps"})), Reconciled::Unknown);
        assert_eq!(read(None, ToolOutput::text("done")), Reconciled::Unknown);
        let items = |items: Value| ToolOutput::json(json!({"items": items}));
        assert_eq!(read(Some("/items"), items(json!(["a"]))), Reconciled::Done(items(json!(["a"]))));
        for none in [json!([]), json!(null), json!(false), json!("")] {
            assert_eq!(read(Some("/items"), items(none)), Reconciled::NotDone { is_final: false });
        }
    }
}
