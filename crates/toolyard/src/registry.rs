//! The tools an engine has, by name.
//!
//! ```text
//!   register, replace, unregister ──► a new table, put in place at once
//!   batch ──► the table as it is now ──► Arc<ToolEntry> { spec, compiled schema, factory }
//! ```
//!
//! A batch looks its names up in one table. A call in flight keeps its entry, whatever happens to the name;
//! a call that still waits when its tool goes is `not_found`.

mod entry;
mod schema;

pub use entry::ToolEntry;
pub use schema::{Schema, SchemaError, SchemaWarning};

use arc_swap::ArcSwap;
use foldhash::HashMap;
use std::sync::Arc;
use toolyard_core::{ToolFactory, wording};

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another tool has the name.
    #[error("a tool named '{name}' is registered already; use replace to swap it")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// No tool to replace.
    #[error("no tool named '{name}' to replace")]
    Missing {
        /// The name.
        name: String,
    },
    /// The name is empty, too long, or has white space or control characters.
    #[error("'{}' is no tool name: 1 to 128 characters without white space or control characters", name.escape_debug())]
    Name {
        /// The name.
        name: String,
    },
    /// A bound or timeout of zero.
    #[error("tool '{name}': {field} must not be zero")]
    Zero {
        /// The tool.
        name: String,
        /// The field.
        field: &'static str,
    },
    /// The schema is not one that arguments are checked against.
    #[error("tool '{name}': {source}")]
    Schema {
        /// The tool.
        name: String,
        /// What is wrong with it, and where.
        source: SchemaError,
    },
}

pub(crate) type Table = HashMap<Arc<str>, Arc<ToolEntry>>;

/// The tools of an engine. Changing it never disturbs calls in flight (CL-8).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Engine, ToolContext, ToolSpec, tool_fn};
/// let engine = Engine::builder().build().await.unwrap();
/// let ping = tool_fn(ToolSpec::pure("ping"), |(): (), _: ToolContext| async { Ok("pong") });
/// engine.registry().register(ping).unwrap();
/// assert!(engine.registry().has("ping"));
/// assert!(engine.registry().unregister("ping"));
/// assert!(!engine.registry().unregister("ping")); // nothing left to do, nothing wrong
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Registry {
    table: ArcSwap<Table>,
}

impl Registry {
    /// Adds a tool.
    ///
    /// # Errors
    /// [`RegisterError`] for a name in use and for a spec that makes no sense; nothing is changed then.
    pub fn register(&self, factory: impl ToolFactory + 'static) -> Result<(), RegisterError> {
        self.add(ToolEntry::new(Arc::new(factory))?)
    }

    pub(crate) fn add(&self, entry: ToolEntry) -> Result<(), RegisterError> {
        let entry = Arc::new(entry);
        let duplicate = || RegisterError::Duplicate { name: entry.name().to_owned() };
        self.change(|table| match table.get(entry.name()) {
            Some(_) => Err(duplicate()),
            None => {
                table.insert(entry.shared_name(), entry.clone());
                Ok(())
            }
        })
    }

    /// Puts a tool in place of the one that has its name. Calls in flight finish on the old one.
    ///
    /// # Errors
    /// [`RegisterError::Missing`] when there is none, and as [`register`](Self::register).
    pub fn replace(&self, factory: impl ToolFactory + 'static) -> Result<(), RegisterError> {
        let entry = Arc::new(ToolEntry::new(Arc::new(factory))?);
        let missing = || RegisterError::Missing { name: entry.name().to_owned() };
        self.change(|table| match table.get_mut(entry.name()) {
            Some(old) => {
                *old = entry.clone();
                Ok(())
            }
            None => Err(missing()),
        })
    }

    /// Takes a tool away; `false` when there was none. Calls in flight finish, calls that wait are
    /// `not_found`.
    pub fn unregister(&self, name: &str) -> bool {
        let taken = self.change(|table| table.remove(name).ok_or(()));
        taken.is_ok_and(|entry| {
            entry.retire();
            true
        })
    }

    /// Applies `change` to a copy of the table and puts it in place; again, should another have come between.
    fn change<T, E>(&self, change: impl Fn(&mut Table) -> Result<T, E>) -> Result<T, E> {
        loop {
            let now = self.table.load_full();
            let mut next = Table::clone(&now);
            let done = change(&mut next)?;
            let before = self.table.compare_and_swap(&now, Arc::new(next));
            if Arc::ptr_eq(&before, &now) {
                return Ok(done);
            }
        }
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<Arc<ToolEntry>> {
        self.table.load().get(name).cloned()
    }

    /// Whether there is a tool of this name.
    pub fn has(&self, name: &str) -> bool {
        self.table.load().contains_key(name)
    }

    /// Every tool, by name.
    pub fn list(&self) -> Vec<Arc<ToolEntry>> {
        let mut entries: Vec<_> = self.table.load().values().cloned().collect();
        entries.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        entries
    }

    /// The table as it is now.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }
}

/// The sentence for a name that no tool has (V5).
pub(crate) fn not_found(name: &str, table: &Table) -> String {
    wording::tool_not_found(name, table.keys().map(AsRef::as_ref).collect())
}

#[cfg(test)]
mod tests;
