//! Redaction of JSON data.

use super::{
    Redactor,
    marks::{self, Marks},
    pass::Pass,
    patterns,
};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;

impl Redactor {
    /// Redacts data: its strings and numbers, its field names, and strings under names such as `password`. A number
    /// that contains a secret becomes a string.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// use toolyard_redact::Redactor;
    /// let seen = json!({"user": "ada", "password": "swordfish"});
    /// let shown = Redactor::standard().value(&seen).into_owned();
    /// assert_eq!(shown, json!({"user": "ada", "password": "[redacted: password]"}));
    /// ```
    pub fn value<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        Pass::of(self).value(value)
    }
}

impl Pass<'_> {
    /// Redacts data.
    pub(super) fn value<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        self.changed(value).map_or(Cow::Borrowed(value), Cow::Owned)
    }

    /// The redacted data; `None` if nothing changed.
    fn changed(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => owned(self.text(text)).map(Value::String),
            Value::Array(items) => self.items(items).map(Value::Array),
            Value::Object(fields) => self.fields(fields).map(Value::Object),
            Value::Number(number) => self.number(number).map(Value::String),
            Value::Null | Value::Bool(_) => None,
        }
    }

    /// The replacement of a number that contains a registered secret. Patterns do not apply to numbers.
    fn number(&self, number: &Number) -> Option<String> {
        self.redactor.secrets.as_ref()?;
        owned(self.data(&number.to_string()))
    }

    fn items(&self, items: &[Value]) -> Option<Vec<Value>> {
        let (at, first) = items.iter().enumerate().find_map(|(at, item)| Some((at, self.changed(item)?)))?;
        let rest = items[at + 1..].iter().map(|item| self.value(item).into_owned());
        Some(items[..at].iter().cloned().chain([first]).chain(rest).collect())
    }

    fn fields(&self, fields: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut first = fields.iter().enumerate().find_map(|(at, (name, value))| {
            let changed = self.changed_field(name, value)?;
            Some((at, changed))
        });
        let from = first.as_ref()?.0;
        let mut shown = Map::with_capacity(fields.len());
        for (at, (name, value)) in fields.iter().enumerate() {
            // Each field is visited only once; repeated visits would multiply with every level of nesting.
            let changed = if at > from { self.changed_field(name, value) } else { None };
            let changed =
                changed.or_else(|| first.take_if(|(first, _)| *first == at).map(|(_, field)| field));
            let (mut name, value) = changed.unwrap_or((Cow::Borrowed(name.as_str()), Cow::Borrowed(value)));
            // Names may become equal when redacted; the index is then appended, so that no field is lost.
            if shown.contains_key(name.as_ref()) {
                name = Cow::Owned(format!("{name} ({at})"));
            }
            shown.insert(name.into_owned(), value.into_owned());
        }
        Some(shown)
    }

    /// The redacted field; `None` if nothing changed.
    fn changed_field<'a>(&self, name: &'a str, value: &'a Value) -> Option<(Cow<'a, str>, Cow<'a, Value>)> {
        let value = match self.replacement_for(name, value) {
            Some(hidden) => Cow::Owned(hidden),
            None => self.value(value),
        };
        let name = self.text(name);
        let same = matches!((&name, &value), (Cow::Borrowed(_), Cow::Borrowed(_)));
        (!same).then_some((name, value))
    }

    /// The replacement of a string whose name says that it is secret.
    fn replacement_for(&self, name: &str, value: &Value) -> Option<Value> {
        let text = value.as_str().filter(|text| self.redactor.patterns && !marks::is_mark(text))?;
        let kind = Some(patterns::named(name, text)?);
        self.put(Marks::of(kind));
        Some(Value::String(marks::mark(kind)))
    }
}

/// The text, if it was changed.
pub(super) fn owned(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}
