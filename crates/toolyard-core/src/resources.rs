//! The values an embedder gives to its tools, one per type.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// A set of shared values, one per type: a workspace, a database handle, a client.
///
/// A tool asks for one by type through [`ToolContext::resource`](crate::ToolContext::resource). Crates above the engine
/// reach their tools this way without the engine knowing their types.
///
/// # Examples
/// ```
/// use toolyard_core::Resources;
/// struct Database(&'static str);
/// let resources = Resources::new().with(Database("orders"));
/// assert_eq!(resources.get::<Database>().map(|db| db.0), Some("orders"));
/// assert!(resources.get::<String>().is_none());
/// ```
#[derive(Clone, Default)]
pub struct Resources {
    by_type: HashMap<TypeId, (&'static str, Arc<dyn Any + Send + Sync>)>,
}

impl Resources {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value, replacing an earlier one of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.with_shared(Arc::new(value))
    }

    /// Adds a shared value, replacing an earlier one of the same type.
    #[must_use]
    pub fn with_shared<T: Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        self.by_type.insert(TypeId::of::<T>(), (type_name::<T>(), value));
        self
    }

    /// The value of type `T`.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.by_type.get(&TypeId::of::<T>())?.1.downcast_ref()
    }

    /// The value of type `T`, shared.
    pub fn shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.by_type.get(&TypeId::of::<T>())?.1.clone().downcast().ok()
    }

    /// Both sets together; values of `other` replace those of the same type.
    #[must_use]
    pub fn overlaid(&self, other: &Self) -> Self {
        let mut by_type = self.by_type.clone();
        by_type.extend(other.by_type.iter().map(|(id, value)| (*id, value.clone())));
        Self { by_type }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.by_type.is_empty()
    }
}

impl Drop for Resources {
    /// Each value is dropped in a catch of its own: two destructors that panicked in one unwinding would end the
    /// process.
    fn drop(&mut self) {
        for (_, value) in self.by_type.drain() {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value)))
                && let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic)))
            {
                mem::forget(another); // it would have a destructor too, and so on
            }
        }
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.by_type.values().map(|(name, _)| *name).collect();
        names.sort_unstable();
        f.debug_set().entries(names).finish()
    }
}
