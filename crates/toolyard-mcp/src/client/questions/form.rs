//! A server's form as a person sees it, and the server's own values for what is picked in it.
//!
//! Everything shown is made fit to be seen. A picked value goes back as the server wrote it. If two values can no
//! longer be told apart, or nothing of one is visible, the form is not shown.

use crate::client::text::{TooLarge, clean, size};
use rmcp::model::{ElicitResult, ElicitationSchema};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Maximum size of a form, in bytes.
const FORM_BYTES_MAX: usize = 64 << 10;

/// Why a form is not shown.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// The form is larger than anyone would fill in.
    #[error("the form has more than {FORM_BYTES_MAX} bytes")]
    Large,
    /// The name of a field hides something or is too long to be read.
    #[error("a field of the form has a name that is too long or has invisible characters")]
    Name,
    /// Choices look alike, or one has nothing visible.
    #[error("two choices of a field of the form look alike, or one is invisible")]
    Choices,
    /// The form is not valid once it is made fit to be seen.
    #[error("the form is not valid without its invisible characters")]
    Invalid,
}

/// A form to be shown.
#[derive(Debug)]
pub(crate) struct Form {
    /// The form as it is shown.
    pub(crate) schema: ElicitationSchema,
    /// By field name, the server's values of choices that are shown differently.
    originals: HashMap<String, OriginalByShown>,
}

/// The server's values of choices, by what is shown of them.
type OriginalByShown = HashMap<String, String>;

impl Form {
    /// Makes a form fit to be shown.
    pub(crate) fn of(schema: ElicitationSchema) -> Result<Self, Unfit> {
        size::of(&schema, FORM_BYTES_MAX).map_err(|TooLarge| Unfit::Large)?;
        let mut form = serde_json::to_value(schema).map_err(|_| Unfit::Invalid)?;
        let mut originals = HashMap::new();
        clean_texts(&mut form);
        for (name, field) in form.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            if clean::text(name, clean::NAME_MAX) != *name {
                return Err(Unfit::Name);
            }
            let differ = clean_field(field)?;
            if !differ.is_empty() {
                originals.insert(name.clone(), differ);
            }
        }
        let schema = serde_json::from_value(form).map_err(|_| Unfit::Invalid)?;
        Ok(Self { schema, originals })
    }

    /// The answer with the server's values in place of the shown ones.
    pub(crate) fn answer(&self, mut answer: ElicitResult) -> ElicitResult {
        let Some(Value::Object(fields)) = &mut answer.content else { return answer };
        for (name, originals) in &self.originals {
            match fields.get_mut(name) {
                Some(Value::Array(all)) => all.iter_mut().for_each(|one| restore(one, originals)),
                Some(one) => restore(one, originals),
                None => {}
            }
        }
        answer
    }
}

fn restore(value: &mut Value, originals: &OriginalByShown) {
    if let Value::String(shown) = value
        && let Some(raw) = originals.get(shown)
    {
        shown.clone_from(raw);
    }
}

/// Makes a field fit to be shown; returns the choices that are shown differently.
fn clean_field(field: &mut Value) -> Result<OriginalByShown, Unfit> {
    clean_texts(field);
    let Some(field) = field.as_object_mut() else { return Err(Unfit::Invalid) };
    let mut originals = OriginalByShown::new();
    clean_choices(field, &mut originals)?;
    if let Some(Value::Object(items)) = field.get_mut("items") {
        clean_choices(items, &mut originals)?;
    }
    match field.get_mut("default") {
        Some(Value::Array(all)) => all.iter_mut().for_each(clean_value),
        Some(one) => clean_value(one),
        None => {}
    }
    Ok(originals)
}

/// Cleans the title and description of a form or of a field.
fn clean_texts(of: &mut Value) {
    for word in ["title", "description"] {
        if let Some(Value::String(text)) = of.get_mut(word) {
            // Never cut: the form as a whole is within this bound.
            *text = clean::text(text, FORM_BYTES_MAX);
        }
    }
}

/// Cleans the choices of a field, in every way in which a schema can list them.
fn clean_choices(of: &mut Map<String, Value>, originals: &mut OriginalByShown) -> Result<(), Unfit> {
    for word in ["enum", "enumNames"] {
        let Some(Value::Array(all)) = of.get_mut(word) else { continue };
        let differ = distinct(all.iter_mut())?;
        if word == "enum" {
            originals.extend(differ);
        }
    }
    for word in ["oneOf", "anyOf"] {
        let Some(Value::Array(all)) = of.get_mut(word) else { continue };
        distinct(all.iter_mut().filter_map(|one| one.get_mut("title")))?;
        originals.extend(distinct(all.iter_mut().filter_map(|one| one.get_mut("const")))?);
    }
    Ok(())
}

/// Cleans texts that must stay distinct; returns the original texts by the shown ones, where they differ.
fn distinct<'a>(texts: impl Iterator<Item = &'a mut Value>) -> Result<OriginalByShown, Unfit> {
    let mut all = OriginalByShown::new();
    for text in texts {
        let Value::String(raw) = text.clone() else { continue };
        clean_value(text);
        let shown = text.as_str().unwrap_or_default().to_owned();
        if shown.trim().is_empty() && !raw.is_empty() {
            return Err(Unfit::Choices);
        }
        let same = all.entry(shown).or_insert_with(|| raw.clone());
        if *same != raw {
            return Err(Unfit::Choices);
        }
    }
    all.retain(|shown, raw| shown != raw);
    Ok(all)
}

fn clean_value(value: &mut Value) {
    if let Value::String(text) = value {
        // Never cut: the form as a whole is within this bound.
        *text = clean::text(text, FORM_BYTES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ElicitationAction;
    use serde_json::json;

    fn form(field: Value) -> Result<Form, Unfit> {
        let form = json!({"type": "object", "title": "T\u{202e}", "properties": {"f": field}});
        Form::of(serde_json::from_value(form).unwrap())
    }

    /// However choices are listed, the answer has the values that the server wrote.
    #[test]
    fn what_is_picked_is_what_was_written() {
        let raw = ["a\u{202e}", "b"];
        let titled = json!([{"const": raw[0], "title": "\u{1b}A"}, {"const": raw[1], "title": "B"}]);
        let shown = json!([{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]);
        for (field, wanted, is_many) in [
            (json!({"type": "string", "enum": raw}), json!({"type": "string", "enum": ["a", "b"]}), false),
            (
                json!({"type": "string", "enum": raw, "enumNames": ["A\u{200b}", "B"], "default": raw[0]}),
                json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "a"}),
                false,
            ),
            (json!({"type": "string", "oneOf": titled}), json!({"type": "string", "oneOf": shown}), false),
            (
                json!({"type": "array", "items": {"type": "string", "enum": raw}, "default": [raw[0]]}),
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]}),
                true,
            ),
            (
                json!({"type": "array", "items": {"anyOf": titled}}),
                json!({"type": "array", "items": {"anyOf": shown}}),
                true,
            ),
        ] {
            let form = form(field).unwrap();
            let schema = serde_json::to_value(&form.schema).unwrap();
            assert_eq!((&schema["properties"]["f"], &schema["title"]), (&wanted, &json!("T")));
            let many = |texts: [&str; 2]| if is_many { json!(texts) } else { json!(texts[0]) };
            let answer = ElicitResult::new(ElicitationAction::Accept);
            let answer = form.answer(answer.with_content(json!({"f": many(["a", "b"]), "g": "a"})));
            assert_eq!(answer.content, Some(json!({"f": many(raw), "g": "a"})));
        }
    }

    /// A form is not shown if a person cannot read it, fill it in or tell its choices apart.
    #[test]
    fn a_form_that_cannot_be_read_is_not_shown() {
        for choices in [["a", "a\u{200b}"], ["a", "\u{202e}"]] {
            let titled = |word: &str, other: &str| json!([{word: choices[0], other: "x"}, {word: choices[1], other: "y"}]);
            for field in [
                json!({"type": "string", "enum": choices}),
                json!({"type": "string", "enum": ["x", "y"], "enumNames": choices}),
                json!({"type": "string", "oneOf": titled("const", "title")}),
                json!({"type": "string", "oneOf": titled("title", "const")}),
                json!({"type": "array", "items": {"type": "string", "enum": choices}}),
            ] {
                assert_eq!(form(field.clone()).unwrap_err(), Unfit::Choices, "{field}");
            }
        }
        for name in ["a\u{202e}".to_owned(), "a".repeat(clean::NAME_MAX + 1)] {
            let hidden = json!({"type": "object", "properties": {name: {"type": "string"}}});
            assert_eq!(Form::of(serde_json::from_value(hidden).unwrap()).unwrap_err(), Unfit::Name);
        }
        let long = json!({"type": "string", "description": "x".repeat(FORM_BYTES_MAX)});
        assert_eq!(form(long).unwrap_err(), Unfit::Large);
    }
}
