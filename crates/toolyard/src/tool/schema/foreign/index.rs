//! The parts of a foreign schema, and which part each reference leads to.
//!
//! A reference is resolved against the nearest `$id` above it, as JSON Schema says. It may lead to any part of the
//! same document, under any name that the document gives it, and nowhere else.

use super::{BY_NAME, DATA, REFERENCES, in_bounds};
use crate::tool::schema::{Place, SchemaError};
use foldhash::HashMap;
use jsonschema::Draft;
use serde_json::{Map, Value};
use std::rc::Rc;
use url::Url;

/// The name of a document that gives itself none.
const UNNAMED: &str = "json-schema://document/";

/// Keywords that mean something only since 2020-12.
const NEW: &[&str] = &["prefixItems", "$dynamicRef", "$dynamicAnchor"];

/// Where a part is in memory, which identifies it within its document.
type Address = usize;

/// The parts of a schema.
pub(crate) struct Index<'a> {
    draft: Draft,
    /// Every place that a schema may be at.
    parts: HashMap<Address, &'a Value>,
    /// Parts by the name that an `$id` gives them.
    documents: HashMap<Rc<str>, &'a Value>,
    /// Parts by the document they are in and the name that an anchor gives them.
    anchors: HashMap<(Rc<str>, &'a str), &'a Value>,
    /// Parts by the name that a dynamic anchor gives them, and those with a recursive one, whose name is empty.
    dynamic: HashMap<&'a str, Vec<&'a Value>>,
    references: Vec<Reference<'a>>,
    /// What the references of a part lead to.
    targets: HashMap<Address, Vec<&'a Value>>,
    /// Where `items` is a list, as before 2020-12, if it is anywhere.
    tuple: Option<String>,
    /// Whether it has a keyword that means something only since 2020-12.
    is_new: bool,
}

struct Reference<'a> {
    /// The part that has it.
    from: &'a Map<String, Value>,
    keyword: &'a str,
    to: &'a str,
    base: Rc<Url>,
    pointer: String,
}

impl<'a> Index<'a> {
    /// Reads the schema, and resolves all its references.
    pub(crate) fn of(schema: &'a Value, draft: Draft) -> Result<Self, SchemaError> {
        let mut index = Self {
            draft,
            parts: HashMap::default(),
            documents: HashMap::default(),
            anchors: HashMap::default(),
            dynamic: HashMap::default(),
            references: Vec::new(),
            targets: HashMap::default(),
            tuple: None,
            is_new: false,
        };
        let base = Rc::new(Url::parse(UNNAMED).expect("it is a URL"));
        index.documents.insert(UNNAMED.into(), schema);
        index.read(schema, &base, &mut Place::root())?;
        for reference in std::mem::take(&mut index.references) {
            let targets =
                index.resolve(&reference).ok_or(SchemaError::Outside { pointer: reference.pointer })?;
            index.targets.entry(std::ptr::from_ref(reference.from).addr()).or_default().extend(targets);
        }
        Ok(index)
    }

    /// What the references of this part lead to.
    pub(crate) fn targets(&self, part: &Map<String, Value>) -> &[&'a Value] {
        self.targets.get(&std::ptr::from_ref(part).addr()).map_or(&[], Vec::as_slice)
    }

    /// The draft by which it is to be read. A list of `items` is no schema since 2020-12 and means a tuple in the
    /// drafts before, so a schema that has one, and nothing that is newer, is read by the last of those.
    pub(crate) fn draft(&self) -> Result<Draft, SchemaError> {
        match &self.tuple {
            Some(_) if self.draft != Draft::Draft202012 => Ok(self.draft),
            Some(pointer) if self.is_new => {
                let why = "a list of items is a tuple of older drafts, and the schema also has keywords of 2020-12; \
                           write prefixItems for items, and items for additionalItems";
                Err(SchemaError::Malformed { pointer: pointer.clone(), why: why.to_owned() })
            }
            Some(_) => Ok(Draft::Draft201909),
            None => Ok(self.draft),
        }
    }

    /// How many steps it costs to match a short text with the patterns of the part that has most of them.
    pub(crate) fn text_steps(&self) -> usize {
        let of = |part: &Value| {
            let one = part.get("pattern").and_then(Value::as_str);
            let named = part.get("patternProperties").and_then(Value::as_object);
            let named = named.into_iter().flat_map(Map::keys).map(String::as_str);
            one.into_iter().chain(named).map(steps_of_pattern).sum()
        };
        self.parts().map(of).max().unwrap_or_default()
    }

    /// Every part.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &'a Value> {
        self.parts.values().copied()
    }

    fn read(&mut self, schema: &'a Value, base: &Rc<Url>, at: &mut Place) -> Result<(), SchemaError> {
        in_bounds(at)?;
        self.parts.insert(std::ptr::from_ref(schema).addr(), schema);
        let Value::Object(keywords) = schema else { return self.read_data(schema, at) };
        let base = &self.name(schema, keywords, base, at)?;
        keywords.iter().try_for_each(|(keyword, value)| {
            at.within(keyword, |at| self.read_keyword(keywords, keyword, value, base, at))
        })
    }

    fn read_keyword(
        &mut self,
        from: &'a Map<String, Value>,
        keyword: &'a str,
        value: &'a Value,
        base: &Rc<Url>,
        at: &mut Place,
    ) -> Result<(), SchemaError> {
        self.is_new |= NEW.contains(&keyword);
        match (keyword, value) {
            ("items", Value::Array(_)) if self.tuple.is_none() => self.tuple = Some(at.pointer()),
            _ => {}
        }
        match (keyword, value) {
            (keyword, Value::String(to)) if REFERENCES.contains(&keyword) => {
                let (base, pointer) = (base.clone(), at.pointer());
                self.references.push(Reference { from, keyword, to, base, pointer });
                Ok(())
            }
            (keyword, value) if DATA.contains(&keyword) => self.read_data(value, at),
            (keyword, Value::Object(named)) if BY_NAME.contains(&keyword) => {
                named.iter().try_for_each(|(name, schema)| at.within(name, |at| self.read(schema, base, at)))
            }
            (_, Value::Array(items)) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(n, item)| at.within(&n.to_string(), |at| self.read(item, base, at)))
            }
            (_, value) => self.read(value, base, at),
        }
    }

    /// Checks that data is nested no deeper than a schema may be.
    fn read_data(&self, data: &Value, at: &mut Place) -> Result<(), SchemaError> {
        in_bounds(at)?;
        match data {
            Value::Array(items) => {
                items.iter().try_for_each(|item| at.within("-", |at| self.read_data(item, at)))
            }
            Value::Object(fields) => {
                fields.iter().try_for_each(|(name, field)| at.within(name, |at| self.read_data(field, at)))
            }
            _ => Ok(()),
        }
    }

    /// Notes the names that a part gives itself. Returns the base of the references in it.
    fn name(
        &mut self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
        base: &Rc<Url>,
        at: &mut Place,
    ) -> Result<Rc<Url>, SchemaError> {
        let text = |keyword: &str| keywords.get(keyword).and_then(Value::as_str);
        let is_old = matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7);
        // Beside a reference, the older drafts ignore every other keyword.
        let id = text(if self.draft == Draft::Draft4 { "id" } else { "$id" });
        let id = id.filter(|_| !(is_old && keywords.contains_key("$ref")));
        let mut base = base.clone();
        if let Some(id) = id {
            match id.strip_prefix('#') {
                Some(anchor) if is_old => self.anchor(&base, anchor, schema),
                _ => base = self.document(id, &base, schema, at)?,
            }
        }
        if let Some(anchor) = text("$anchor") {
            self.anchor(&base, anchor, schema);
        }
        if let Some(anchor) = text("$dynamicAnchor") {
            self.anchor(&base, anchor, schema);
            self.dynamic.entry(anchor).or_default().push(schema);
        }
        if keywords.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            self.dynamic.entry("").or_default().push(schema);
        }
        Ok(base)
    }

    fn anchor(&mut self, base: &Url, name: &'a str, schema: &'a Value) {
        self.anchors.insert((document_of(base), name), schema);
    }

    /// Notes that a part is a document of its own, and returns its base.
    fn document(
        &mut self,
        id: &str,
        base: &Url,
        schema: &'a Value,
        at: &mut Place,
    ) -> Result<Rc<Url>, SchemaError> {
        let malformed = |why: &str| {
            let pointer = at.pointer();
            SchemaError::Malformed { pointer, why: why.to_owned() }
        };
        let url =
            base.join(id).map_err(|error| malformed(&format!("'{id}' is no URI reference: {error}")))?;
        match self.documents.insert(document_of(&url), schema) {
            Some(other) if !std::ptr::eq(other, schema) => {
                Err(malformed(&format!("two parts have the $id '{id}'; give each its own")))
            }
            _ => Ok(Rc::new(url)),
        }
    }

    /// The parts that a reference may lead to; `None` if it leads out of the document or to no part of it.
    fn resolve(&self, reference: &Reference<'a>) -> Option<Vec<&'a Value>> {
        let url = reference.base.join(reference.to).ok()?;
        let fragment = decoded(url.fragment().unwrap_or_default())?;
        let document = self.documents.get(&document_of(&url)).copied();
        let target = match fragment.as_str() {
            "" => document?,
            pointer if pointer.starts_with('/') => document?.pointer(pointer)?,
            anchor => self.anchors.get(&(document_of(&url), anchor))?,
        };
        // What looks like data to this reader must not be a schema to the validator.
        self.parts.get(&std::ptr::from_ref(target).addr())?;
        let dynamic = match reference.keyword {
            "$dynamicRef" => self.dynamic.get(fragment.as_str()),
            "$recursiveRef" => self.dynamic.get(""),
            _ => None,
        };
        Some(dynamic.into_iter().flatten().copied().chain([target]).collect())
    }
}

/// How many steps it costs to match a short text with this pattern. One that can backtrack does so, at worst, as often
/// as the engine lets it.
fn steps_of_pattern(pattern: &str) -> usize {
    const BACKTRACKS: [&str; 5] = ["(?=", "(?!", "(?<", "(?>", "\\k"];
    let mut after_backslash = false;
    let refers_back = pattern.chars().any(|c| {
        let refers = after_backslash && c.is_ascii_digit();
        after_backslash = c == '\\' && !after_backslash;
        refers
    });
    if refers_back || BACKTRACKS.iter().any(|sign| pattern.contains(sign)) { 2_000 } else { 1 }
}

/// The document part of a URL.
fn document_of(url: &Url) -> Rc<str> {
    url[..url::Position::AfterQuery].into()
}

/// A fragment with its percent signs decoded; `None` if it is not UTF-8 then.
fn decoded(fragment: &str) -> Option<String> {
    let bytes = fragment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| fragment.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}
