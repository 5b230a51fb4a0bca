//! A configuration as it is written: by it, two are compared.

use std::{collections::BTreeSet, fmt};
use toml::{Table, Value};

/// The names of the tables whose entries are compared one by one, beside those of the whole file.
const DEEPER: &[&[&str]] = &[&["server", "tokens"]];

/// A configuration as it is written, without comments and order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written(Table);

/// A setting, such as `pools.read` and `server.tokens.ci`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Setting(Vec<String>);

impl Written {
    /// That of a text which was found to be TOML.
    pub(super) fn of(text: &str) -> Self {
        Self(text.parse().unwrap_or_default())
    }

    /// The settings in which another one differs.
    pub(crate) fn differences(&self, other: &Self) -> Vec<Setting> {
        let mut found = BTreeSet::new();
        compare((&self.0, &other.0), &mut Vec::new(), &mut found);
        found.into_iter().collect()
    }

    /// Takes a setting as another one has it.
    pub(crate) fn take(&mut self, setting: &Setting, from: &Self) {
        let Some((last, tables)) = setting.0.split_last() else { return };
        let mut of = Some(&from.0);
        let mut into = &mut self.0;
        for name in tables {
            of = of.and_then(|table| table.get(name)?.as_table());
            let inner = into.entry(name).or_insert_with(|| Value::Table(Table::new()));
            match inner.as_table_mut() {
                Some(table) => into = table,
                // What is no table differs as a whole, and is not taken in part.
                None => return,
            }
        }
        match of.and_then(|table| table.get(last)) {
            Some(value) => drop(into.insert(last.clone(), value.clone())),
            None => drop(into.remove(last)),
        }
    }

    /// A table inside of it, if it is there.
    pub(crate) fn table(&self, path: &[&str]) -> Option<&Table> {
        path.iter().try_fold(&self.0, |table, name| table.get(*name)?.as_table())
    }
}

/// Finds the settings in which two tables differ. A table that is not there is as an empty one.
fn compare((one, other): (&Table, &Table), path: &mut Vec<String>, found: &mut BTreeSet<Setting>) {
    let none = Table::new();
    for name in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
        let (before, after) = (one.get(name), other.get(name));
        if before == after {
            continue;
        }
        path.push(name.clone());
        let is_deeper = path.len() == 1 || DEEPER.iter().any(|table| path.iter().eq(table.iter()));
        match (table_of(before, &none), table_of(after, &none)) {
            (Some(before), Some(after)) if is_deeper => compare((before, after), path, found),
            _ => drop(found.insert(Setting(path.clone()))),
        }
        path.pop();
    }
}

fn table_of<'a>(value: Option<&'a Value>, none: &'a Table) -> Option<&'a Table> {
    value.map_or(Some(none), Value::as_table)
}

impl Setting {
    /// The setting that these names lead to.
    pub(crate) fn of<const N: usize>(path: [&str; N]) -> Self {
        Self(path.map(str::to_owned).into())
    }

    /// The names that lead to it.
    pub(crate) fn path(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differ(one: &str, other: &str) -> Vec<String> {
        let (one, other) = (Written::of(one), Written::of(other));
        one.differences(&other).iter().map(ToString::to_string).collect()
    }

    /// HT-11: settings are named as they are written; tokens, one by one; order and comments are none.
    #[test]
    fn what_differs_is_named() {
        assert!(
            differ("[pools]\nread = 1\nconcurrent = 2", "# x\n[pools]\nconcurrent = 2\nread = 1").is_empty()
        );
        assert!(differ("", "[pools]\n[server.tokens]").is_empty());
        let before = "[pools]\nread = 1\n[server]\nhosts = [\"a\"]\n[server.tokens.a]\nsha256 = \"1\"\n[mcp.x]\ncommand = \"c\"";
        let after = "[pools]\nread = 2\n[server.tokens.b]\nsha256 = \"1\"\n[mcp.x]\ncommand = \"d\"\n[policy]\ndefault = \"deny\"";
        let names =
            ["mcp.x", "policy.default", "pools.read", "server.hosts", "server.tokens.a", "server.tokens.b"];
        assert_eq!(differ(before, after), names);
        assert_eq!(differ("[pools]\nread = 1", "pools = 3"), ["pools"]);
    }

    /// HT-11: what was taken differs no more, and nothing else has changed.
    #[test]
    fn what_was_taken_differs_no_more() {
        let mut before = Written::of("[pools]\nread = 1\n[server.tokens.a]\nsha256 = \"1\"");
        let after = Written::of("[server]\nhosts = [\"a\"]\n[server.tokens.b]\nsha256 = \"2\"");
        for setting in before.differences(&after) {
            if setting.path()[0] != "pools" && setting.path()[1] != "hosts" {
                before.take(&setting, &after);
            }
        }
        let left: Vec<String> = before.differences(&after).iter().map(ToString::to_string).collect();
        assert_eq!(left, ["pools.read", "server.hosts"]);
    }
}
