//! What a function with the attribute [`tool`](macro@crate::tool) takes beside single arguments.

use std::{any::type_name, ops::Deref, sync::Arc};
use toolyard_core::{ToolContext, ToolError, ToolErrorKind};

/// A value that the embedder gave to its tools, as a parameter of a function with the attribute
/// [`tool`](macro@crate::tool): a resource of the engine or the session (KT-2). It is shared, and cheap to clone.
///
/// # Examples
/// ```
/// use toolyard::{State, tool};
/// struct Names(Vec<String>);
/// /// Counts the names.
/// #[tool(read)]
/// async fn count(names: State<Names>) -> String {
///     names.0.len().to_string()
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let names = Names(vec!["Ada".to_owned()]);
/// assert_eq!(count::call(State::new(names)).await, "1"); // in a test
/// # }
/// ```
#[derive(Debug)]
pub struct State<T>(Arc<T>);

impl<T> State<T> {
    /// The value, for a test that calls the function itself.
    pub fn new(value: impl Into<Arc<T>>) -> Self {
        Self(value.into())
    }
}

impl<T: Send + Sync + 'static> State<T> {
    /// The resource of this type.
    ///
    /// # Errors
    /// [`ToolError`] if neither the engine nor the session has one, whose text is logged.
    pub fn of(cx: &ToolContext) -> Result<Self, ToolError> {
        cx.shared_resource().map(Self).ok_or_else(|| {
            let missing = NoResource(type_name::<T>());
            ToolError::new(ToolErrorKind::Unclassified, toolyard_core::wording::INTERNAL_FAILURE)
                .with_source(missing)
                .no_side_effect()
        })
    }
}

/// A tool asks for a value that nobody has given.
#[derive(Debug, thiserror::Error)]
#[error("no resource of type {0}: give it to `EngineBuilder::resource` or `SessionOptions::resource`")]
struct NoResource(&'static str);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// All arguments of a call as one value, as a parameter of a function with the attribute
/// [`tool`](macro@crate::tool) (KT-2).
///
/// # Examples
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolyard::{Args, tool};
/// #[derive(Deserialize, JsonSchema)]
/// struct City { name: String }
/// /// Says what the weather is.
/// #[tool(read)]
/// async fn weather(Args(city): Args<City>) -> String {
///     format!("sunny in {}", city.name)
/// }
/// # let _ = weather();
/// ```
#[derive(Debug, Clone)]
pub struct Args<T>(pub T);
