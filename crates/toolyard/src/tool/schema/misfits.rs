//! The report of arguments that do not fit. Arguments come from a model, and may be as long as allowed and wrong in
//! as many places; the report goes back to the model and is short.

use jsonschema::json::Json;
use std::fmt;
use toolyard_core::ValidationError;

/// How many misfits are reported.
const MISFITS_MAX: usize = 100;

/// The longest report of one misfit, in characters.
const MESSAGE_MAX: usize = 200;

/// How much of the value is shown in a message that would be too long with all of it, in characters.
const VALUE_MAX: usize = 40;

/// The first misfits, each with its place and what is wrong.
pub(crate) fn collect<'a, F: Json>(
    validator: &'a jsonschema::Validator<F>,
    args: F::Node<'a>,
) -> Vec<ValidationError> {
    let first = validator.iter_errors(args).take(MISFITS_MAX);
    let shown = first.map(|error| ValidationError { pointer: pointer(&error), message: message(&error) });
    shown.collect()
}

/// The report where the places of misfits are not looked for.
pub(crate) fn terse() -> Vec<ValidationError> {
    let message = "does not fit the tool's schema; the places are not listed, because there may be too many";
    vec![ValidationError { pointer: String::new(), message: message.to_owned() }]
}

/// The place of a misfit. Under a foreign schema it may contain names that the model made up, of any length.
fn pointer(error: &jsonschema::ValidationError<'_>) -> String {
    cut(&error.instance_path().to_string(), MESSAGE_MAX).unwrap_or_else(|cut| cut)
}

/// What is wrong with a value, in at most [`MESSAGE_MAX`] characters.
pub(crate) fn message(error: &jsonschema::ValidationError<'_>) -> String {
    match cut(error, MESSAGE_MAX) {
        Ok(whole) => whole,
        // The message starts with the value, so that cutting it could leave nothing of the reason.
        Err(_) => {
            let value = cut(error.instance(), VALUE_MAX).unwrap_or_else(|cut| cut);
            cut(&error.masked_with(value), MESSAGE_MAX).unwrap_or_else(|cut| cut)
        }
    }
}

/// The text of a value as `Ok`, or, if it has more than `chars_max` characters, its start with `…` as `Err`. Text
/// beyond the cut is never produced.
fn cut(value: &impl fmt::Display, chars_max: usize) -> Result<String, String> {
    struct Bounded {
        text: String,
        left: usize,
    }
    impl fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            match text.char_indices().nth(self.left) {
                None => {
                    self.text.push_str(text);
                    self.left -= text.chars().count();
                    Ok(())
                }
                Some((end, _)) => {
                    self.text.push_str(&text[..end]);
                    self.text.pop();
                    self.text.push('…');
                    Err(fmt::Error)
                }
            }
        }
    }
    let mut bounded = Bounded { text: String::new(), left: chars_max };
    match fmt::Write::write_fmt(&mut bounded, format_args!("{value}")) {
        Ok(()) => Ok(bounded.text),
        Err(fmt::Error) => Err(bounded.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::schema::Schema;
    use serde_json::{Value, json};

    fn misfits(schema: &Value, args: &Value) -> Vec<ValidationError> {
        Schema::compile(schema).unwrap().validate(args).unwrap_err()
    }

    fn message_of(schema: &Value, args: &Value) -> String {
        misfits(schema, args).swap_remove(0).message
    }

    #[test]
    fn a_short_message_is_told_whole() {
        assert_eq!(message_of(&json!({"type": "integer"}), &json!("x")), r#""x" is not of type "integer""#);
    }

    /// CC-4: of a value as long as arguments may be only the start is shown, and the reason stays.
    #[test]
    fn a_long_value_is_told_by_its_beginning() {
        let long = json!("ä".repeat(250_000));
        let message = message_of(&json!({"type": "integer"}), &long);
        assert_eq!(message, format!(r#""{}… is not of type "integer""#, "ä".repeat(VALUE_MAX - 2)));
    }

    /// CC-4: a message that is too long for another reason is cut.
    #[test]
    fn a_message_that_is_still_too_long_is_cut() {
        let args: Value = (0..10_000).map(|n| (format!("wörd{n}"), json!(n))).collect();
        let schema = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
        let message = message_of(&schema, &args);
        assert_eq!(message.chars().count(), MESSAGE_MAX);
        assert!(message.starts_with("Additional properties are not allowed ('wörd0'"), "{message}");
        assert!(message.ends_with('…'), "{message}");
    }

    /// CC-4: under a schema of the subset, pointers consist of names from the schema and of array indexes, never of
    /// the model's words.
    #[test]
    fn a_name_from_the_model_is_in_no_pointer() {
        let args: Value = [("k".repeat(250_000), json!(1))].into_iter().collect();
        for schema in [
            json!({"additionalProperties": false}),
            json!({"properties": {"a": {}}, "additionalProperties": false}),
        ] {
            let misfits = misfits(&schema, &args);
            assert_eq!(misfits[0].pointer, "");
            assert!(misfits[0].message.chars().count() <= MESSAGE_MAX);
        }
    }

    /// CC-4: only the first misfits are reported.
    #[test]
    fn the_first_places_alone_are_told() {
        let schema = json!({"type": "array", "items": {"type": "integer"}});
        let args: Value = (0..50_000).map(|_| json!("x")).collect();
        let misfits = misfits(&schema, &args);
        assert_eq!(misfits.len(), MISFITS_MAX);
        assert_eq!([&*misfits[0].pointer, &*misfits[99].pointer], ["/0", "/99"]);
    }
}
