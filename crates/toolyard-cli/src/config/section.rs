//! One table of the configuration, read key by key: what nobody asked for is an unknown key.

use super::{ConfigError, duration};
use std::{borrow::Cow, num::NonZeroUsize, ops::Range, path::Path, time::Duration};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The text of a configuration, to tell lines by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// An error at this place.
    pub(super) fn error(&self, at: &Range<usize>, what: impl Into<String>) -> ConfigError {
        let before = self.text.get(..at.start).unwrap_or_default();
        ConfigError {
            file: self.file.display().to_string(),
            line: Some(before.matches('\n').count() + 1),
            what: what.into(),
        }
    }
}

/// Something read, and where it stands.
pub(super) type Placed<T> = (T, Range<usize>);

/// A value, and where it stands.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// One table.
pub(super) struct Section<'a> {
    source: Source<'a>,
    /// Its name as it is written, such as `[pools]`; empty for the whole file.
    name: String,
    entries: Vec<(Spanned<Cow<'a, str>>, Value<'a>)>,
    /// The keys that were asked for: those that are known.
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The whole file.
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

    /// An error at this place.
    pub(super) fn error(&self, at: &Range<usize>, what: impl Into<String>) -> ConfigError {
        self.source.error(at, what)
    }

    /// Takes a value.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.known.push(key);
        let at = self.entries.iter().position(|(name, _)| name.get_ref() == key)?;
        Some(self.entries.swap_remove(at).1)
    }

    /// Takes a table; an empty one where there is none.
    pub(super) fn section(&mut self, key: &'static str) -> Result<Section<'a>, ConfigError> {
        let name = match self.name.as_str() {
            "" => format!("[{key}]"),
            outer => format!("{outer} {key}"),
        };
        match self.take(key) {
            None => Ok(Self::of(self.source, name, DeTable::new())),
            Some(value) => self.table(name, value),
        }
    }

    fn table(&self, name: String, value: Value<'a>) -> Result<Section<'a>, ConfigError> {
        let at = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Self::of(self.source, name, table)),
            other => Err(self.error(&at, format!("{name} must be a table, not {}", kind(&other)))),
        }
    }

    /// Takes every entry, whatever its name, in the order of the file.
    pub(super) fn entries(&mut self) -> Vec<(String, Range<usize>, Value<'a>)> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (Spanned<Cow<'a, str>>, _)| {
            let at = key.span();
            (key.into_inner().into_owned(), at, value)
        };
        entries.into_iter().map(entry).collect()
    }

    /// Takes every entry as a table of its own.
    pub(super) fn sections(&mut self) -> Result<Vec<(String, Range<usize>, Section<'a>)>, ConfigError> {
        let entries = self.entries();
        let outer = self.name.trim_matches(['[', ']']);
        let section = |(key, at, value): (String, _, _)| {
            let inner = self.table(format!("[{outer}.\"{key}\"]"), value)?;
            Ok((key, at, inner))
        };
        entries.into_iter().map(section).collect()
    }

    /// Takes a text.
    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<Placed<String>>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let at = value.span();
        match value.into_inner() {
            DeValue::String(text) => Ok(Some((text.into_owned(), at))),
            other => Err(self.wrong(key, &at, "a text in quotes", &other)),
        }
    }

    /// Takes a number from 1.
    pub(super) fn count(&mut self, key: &'static str) -> Result<Option<NonZeroUsize>, ConfigError> {
        const WANTED: &str = "a whole number from 1";
        let Some(value) = self.take(key) else { return Ok(None) };
        let at = value.span();
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong(key, &at, WANTED, value.get_ref()));
        };
        let parsed = usize::from_str_radix(number.as_str(), number.radix());
        match parsed.ok().and_then(NonZeroUsize::new) {
            Some(count) => Ok(Some(count)),
            None => Err(self.error(&at, format!("{}{key} must be {WANTED}, not {number}", self.prefix()))),
        }
    }

    /// Takes a switch.
    pub(super) fn switch(&mut self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(on) => Ok(Some(*on)),
            other => Err(self.wrong(key, &value.span(), "true or false", other)),
        }
    }

    /// Takes a duration above zero.
    pub(super) fn duration(&mut self, key: &'static str) -> Result<Option<Duration>, ConfigError> {
        let Some((text, at)) = self.text(key)? else { return Ok(None) };
        let parsed = duration::parse(&text);
        let parsed = parsed.map_err(|error| self.error(&at, format!("{}{key}: {error}", self.prefix())));
        parsed.map(Some)
    }

    /// Takes one of these words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<Placed<T>>, ConfigError> {
        let Some((word, at)) = self.text(key)? else { return Ok(None) };
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

    /// Takes a list of texts, each with its place.
    pub(super) fn texts(&mut self, key: &'static str) -> Result<Option<Vec<Placed<String>>>, ConfigError> {
        const WANTED: &str = "a list of texts";
        let Some(value) = self.take(key) else { return Ok(None) };
        let at = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            return Err(self.error(&at, format!("{}{key} must be {WANTED}", self.prefix())));
        };
        let text = |item: Value<'a>| {
            let at = item.span();
            match item.into_inner() {
                DeValue::String(text) => Ok((text.into_owned(), at)),
                other => Err(self.wrong(key, &at, WANTED, &other)),
            }
        };
        items.into_iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// Ends the reading: what is left is unknown.
    pub(super) fn finish(mut self) -> Result<(), ConfigError> {
        let Some((key, at, _)) = self.entries().into_iter().next() else {
            return Ok(());
        };
        let place = match self.name.as_str() {
            "" => String::new(),
            name => format!(" in {name}"),
        };
        let nearest = super::nearest(&key, self.known.iter().copied());
        Err(self.error(&at, format!("unknown key '{key}'{place}; {nearest}")))
    }

    fn prefix(&self) -> String {
        match self.name.as_str() {
            "" => String::new(),
            name => format!("{name} "),
        }
    }

    fn wrong(&self, key: &str, at: &Range<usize>, wanted: &str, found: &DeValue<'_>) -> ConfigError {
        self.error(at, format!("{}{key} must be {wanted}, not {}", self.prefix(), kind(found)))
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
