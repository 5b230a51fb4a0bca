//! What arguments, outputs and errors of tools have to be, with words of their own for what is not.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use toolyard_core::{ToolError, ToolFactory, ToolOutput};

/// What can be an argument of a tool, or all of them: what serde reads and schemars describes (KT-1). Implemented for
/// every type that is that.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "this type has no schema, or is not read by serde",
    note = "write `#[derive(serde::Deserialize, schemars::JsonSchema)]` above the type; a `State<T>` takes what is not an argument (written out: an alias of `State` is not recognised)"
)]
pub trait Argument: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Argument for T {}

/// What can be the output of a tool: what converts into a [`ToolOutput`] (KT-3). Implemented for every type that does.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "this is no output of a tool",
    note = "return text, `()`, a `serde_json::Value`, a `toolyard::ToolOutput`, or `toolyard::Json(value)` of what serialises; an alias of `Result` is known by a name that ends in `Result`"
)]
pub trait IntoOutput: 'static {
    /// The output.
    ///
    /// # Errors
    /// [`ToolError`] if it cannot be written as one.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

#[diagnostic::do_not_recommend]
impl<T: TryInto<ToolOutput> + 'static> IntoOutput for T
where
    T::Error: Into<ToolError>,
{
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        self.try_into().map_err(Into::into)
    }
}

/// What can be the error of a function with the attribute [`tool`](macro@crate::tool): what `?` converts into a
/// [`ToolError`] (KT-3). Implemented for every type that it does.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "this is no error of a tool",
    note = "return `toolyard::ToolError`, an error of the standard library, `anyhow::Error`, or any type that implements `std::error::Error`"
)]
pub trait IntoToolError {
    /// The error.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        self.into()
    }
}

/// What an engine takes as a tool: a [`ToolFactory`], or a function that makes one, as those with the attribute
/// [`tool`](macro@crate::tool) are. `M` tells the two apart, and is never written.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tool",
    label = "an engine takes tools here",
    note = "put `#[tool(…)]` above an async function and give its name, or make a tool with `tool_fn` or `from_fn`; a set of tools is taken by `tools`"
)]
pub trait IntoTool<M> {
    /// The tool.
    fn into_tool(self) -> Arc<dyn ToolFactory>;
}

/// Of what is a tool.
#[derive(Debug)]
pub struct Itself;

/// Of what makes one.
#[derive(Debug)]
pub struct Made;

impl<T: ToolFactory + 'static> IntoTool<Itself> for T {
    fn into_tool(self) -> Arc<dyn ToolFactory> {
        Arc::new(self)
    }
}

impl<F: FnOnce() -> T, T: ToolFactory + 'static> IntoTool<Made> for F {
    fn into_tool(self) -> Arc<dyn ToolFactory> {
        Arc::new(self())
    }
}

/// Compiles if it is an argument.
#[doc(hidden)]
pub fn is_argument<T: Argument>() {}

/// The error of a function with the attribute.
#[doc(hidden)]
pub fn error(error: impl IntoToolError) -> ToolError {
    error.into_tool_error()
}
