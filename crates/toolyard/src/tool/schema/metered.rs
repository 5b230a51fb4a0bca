//! Arguments as a validator of a foreign schema sees them: every look at them is a [`step`].

use super::meter::{step, step_for_text};
use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, SerdeJson},
};
use serde_json::{Map, Number, Value, map};
use std::{borrow::Cow, slice};

/// JSON of which every look is counted.
pub(crate) struct Metered;

/// A value in it.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a>(pub(crate) &'a Value);

/// The fields of an object in it.
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

/// The items of an array in it.
pub(crate) struct Items<'a>(&'a [Value]);

/// Bytes of text that are looked at in one step.
const BYTES_A_STEP: usize = 64;

impl Json for Metered {
    type Node<'a> = Counted<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Counted<'_>) -> T) -> T {
        step(1);
        SerdeJson::with_string_node(buffer, string, |value| f(Counted(value)))
    }
}

impl<'a> Node<'a, Metered> for Counted<'a> {
    type Object = Fields<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Fields<'a>> {
        step(1);
        self.0.as_object().map(Fields)
    }

    fn as_array(&self) -> Option<Items<'a>> {
        step(1);
        self.0.as_array().map(|items| Items(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        step(1);
        let text = self.0.as_str()?;
        step_for_text(text);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        step(1);
        match self.0 {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        step(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        step(1);
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        step(1);
        Node::<SerdeJson>::json_type(&self.0)
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.0.as_str()?;
        step(1 + text.len() / BYTES_A_STEP);
        Node::<SerdeJson>::string_length(&self.0)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        step(1 + size(expected));
        Node::<SerdeJson>::equals_value(&self.0, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        step(1);
        Node::<SerdeJson>::identity(&self.0)
    }
}

/// How much of a value is compared with another one at most, in steps.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / BYTES_A_STEP,
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

/// How many values there are in this one, texts counted by their length.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len() / BYTES_A_STEP,
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The fields of an object, one after another.
pub(crate) struct EachField<'a>(map::Iter<'a>);

impl<'a> Iterator for EachField<'a> {
    type Item = (&'a str, Counted<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        step_for_text(name);
        Some((name, Counted(value)))
    }
}

impl<'a> Object<'a, Metered> for Fields<'a> {
    type Node = Counted<'a>;
    type MemberName = &'a str;
    type MembersIter = EachField<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Counted<'a>> {
        step(1);
        self.0.get(key).map(Counted)
    }

    fn members(&self) -> EachField<'a> {
        EachField(self.0.iter())
    }
}

/// The items of an array, one after another.
pub(crate) struct EachItem<'a>(slice::Iter<'a, Value>);

impl<'a> Iterator for EachItem<'a> {
    type Item = Counted<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.0.next()?;
        step(1);
        Some(Counted(item))
    }
}

impl<'a> Array<'a, Metered> for Items<'a> {
    type Node = Counted<'a>;
    type ElementsIter = EachItem<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> EachItem<'a> {
        EachItem(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        step(self.0.iter().map(count).sum::<usize>());
        Array::<SerdeJson>::is_unique(&self.0)
    }
}
