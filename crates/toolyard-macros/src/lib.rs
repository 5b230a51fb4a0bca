//! The attributes that make tools of async functions: [`macro@tool`] of a function, [`macro@tools`] of the methods of a
//! type (KT-2). They are reached as `toolyard::tool` and `toolyard::tools`.
//!
//! ```text
//!   #[tool(read)] async fn ─► settings ──► ToolSpec          name, doc comment, class, limits
//!                            parameters ─► Args, State, ToolContext
//!                            function ───► what makes the tool, and `NAME::call`
//! ```

mod arguments;
mod function;
mod methods;
mod settings;
mod signature;

use proc_macro::TokenStream;

/// Makes a tool of an async function.
///
/// An engine takes the function by its name, and its doc comment is what the model reads about the tool.
/// The attribute begins with what a call can do: `pure`, `read`, `write`, `network` or `execute`. After it come settings,
/// each named and meant as the method of [`ToolSpec`] of that name: `concurrent`, `idempotent`, `inline`, `blocking`,
/// `recursive`, `timeout = "5s"`, `rate = "5/s"`, `max_concurrency = 4`, `retry = RetryPolicy::NONE`,
/// `requires_fs(FsMode::Read, "path")` and so on; `name = "…"` and `description = "…"` replace what the function says.
///
/// Parameters are the arguments of a call, each a field of its object, with its doc comment as description and with
/// `#[serde(…)]` and `#[schemars(…)]` as on a field. An `Option` may be left out. Beside them a function may take:
///
/// - `Args<T>`: all arguments at once, as a type of its own;
/// - `State<T>`: a value that was given to the engine or the session as a resource;
/// - `ToolContext`, or a reference to it.
///
/// The attribute goes by these names as they are written, and does not see through an alias of them.
///
/// It returns whatever becomes a tool's output (text, `()`, `Json` of what serialises, a `ToolOutput`), or a `Result` of
/// that with any error that `?` turns into a `ToolError`, such as `anyhow::Error`; a type whose name ends in `Result` is
/// taken for one. `NAME()` is the tool, where one is asked for; the function itself is there as `NAME::call`, to be tested.
///
/// [`ToolSpec`]: https://docs.rs/toolyard/latest/toolyard/struct.ToolSpec.html
///
/// # Examples
/// ```
/// use std::{collections::HashMap, time::Duration};
/// use toolyard::{Call, Engine, ResultExt, State, ToolError, tool};
///
/// struct Notes(HashMap<String, String>);
///
/// /// Finds a note by its title.
/// #[tool(read, timeout = "2s", max_concurrency = 4)]
/// async fn find_note(
///     /// The title, as the list of notes has it.
///     title: String,
///     notes: State<Notes>,
/// ) -> Result<String, ToolError> {
///     notes.0.get(&title).cloned().for_model(format!("there is no note '{title}'"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let notes = Notes(HashMap::from([("shopping".to_owned(), "milk".to_owned())]));
/// let engine = Engine::builder().tool(find_note).resource(notes).build().await.unwrap();
/// let session = engine.session("demo");
/// let call = Call::new("call_1", "find_note", serde_json::json!({"title": "shopping"}));
/// assert_eq!(session.call(call).await.to_text(), "milk");
/// # }
/// ```
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(settings.into(), item.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Makes a tool of each method of an `impl` block that has the attribute [`tool`](macro@tool): all share the value, which
/// an engine takes with [`EngineBuilder::tools`].
///
/// The methods take `&self`; the rest is as with functions. Methods without the attribute stay as they are. A value that
/// others have too is given as `value.into_toolset()`, of an `Arc`.
///
/// [`EngineBuilder::tools`]: https://docs.rs/toolyard/latest/toolyard/struct.EngineBuilder.html#method.tools
///
/// # Examples
/// ```
/// use std::sync::Mutex;
/// use toolyard::{Call, Confirmations, Engine, tool, tools};
///
/// #[derive(Default)]
/// struct Counter { value: Mutex<i64> }
///
/// #[tools]
/// impl Counter {
///     /// Adds to the counter, and returns its value.
///     #[tool(write)]
///     async fn add(&self, amount: i64) -> String {
///         let mut value = self.value.lock().unwrap();
///         *value += amount;
///         value.to_string()
///     }
///
///     /// Returns the value of the counter.
///     #[tool(read, name = "counter_value")]
///     async fn value(&self) -> String {
///         self.value.lock().unwrap().to_string()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let builder = Engine::builder().tools(Counter::default()).confirmations(Confirmations::auto());
/// let session = builder.build().await.unwrap().session("demo");
/// session.call(Call::new("call_1", "add", r#"{"amount": 2}"#)).await;
/// assert_eq!(session.call(Call::new("call_2", "counter_value", ())).await.to_text(), "2");
/// # }
/// ```
#[proc_macro_attribute]
pub fn tools(settings: TokenStream, item: TokenStream) -> TokenStream {
    methods::expand(settings.into(), item.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}
