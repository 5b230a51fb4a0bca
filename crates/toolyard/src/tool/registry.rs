//! An engine's tools, by name.
//!
//! ```text
//!   register, replace, unregister ──► a new table, in force at once
//!   batch ──► the table of that moment ──► Arc<ToolEntry> { spec, compiled schema, factory }
//! ```
//!
//! A batch looks its names up in one table. A call in flight keeps its entry, whatever happens to the name; a call
//! that still waits when its tool is removed ends `not_found`.

#[cfg(test)]
mod tests;

use super::{IntoTool, entry::ToolEntry, guard::Guards, name, rules::RulesInForce, schema::SchemaError};
use crate::config::ToolConfig;
use foldhash::HashMap;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;
use toolyard_core::{SettingError, ToolFactory, ToolLayer};

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another tool has this name.
    #[error("a tool named '{name}' is already registered; use replace to swap it")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// There is no tool of this name to replace.
    #[error("no tool named '{name}' to replace")]
    Missing {
        /// The name.
        name: String,
    },
    /// The name is empty, too long, or has white space or characters that are not seen.
    #[error(
        "'{}' is not a valid tool name: use 1 to 128 visible characters without white space",
        name::escaped(name)
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A bound or timeout is zero.
    #[error("tool '{name}': {field} must not be zero")]
    Zero {
        /// The tool.
        name: String,
        /// The field.
        field: &'static str,
    },
    /// A setting makes no sense (KT-4).
    #[error("tool '{name}': {why}")]
    Setting {
        /// The tool.
        name: String,
        /// Which one, and why.
        why: SettingError,
    },
    /// It has no form, so it could run nowhere (SM-1).
    #[error("tool '{name}' has no form: ToolFactory::forms must name at least one")]
    NoForm {
        /// The tool.
        name: String,
    },
    /// Arguments cannot be checked against the schema.
    #[error("tool '{name}': {source}")]
    Schema {
        /// The tool.
        name: String,
        /// What is wrong with the schema, and where.
        source: SchemaError,
    },
}

pub(crate) type Table = HashMap<Arc<str>, Arc<ToolEntry>>;

/// The tools of an engine. Changing them never disturbs calls in flight (CL-8).
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
pub struct Registry {
    rules: Arc<RulesInForce>,
    /// The operator's settings, which apply to any tool of that name.
    configs: BTreeMap<String, ToolConfig>,
    guards: Guards,
    /// Around every tool, the outermost first.
    layers: Vec<Arc<dyn ToolLayer>>,
    /// Whether any tool has had layers: calls of other registries are not looked up twice.
    has_layers: AtomicBool,
    changes: Mutex<Changes>,
}

/// How often the table has changed.
enum Changes {
    /// Watchers are told. Shared, so that they are woken outside of the lock.
    Told(Arc<watch::Sender<u64>>),
    /// The engine has shut down. What is left is the view of a watcher whose wait is over.
    Over(watch::Receiver<u64>),
}

impl Default for Registry {
    /// An empty registry without an engine.
    fn default() -> Self {
        Self::new(Arc::default(), BTreeMap::new(), Guards::default())
    }
}

impl Registry {
    /// Makes the registry of these rules. Each setting applies to any tool of its name; `guards` protect the tools.
    pub(crate) fn new(
        rules: Arc<RulesInForce>,
        configs: BTreeMap<String, ToolConfig>,
        guards: Guards,
    ) -> Self {
        let changes = Mutex::new(Changes::Told(Arc::new(watch::Sender::new(0))));
        Self { rules, configs, guards, layers: Vec::new(), has_layers: AtomicBool::new(false), changes }
    }

    /// Puts these layers around every tool that is added from now on, the outermost first (KT-7).
    pub(crate) fn within(self, layers: Vec<Arc<dyn ToolLayer>>) -> Self {
        Self { layers, ..self }
    }

    /// Whether any tool has had layers.
    #[inline]
    pub(crate) fn has_layers(&self) -> bool {
        self.has_layers.load(Ordering::Acquire)
    }

    /// The guards of its tools.
    pub(crate) fn guards(&self) -> &Guards {
        &self.guards
    }

    /// The names that have settings.
    pub(crate) fn configured(&self) -> impl Iterator<Item = &str> {
        self.configs.keys().map(String::as_str)
    }

    /// Adds a tool. The settings that the engine was built with for this name apply to it.
    ///
    /// # Errors
    /// [`RegisterError`] if the name is taken or the spec is invalid; nothing is changed then.
    pub fn register<M>(&self, tool: impl IntoTool<M>) -> Result<(), RegisterError> {
        self.add(tool.into_tool())
    }

    pub(crate) fn add(&self, factory: Arc<dyn ToolFactory>) -> Result<(), RegisterError> {
        let entry = Arc::new(self.entry(factory)?);
        // The entry is borrowed: one that is refused is dropped here, not under the lock of the change.
        self.change(&mut |table| match table.get(entry.name()) {
            Some(_) => Err(RegisterError::Duplicate { name: entry.name().to_owned() }),
            None => {
                table.insert(entry.shared_name(), entry.clone());
                Ok(())
            }
        })
    }

    /// Replaces the tool of the same name. Calls in flight finish on the old one. The settings that the engine was
    /// built with for this name still apply.
    ///
    /// # Errors
    /// [`RegisterError::Missing`] if there is none; otherwise those of [`register`](Self::register).
    pub fn replace(&self, factory: impl ToolFactory + 'static) -> Result<(), RegisterError> {
        let entry = self.entry(Arc::new(factory))?;
        let (name, mut entry) = (entry.shared_name(), Some(entry));
        self.change(&mut |table| {
            let old =
                table.get_mut(&name).ok_or_else(|| RegisterError::Missing { name: name.to_string() })?;
            if let Some(entry) = entry.take() {
                *old = Arc::new(entry.in_place_of(old));
            }
            Ok(())
        })
    }

    /// Removes a tool; `false` if there was none. Calls in flight finish. Waiting calls end `not_found`, including
    /// those for an earlier tool that this one had replaced.
    pub fn unregister(&self, name: &str) -> bool {
        let taken = self.change(&mut |table| table.remove(name).ok_or(()));
        taken.is_ok_and(|entry| {
            entry.retire();
            true
        })
    }

    /// Makes the entry of a tool, with the operator's settings applied.
    fn entry(&self, factory: Arc<dyn ToolFactory>) -> Result<ToolEntry, RegisterError> {
        let mut spec = factory.spec();
        if let Some(config) = self.configs.get(&spec.name) {
            config.apply(&mut spec);
        }
        let entry = ToolEntry::new(factory, spec, &self.guards, &self.layers)?;
        if entry.layers().is_some() {
            self.has_layers.store(true, Ordering::Release); // before any call can find it
        }
        Ok(entry)
    }

    /// Changes the table, unless `change` fails.
    fn change<T, E>(&self, change: &mut dyn FnMut(&mut Table) -> Result<T, E>) -> Result<T, E> {
        let done = self.rules.change_tools(change)?;
        let told = match &*self.changes.lock() {
            Changes::Told(watchers) => Some(watchers.clone()),
            Changes::Over(_) => None,
        };
        if let Some(watchers) = told {
            watchers.send_modify(|count| *count += 1);
        }
        Ok(done)
    }

    /// Ends the wait of everyone who watches.
    pub(crate) fn end_watches(&self) {
        let mut changes = self.changes.lock();
        let Changes::Told(watchers) = &*changes else { return };
        let over = Changes::Over(watchers.subscribe());
        let told = std::mem::replace(&mut *changes, over);
        drop(changes);
        drop(told); // wakes the watchers
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<Arc<ToolEntry>> {
        self.rules.current().tools.get(name).cloned()
    }

    /// Whether there is a tool of this name.
    pub fn has(&self, name: &str) -> bool {
        self.rules.current().tools.contains_key(name)
    }

    /// Counts the changes to the registry, for code that keeps others informed of the tools. Once the engine has
    /// [shut down](crate::engine::Engine::shutdown), nothing is counted any more, and waiting for a change is an error.
    pub fn watch(&self) -> watch::Receiver<u64> {
        match &*self.changes.lock() {
            Changes::Told(watchers) => watchers.subscribe(),
            Changes::Over(over) => over.clone(),
        }
    }

    /// All tools, sorted by name.
    pub fn list(&self) -> Vec<Arc<ToolEntry>> {
        let mut entries: Vec<_> = self.rules.current().tools.values().cloned().collect();
        entries.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        entries
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("tools", &self.list()).finish_non_exhaustive()
    }
}
