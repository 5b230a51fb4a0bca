//! One table of the configuration, read key by key: keys that are never requested are unknown.

use super::{ConfigError, duration, size};
use std::{
    borrow::Cow,
    num::{NonZeroU32, NonZeroUsize},
    ops::Range,
    path::Path,
    time::Duration,
};
use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};
use toolyard::PolicyError;

/// The text of a configuration, from which line numbers are computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// Makes an error at this place.
    pub(super) fn error(&self, at: &Range<usize>, what: impl Into<String>) -> ConfigError {
        let before = self.text.get(..at.start).unwrap_or_default();
        ConfigError {
            file: self.file.display().to_string(),
            line: Some(before.matches('\n').count() + 1),
            what: what.into(),
        }
    }
}

/// Something read, and its place in the file.
pub(super) type Placed<T> = (T, Range<usize>);

/// A value, and its place in the file.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// The content of a key that takes a table or `false`.
pub(super) enum TableOrFalse<'a> {
    /// `false`.
    False,
    /// The table.
    Table(Section<'a>),
}

/// The content of a key that takes a boolean or a string.
pub(super) enum BoolOrString {
    /// The boolean.
    Bool(bool),
    /// The string.
    String(String),
}

/// The content of a key that takes a table or a number.
pub(super) enum TableOrNumber<'a> {
    /// The number.
    Number(u64),
    /// The table.
    Table(Section<'a>),
}

/// The content of a key that takes a word or a table.
pub(super) enum TableOrWord<'a> {
    /// The word.
    Word(Placed<String>),
    /// The table.
    Table(Section<'a>),
}

/// One table of the configuration.
pub(super) struct Section<'a> {
    source: Source<'a>,
    /// Its name as it is written, such as `[pools]`; empty for the whole file.
    name: String,
    entries: Vec<(Spanned<Cow<'a, str>>, Value<'a>)>,
    /// The keys that have been requested and are thereby known, each with its place if the file has it.
    known: Vec<(&'static str, Option<Range<usize>>)>,
}

impl<'a> Section<'a> {
    /// Parses the whole file.
    pub(super) fn file(source: Source<'a>) -> Result<Self, ConfigError> {
        let table = DeTable::parse(source.text).map_err(|error| {
            let what = error.message().replace(['\r', '\n'], " ");
            source.error(&error.span().unwrap_or(0..0), format!("not TOML: {what}"))
        })?;
        Ok(Self::of(source, String::new(), table.into_inner()))
    }

    fn of(source: Source<'a>, name: String, table: DeTable<'a>) -> Self {
        Self { source, name, entries: table.into_iter().collect(), known: Vec::new() }
    }

    /// Makes an error at this place.
    pub(super) fn error(&self, at: &Range<usize>, what: impl Into<String>) -> ConfigError {
        self.source.error(at, what)
    }

    /// Takes the value of a key, and makes the key known.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        let at = self.entries.iter().position(|(name, _)| name.get_ref() == key);
        let value = at.map(|at| self.entries.swap_remove(at).1);
        self.known.push((key, value.as_ref().map(Spanned::span)));
        value
    }

    /// Takes a table, or an empty one if it is missing.
    pub(super) fn section(&mut self, key: &'static str) -> Result<Section<'a>, ConfigError> {
        match self.take(key) {
            None => Ok(Self::of(self.source, self.name_of(key), DeTable::new())),
            Some(value) => self.table(self.name_of(key), value),
        }
    }

    /// Takes a table, or `false` to disable what the table would configure.
    pub(super) fn table_or_false(
        &mut self,
        key: &'static str,
    ) -> Result<Option<TableOrFalse<'a>>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let at = value.span();
        match value.into_inner() {
            DeValue::Boolean(false) => Ok(Some(TableOrFalse::False)),
            DeValue::Table(table) => {
                Ok(Some(TableOrFalse::Table(Self::of(self.source, self.name_of(key), table))))
            }
            other => Err(self.type_error(key, &at, "a table, or false", &other)),
        }
    }

    /// Takes a table, or a number of at least 0.
    pub(super) fn table_or_number(
        &mut self,
        key: &'static str,
    ) -> Result<Option<TableOrNumber<'a>>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let at = value.span();
        match value.into_inner() {
            DeValue::Table(table) => {
                Ok(Some(TableOrNumber::Table(Self::of(self.source, self.name_of(key), table))))
            }
            DeValue::Integer(number) => {
                let number = self.bounded(key, &at, &number, 0, u64::MAX)?;
                Ok(Some(TableOrNumber::Number(number)))
            }
            other => Err(self.type_error(key, &at, "a table, or a whole number from 0", &other)),
        }
    }

    /// Reads a value already taken as a word or a table.
    pub(super) fn table_or_word(
        &self,
        key: &str,
        value: Value<'a>,
        wanted: &str,
    ) -> Result<TableOrWord<'a>, ConfigError> {
        let at = value.span();
        match value.into_inner() {
            DeValue::String(word) => Ok(TableOrWord::Word((word.into_owned(), at))),
            DeValue::Table(table) => Ok(TableOrWord::Table(Self::of(self.source, self.name_of(key), table))),
            other => Err(self.type_error(key, &at, wanted, &other)),
        }
    }

    /// The full name of a table inside this one.
    fn name_of(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => format!("[{key}]"),
            outer => format!("{outer} {key}"),
        }
    }

    fn table(&self, name: String, value: Value<'a>) -> Result<Section<'a>, ConfigError> {
        let at = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Self::of(self.source, name, table)),
            other => Err(self.error(&at, format!("{name} must be a table, not {}", type_name(&other)))),
        }
    }

    /// Takes every entry, whatever its name, in file order.
    pub(super) fn entries(&mut self) -> Vec<(String, Range<usize>, Value<'a>)> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (Spanned<Cow<'a, str>>, _)| {
            let at = key.span();
            (key.into_inner().into_owned(), at, value)
        };
        entries.into_iter().map(entry).collect()
    }

    /// Takes every entry as a table.
    pub(super) fn sections(&mut self) -> Result<Vec<(String, Range<usize>, Section<'a>)>, ConfigError> {
        let entries = self.entries();
        let outer = self.name.trim_matches(['[', ']']);
        let section = |(key, at, value): (String, _, _)| {
            let inner = self.table(format!("[{outer}.\"{key}\"]"), value)?;
            Ok((key, at, inner))
        };
        entries.into_iter().map(section).collect()
    }

    /// Takes a string.
    pub(super) fn string(&mut self, key: &'static str) -> Result<Option<Placed<String>>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let at = value.span();
        match value.into_inner() {
            DeValue::String(text) => Ok(Some((text.into_owned(), at))),
            other => Err(self.type_error(key, &at, "a string", &other)),
        }
    }

    /// Takes a number of at least 1.
    pub(super) fn count(&mut self, key: &'static str) -> Result<Option<NonZeroUsize>, ConfigError> {
        let count = self.integer(key, 1, usize::MAX as u64)?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).and_then(NonZeroUsize::new))
    }

    /// Takes a number of at least 1 that fits in 32 bits.
    pub(super) fn small_count(&mut self, key: &'static str) -> Result<Option<NonZeroU32>, ConfigError> {
        let count = self.integer(key, 1, u32::MAX.into())?;
        Ok(count.and_then(|count| u32::try_from(count).ok()).and_then(NonZeroU32::new))
    }

    /// Takes a whole number within these bounds.
    pub(super) fn integer(
        &mut self,
        key: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Integer(number) => self.bounded(key, &value.span(), number, least, most).map(Some),
            other => Err(self.type_error(key, &value.span(), &integer_wanted(least, most), other)),
        }
    }

    fn bounded(
        &self,
        key: &str,
        at: &Range<usize>,
        number: &DeInteger<'_>,
        least: u64,
        most: u64,
    ) -> Result<u64, ConfigError> {
        let parsed = u64::from_str_radix(number.as_str(), number.radix()).ok();
        parsed.filter(|parsed| (least..=most).contains(parsed)).ok_or_else(|| {
            let wanted = integer_wanted(least, most);
            self.error(at, format!("{}{key} must be {wanted}, not {number}", self.prefix()))
        })
    }

    /// Takes a number, whole or with a fraction. NaN and infinity pass: the caller checks the range.
    pub(super) fn number(&mut self, key: &'static str) -> Result<Option<f64>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = match value.get_ref() {
            // A number beyond 128 bits is out of every valid range.
            DeValue::Integer(number) => {
                let whole = i128::from_str_radix(number.as_str(), number.radix());
                Some(whole.map_or(f64::INFINITY, |whole| whole as f64))
            }
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        let type_error = || self.type_error(key, &value.span(), "a number", value.get_ref());
        number.ok_or_else(type_error).map(Some)
    }

    /// Takes a boolean.
    pub(super) fn boolean(&mut self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(on) => Ok(Some(*on)),
            other => Err(self.type_error(key, &value.span(), "true or false", other)),
        }
    }

    /// Takes a boolean or a string.
    pub(super) fn bool_or_string(&mut self, key: &'static str) -> Result<Option<BoolOrString>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(on) => Ok(Some(BoolOrString::Bool(*on))),
            DeValue::String(text) => Ok(Some(BoolOrString::String(text.to_string()))),
            other => Err(self.type_error(key, &value.span(), "true, false or a string", other)),
        }
    }

    /// Takes a duration above zero.
    pub(super) fn duration(&mut self, key: &'static str) -> Result<Option<Duration>, ConfigError> {
        let Some((text, at)) = self.string(key)? else { return Ok(None) };
        let parsed = duration::parse(&text);
        let parsed = parsed.map_err(|error| self.error(&at, format!("{}{key}: {error}", self.prefix())));
        parsed.map(Some)
    }

    /// Takes a size above zero, in bytes.
    pub(super) fn size(&mut self, key: &'static str) -> Result<Option<u64>, ConfigError> {
        let Some((text, at)) = self.string(key)? else { return Ok(None) };
        let parsed = size::parse(&text);
        parsed.map_err(|error| self.error(&at, format!("{}{key}: {error}", self.prefix()))).map(Some)
    }

    /// Takes one of the given words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<Placed<T>>, ConfigError> {
        let Some((word, at)) = self.string(key)? else { return Ok(None) };
        let chosen = choices.iter().find(|(name, _)| *name == word);
        let Some((_, choice)) = chosen else {
            let names = choices.iter().map(|(name, _)| *name);
            return Err(self.error(&at, self.unknown_word(key, &word, names)));
        };
        Ok(Some((*choice, at)))
    }

    fn unknown_word(&self, key: &str, word: &str, names: impl Iterator<Item = &'static str>) -> String {
        let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
        format!("{}{key} must be one of {}, not '{word}'", self.prefix(), names.join(", "))
    }

    /// Takes a list of strings, each with its place.
    pub(super) fn strings(&mut self, key: &'static str) -> Result<Option<Vec<Placed<String>>>, ConfigError> {
        const WANTED: &str = "a list of strings";
        let Some(value) = self.take(key) else { return Ok(None) };
        let at = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            return Err(self.error(&at, format!("{}{key} must be {WANTED}", self.prefix())));
        };
        let text = |item: Value<'a>| {
            let at = item.span();
            match item.into_inner() {
                DeValue::String(text) => Ok((text.into_owned(), at)),
                other => Err(self.type_error(key, &at, WANTED, &other)),
            }
        };
        items.into_iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// Ends reading. Any entry that is left is an unknown key.
    pub(super) fn finish(mut self) -> Result<(), ConfigError> {
        let Some((key, at, _)) = self.entries().into_iter().next() else {
            return Ok(());
        };
        let place = match self.name.as_str() {
            "" => String::new(),
            name => format!(" in {name}"),
        };
        let nearest = super::nearest(&key, self.known.iter().map(|(key, _)| *key));
        Err(self.error(&at, format!("unknown key '{key}'{place}; {nearest}")))
    }

    /// Reports a setting that was refused. If the file does not set it, the error points to `with`, the key that
    /// conflicts with its default.
    pub(super) fn policy_error(&self, error: &PolicyError, with: &str) -> ConfigError {
        let placed = |wanted: &str| {
            let known = self.known.iter().find(|(key, _)| *key == wanted);
            known.and_then(|(_, place)| place.clone())
        };
        match placed(error.key()) {
            Some(at) => self.error(&at, format!("{}{error}", self.prefix())),
            None => {
                let at = placed(with).unwrap_or_default();
                self.error(&at, format!("{}{error}: set it too", self.prefix()))
            }
        }
    }

    pub(super) fn prefix(&self) -> String {
        match self.name.as_str() {
            "" => String::new(),
            name => format!("{name} "),
        }
    }

    fn type_error(&self, key: &str, at: &Range<usize>, wanted: &str, found: &DeValue<'_>) -> ConfigError {
        self.error(at, format!("{}{key} must be {wanted}, not {}", self.prefix(), type_name(found)))
    }
}

fn integer_wanted(least: u64, most: u64) -> String {
    match most {
        // An upper bound that nobody reaches is left out.
        _ if most >= usize::MAX as u64 => format!("a whole number from {least}"),
        most => format!("a whole number from {least} to {most}"),
    }
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(true) => "true",
        DeValue::Boolean(false) => "false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
