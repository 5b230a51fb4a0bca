//! Columns that line up.

use serde_json::{Map, Value};
use std::fmt;

/// Rows of cells; the first row holds the heads.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these heads.
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self { rows: vec![heads.map(str::to_owned).to_vec()] }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// An object for each row, with the heads as names.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Map<String, Value>> {
        let (heads, rows) = self.rows.split_at(self.rows.len().min(1));
        let names: Vec<String> = heads.iter().flatten().map(|head| field_name(head)).collect();
        rows.iter().map(move |row| names.iter().cloned().zip(row.iter().cloned().map(Value::from)).collect())
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }
}

/// What people read as the name of a field of JSON.
pub(crate) fn field_name(text: &str) -> String {
    text.replace([' ', '-'], "_")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}
