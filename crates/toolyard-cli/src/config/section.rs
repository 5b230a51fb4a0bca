//! One table of the configuration, read key by key: keys that are never requested are unknown.
//!
//! A value that is wrong is reported and read as missing, so that one reading finds all errors.

use super::{ConfigError, duration, size};
use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt::Display,
    num::{NonZeroU32, NonZeroUsize},
    ops::Range,
    time::Duration,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};
use toolyard::PolicyError;

/// The text of a configuration, and what was found to be wrong with it so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    text: &'a str,
    errors: &'a Errors,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, errors: &'a Errors) -> Self {
        Self { text, errors }
    }

    /// Reports an error at this place. Reading goes on, to find the others; what was read is not used.
    fn report(&self, at: &Range<usize>, what: impl Into<String>) {
        self.errors.0.borrow_mut().push((at.start, what.into()));
    }
}

/// The errors of a text, by their places.
#[derive(Debug, Default)]
pub(super) struct Errors(RefCell<Vec<(usize, String)>>);

impl Errors {
    /// The errors with their lines, in order.
    pub(super) fn into_lines(self, text: &str) -> Vec<ConfigError> {
        let mut errors = self.0.into_inner();
        errors.sort_by_key(|(at, _)| *at);
        let (mut line, mut counted) = (1, 0);
        let place = |(at, what)| {
            line += text.get(counted..at).unwrap_or_default().matches('\n').count();
            counted = at;
            ConfigError { line: Some(line), what }
        };
        errors.into_iter().map(place).collect()
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
    /// Whether an error was reported in this table, those inside it aside.
    has_errors: Cell<bool>,
}

impl<'a> Section<'a> {
    /// Parses the whole file. If it is not TOML, only that is reported: what it says is not known.
    pub(super) fn file(source: Source<'a>) -> Option<Self> {
        let (table, errors) = DeTable::parse_recoverable(source.text);
        let mut before = None;
        for error in &errors {
            let at = error.span().unwrap_or_default();
            let between = before.and_then(|before| source.text.get(before..at.start));
            // A second one on the same line only follows from the first.
            if between.is_none_or(|between| between.contains('\n')) {
                let what = error.message().replace(['\r', '\n'], " ");
                source.report(&at, format!("not TOML: {what}"));
            }
            before = Some(at.start);
        }
        errors.is_empty().then(|| Self::of(source, String::new(), table.into_inner()))
    }

    fn of(source: Source<'a>, name: String, table: DeTable<'a>) -> Self {
        let entries = table.into_iter().collect();
        Self { source, name, entries, known: Vec::new(), has_errors: Cell::new(false) }
    }

    /// Reports an error at this place.
    pub(super) fn report(&self, at: &Range<usize>, what: impl Into<String>) {
        self.has_errors.set(true);
        self.source.report(at, what);
    }

    /// Whether no error was reported in this table so far. A check of several keys needs them all: with one that was
    /// wrong, and so is missing, it would report what is no error.
    pub(super) fn is_valid(&self) -> bool {
        !self.has_errors.get()
    }

    /// Takes the value of a key, and makes the key known.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        let at = self.entries.iter().position(|(name, _)| name.get_ref() == key);
        let value = at.map(|at| self.entries.swap_remove(at).1);
        self.known.push((key, value.as_ref().map(Spanned::span)));
        value
    }

    /// Where the value of a key that is still to be taken stands.
    pub(super) fn span_of(&self, key: &str) -> Option<Range<usize>> {
        self.entries.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value.span())
    }

    /// Takes a table, or an empty one if it is missing.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'a> {
        let table = self.take(key).and_then(|value| self.table(self.name_of(key), value));
        table.unwrap_or_else(|| Self::of(self.source, self.name_of(key), DeTable::new()))
    }

    /// Takes a table with its place, if the file has it.
    pub(super) fn placed_section(&mut self, key: &'static str) -> Option<Placed<Section<'a>>> {
        let value = self.take(key)?;
        let at = value.span();
        self.table(self.name_of(key), value).map(|table| (table, at))
    }

    /// Takes a table, or `false` to disable what the table would configure.
    pub(super) fn table_or_false(&mut self, key: &'static str) -> Option<TableOrFalse<'a>> {
        let value = self.take(key)?;
        let at = value.span();
        match value.into_inner() {
            DeValue::Boolean(false) => Some(TableOrFalse::False),
            DeValue::Table(table) => {
                Some(TableOrFalse::Table(Self::of(self.source, self.name_of(key), table)))
            }
            other => self.report_type(key, &at, "a table, or false", &other),
        }
    }

    /// Takes a table, or a number of at least 0.
    pub(super) fn table_or_number(&mut self, key: &'static str) -> Option<TableOrNumber<'a>> {
        let value = self.take(key)?;
        let at = value.span();
        match value.into_inner() {
            DeValue::Table(table) => {
                Some(TableOrNumber::Table(Self::of(self.source, self.name_of(key), table)))
            }
            number @ (DeValue::Integer(_) | DeValue::Float(_)) => {
                self.whole(key, &at, &number, 0, u64::MAX).map(TableOrNumber::Number)
            }
            other => self.report_type(key, &at, "a table, or a whole number from 0", &other),
        }
    }

    /// Reads a value already taken as a word or a table.
    pub(super) fn table_or_word(&self, key: &str, value: Value<'a>, wanted: &str) -> Option<TableOrWord<'a>> {
        let at = value.span();
        match value.into_inner() {
            DeValue::String(word) => Some(TableOrWord::Word((word.into_owned(), at))),
            DeValue::Table(table) => {
                Some(TableOrWord::Table(Self::of(self.source, self.name_of(key), table)))
            }
            other => self.report_type(key, &at, wanted, &other),
        }
    }

    /// The full name of a table inside this one.
    fn name_of(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => format!("[{key}]"),
            outer => format!("{outer} {key}"),
        }
    }

    fn table(&self, name: String, value: Value<'a>) -> Option<Section<'a>> {
        let at = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Self::of(self.source, name, table)),
            other => {
                self.report(&at, format!("{name} must be a table, not {}", type_name(&other)));
                None
            }
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
    pub(super) fn sections(&mut self) -> Vec<(String, Range<usize>, Section<'a>)> {
        let entries = self.entries();
        let outer = self.name.trim_matches(['[', ']']);
        let section = |(key, at, value): (String, _, _)| {
            let inner = self.table(format!("[{outer}.\"{key}\"]"), value)?;
            Some((key, at, inner))
        };
        entries.into_iter().filter_map(section).collect()
    }

    /// Takes a string.
    pub(super) fn string(&mut self, key: &'static str) -> Option<Placed<String>> {
        let value = self.take(key)?;
        let at = value.span();
        match value.into_inner() {
            DeValue::String(text) => Some((text.into_owned(), at)),
            other => self.report_type(key, &at, "a string", &other),
        }
    }

    /// Takes a number of at least 1.
    pub(super) fn count(&mut self, key: &'static str) -> Option<NonZeroUsize> {
        let count = self.integer(key, 1, usize::MAX as u64)?;
        usize::try_from(count).ok().and_then(NonZeroUsize::new)
    }

    /// Takes a number of at least 1 that fits in 32 bits.
    pub(super) fn small_count(&mut self, key: &'static str) -> Option<NonZeroU32> {
        let count = self.integer(key, 1, u32::MAX.into())?;
        u32::try_from(count).ok().and_then(NonZeroU32::new)
    }

    /// Takes a whole number within these bounds.
    pub(super) fn integer(&mut self, key: &'static str, least: u64, most: u64) -> Option<u64> {
        let value = self.take(key)?;
        self.whole(key, &value.span(), value.get_ref(), least, most)
    }

    /// Reads a whole number within these bounds, which may be written as `1e3`.
    fn whole(&self, key: &str, at: &Range<usize>, value: &DeValue<'_>, least: u64, most: u64) -> Option<u64> {
        let wanted = integer_wanted(least, most);
        let (number, given) = match value {
            DeValue::Integer(number) => {
                (u64::from_str_radix(number.as_str(), number.radix()).ok(), number.to_string())
            }
            DeValue::Float(number) => (whole_float(number.as_str()), number.to_string()),
            other => return self.report_type(key, at, &wanted, other),
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.report(at, format!("{}{key} must be {wanted}, not {given}", self.prefix()));
        }
        number
    }

    /// Takes a number, whole or with a fraction. NaN and infinity pass: the caller checks the range.
    pub(super) fn number(&mut self, key: &'static str) -> Option<f64> {
        let value = self.take(key)?;
        let number = match value.get_ref() {
            // A number beyond 128 bits is out of every valid range.
            DeValue::Integer(number) => {
                let whole = i128::from_str_radix(number.as_str(), number.radix());
                Some(whole.map_or(f64::INFINITY, |whole| whole as f64))
            }
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number.or_else(|| self.report_type(key, &value.span(), "a number", value.get_ref()))
    }

    /// Takes a boolean.
    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let value = self.take(key)?;
        match value.get_ref() {
            DeValue::Boolean(on) => Some(*on),
            other => self.report_type(key, &value.span(), "true or false", other),
        }
    }

    /// Takes a boolean or a string.
    pub(super) fn bool_or_string(&mut self, key: &'static str) -> Option<BoolOrString> {
        let value = self.take(key)?;
        match value.get_ref() {
            DeValue::Boolean(on) => Some(BoolOrString::Bool(*on)),
            DeValue::String(text) => Some(BoolOrString::String(text.to_string())),
            other => self.report_type(key, &value.span(), "true, false or a string", other),
        }
    }

    /// Takes a duration above zero.
    pub(super) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        let (text, at) = self.string(key)?;
        self.parsed(key, &at, duration::parse(&text))
    }

    /// Takes a size above zero, in bytes.
    pub(super) fn size(&mut self, key: &'static str) -> Option<u64> {
        self.placed_size(key).map(|(size, _)| size)
    }

    /// The same with its place.
    pub(super) fn placed_size(&mut self, key: &'static str) -> Option<Placed<u64>> {
        let (text, at) = self.string(key)?;
        let size = self.parsed(key, &at, size::parse(&text))?;
        Some((size, at))
    }

    /// What was parsed from the value of a key; an error is reported.
    pub(super) fn parsed<T>(
        &self,
        key: &str,
        at: &Range<usize>,
        parsed: Result<T, impl Display>,
    ) -> Option<T> {
        parsed.map_err(|error| self.report(at, format!("{}{key}: {error}", self.prefix()))).ok()
    }

    /// Takes one of the given words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<Placed<T>> {
        let (word, at) = self.string(key)?;
        let chosen = choices.iter().find(|(name, _)| *name == word);
        let Some((_, choice)) = chosen else {
            self.report(&at, self.unknown_word(key, &word, choices.iter().map(|(name, _)| *name)));
            return None;
        };
        Some((*choice, at))
    }

    fn unknown_word(&self, key: &str, word: &str, names: impl Iterator<Item = &'static str>) -> String {
        let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
        format!("{}{key} must be one of {}, not '{word}'", self.prefix(), names.join(", "))
    }

    /// Takes a list of strings, each with its place.
    pub(super) fn strings(&mut self, key: &'static str) -> Option<Vec<Placed<String>>> {
        const WANTED: &str = "a list of strings";
        let value = self.take(key)?;
        let at = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            self.report(&at, format!("{}{key} must be {WANTED}", self.prefix()));
            return None;
        };
        let text = |item: Value<'a>| {
            let at = item.span();
            match item.into_inner() {
                DeValue::String(text) => Some((text.into_owned(), at)),
                other => self.report_type(key, &at, WANTED, &other),
            }
        };
        Some(items.into_iter().filter_map(text).collect())
    }

    /// Whether the file has a key that was requested, even with a wrong value.
    pub(super) fn was_given(&self, key: &str) -> bool {
        self.known.iter().any(|(known, place)| *known == key && place.is_some())
    }

    /// Whether one of the keys that are left, and so unknown, looks like this one: then it is not missing but mistyped.
    pub(super) fn is_mistyped(&self, key: &str) -> bool {
        let known = || self.known.iter().map(|(key, _)| *key);
        let mut left = self.entries.iter().map(|(name, _)| name.get_ref());
        left.any(|name| super::nearest_name(name, known()) == Some(key))
    }

    /// Ends reading. Any entry that is left is an unknown key.
    pub(super) fn finish(mut self) {
        let place = match self.name.as_str() {
            "" => String::new(),
            name => format!(" in {name}"),
        };
        for (key, at, _) in self.entries() {
            let nearest = super::nearest(&key, self.known.iter().map(|(key, _)| *key));
            self.report(&at, format!("unknown key '{key}'{place}; {nearest}"));
        }
    }

    /// The policy with a setting changed, or as it was if the setting is refused. If the file does not set the refused
    /// one, the error points to `with`, the key that conflicts with its default.
    pub(super) fn checked<P>(&self, changed: Result<P, PolicyError>, with: &str, policy: P) -> P {
        changed.unwrap_or_else(|error| {
            self.report_policy(&error, with);
            policy
        })
    }

    fn report_policy(&self, error: &PolicyError, with: &str) {
        let placed = |wanted: &str| {
            let known = self.known.iter().find(|(key, _)| *key == wanted);
            known.and_then(|(_, place)| place.clone())
        };
        match placed(error.key()) {
            Some(at) => self.report(&at, format!("{}{error}", self.prefix())),
            None => {
                let at = placed(with).unwrap_or_default();
                self.report(&at, format!("{}{error}: set it too", self.prefix()));
            }
        }
    }

    pub(super) fn prefix(&self) -> String {
        match self.name.as_str() {
            "" => String::new(),
            name => format!("{name} "),
        }
    }

    /// Reports a value of the wrong type. Returns `None`, as which it is read.
    fn report_type<T>(&self, key: &str, at: &Range<usize>, wanted: &str, found: &DeValue<'_>) -> Option<T> {
        self.report(at, format!("{}{key} must be {wanted}, not {}", self.prefix(), type_name(found)));
        None
    }
}

/// The whole number that a float stands for, such as `1e3`.
fn whole_float(text: &str) -> Option<u64> {
    let number: f64 = text.parse().ok()?;
    toolyard_wire::whole_number(&number.into())
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
