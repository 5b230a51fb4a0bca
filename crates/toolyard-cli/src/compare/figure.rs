//! A figure that two reports have.

use crate::display::Brief;
use serde_json::{Value, json};
use std::time::Duration;

/// What a figure counts, and how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Rate,
    Millis,
}

/// A figure of both reports; `None` where one of them has none.
#[derive(Debug)]
pub(super) struct Figure {
    key: &'static str,
    label: &'static str,
    unit: Unit,
    both: [Option<f64>; 2],
}

impl Figure {
    pub(super) fn new(key: &'static str, label: &'static str, unit: Unit, both: [Option<f64>; 2]) -> Self {
        Self { key, label, unit, both }
    }

    /// Its name as data.
    pub(super) fn key(&self) -> &'static str {
        self.key
    }

    /// Its name for people.
    pub(super) fn label(&self) -> &'static str {
        self.label
    }

    /// The figures of both.
    pub(super) fn both(&self) -> [Option<f64>; 2] {
        self.both
    }

    /// Whether one of the reports has it.
    pub(super) fn is_known(&self) -> bool {
        self.both.iter().any(Option::is_some)
    }

    pub(super) fn texts(&self) -> [String; 2] {
        self.both.map(|figure| figure.map_or_else(|| "-".to_owned(), |figure| self.text(figure)))
    }

    fn text(&self, figure: f64) -> String {
        match self.unit {
            Unit::Count => format!("{figure}"),
            Unit::Rate => format!("{figure:.1}"),
            Unit::Millis => millis(figure),
        }
    }

    pub(super) fn change_text(&self) -> String {
        match (self.both, change(self.both)) {
            ([Some(a), Some(b)], _) if a == b => "same".to_owned(),
            (_, Some(percent)) => format!("{percent:+.1} %"),
            ([Some(_), Some(_)], None) => "from 0".to_owned(),
            ([Some(_), None], _) => "only in the first".to_owned(),
            ([None, _], _) => "only in the second".to_owned(),
        }
    }

    pub(super) fn json(&self) -> Value {
        let [a, b] = self.both;
        let change = change(self.both).map(|percent| (percent * 10.0).round() / 10.0);
        json!({"a": a, "b": b, "change_percent": change})
    }
}

/// By how much the second is more than the first, in percent of the first. `None` if there is nothing to compare with.
pub(super) fn change(both: [Option<f64>; 2]) -> Option<f64> {
    let [Some(a), Some(b)] = both else { return None };
    let percent = (b - a) / a * 100.0;
    match percent.is_finite() {
        true => Some(percent),
        false => (a == b).then_some(0.0),
    }
}

/// A time for people.
pub(super) fn millis(time: f64) -> String {
    Duration::try_from_secs_f64(time / 1e3)
        .map_or_else(|_| format!("{time} ms"), |time| Brief(time).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KT-11: changes are relative to the first report, and nothing is divided by zero.
    #[test]
    fn changes_are_relative_to_the_first() {
        let check = |both: [Option<f64>; 2], percent: Value, text: &str| {
            let figure = Figure::new("k", "l", Unit::Millis, both);
            assert_eq!((&figure.json()["change_percent"], figure.change_text().as_str()), (&percent, text));
        };
        check([Some(2.0), Some(3.0)], json!(50.0), "+50.0 %");
        check([Some(3.0), Some(2.0)], json!(-33.3), "-33.3 %");
        check([Some(2.0), Some(2.0)], json!(0.0), "same");
        check([Some(0.0), Some(0.0)], json!(0.0), "same");
        check([Some(0.0), Some(2.0)], Value::Null, "from 0");
        check([None, Some(2.0)], Value::Null, "only in the second");
        check([Some(2.0), None], Value::Null, "only in the first");
    }
}
